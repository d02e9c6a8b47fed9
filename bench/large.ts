// Large things, each done once and checked: a single PUT of 5 GiB and its GET, an object of twenty times that and one of
// 10,000 parts by copies, their copies, ranges across borders, and `holdfast fsck --read-data` of it all. Run:
// npx node bench/large.ts [--size BYTES] [--parts N]; the data folder needs a little more than the size.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { Command, Option } from 'commander';
import { must } from '../src/base/assert.ts';
import { formatBytes, formatCount } from '../src/cli/format.ts';
import { LIMITS } from '../src/types/limits.ts';
import { describeEnvironment } from './environment.ts';
import { LoadClient, succeed } from './load/client.ts';
import { type Stretch, seededBytes, seededPieces } from './load/seeded-bytes.ts';
import { uploadByCopies } from './load/upload.ts';
import {
  addEndpointOptions,
  type EndpointOptions,
  type MeasuredServer,
  openServer,
  peakRssMiB,
} from './measured-server.ts';
import { quantity } from './quantity.ts';
import { toPage, toTable } from './report.ts';

const MiB = 1024 * 1024;
const SEED = 'bench/large.ts';
const COPY_COUNT = 20;
const RANGE_PART_BYTES = LIMITS.partBytesMin;

interface Options extends EndpointOptions {
  size: number;
  parts: number;
}

interface Context {
  server: MeasuredServer;
  client: LoadClient;
  bucket: string;
  /** Of the object that all others are copies of. */
  sizeBytes: number;
  md5: string;
  /** Of the object that is made of ranges. */
  partCount: number;
}

/** `run` answers what is worth saying beside the time. */
interface Step {
  what: string;
  run(context: Context): Promise<string>;
}

const say = (text: string) => process.stderr.write(text);
const sizeText = (sizeBytes: number) => formatBytes(sizeBytes).replace(/\.0+ /, ' ');

const program = addEndpointOptions(new Command('large'))
  .description(
    'writes, copies and reads large objects, by default of a server of its own, which fsck then checks',
  )
  .addOption(
    new Option('--size <bytes>', 'of the single PUT')
      .default(LIMITS.putBytesMax, '5GiB')
      .argParser(quantity({ kind: 'bytes', min: 2 * RANGE_PART_BYTES, max: LIMITS.putBytesMax })),
  )
  .option(
    '--parts <n>',
    'of the object that is made of ranges of 5 MiB',
    quantity({ kind: 'integer', min: 1, max: LIMITS.partCountMax }),
    LIMITS.partCountMax,
  );

function stepsOf({ size, parts, endpoint }: Options): Step[] {
  const joined = sizeText(COPY_COUNT * size);
  const partsText = `${formatCount(parts)} parts`;
  const steps: Step[] = [
    { what: `single PUT of ${sizeText(size)}`, run: putWhole },
    { what: 'GET of it', run: getWhole },
    { what: `${joined} object by ${COPY_COUNT} part copies of it`, run: joinCopies },
    { what: `${partsText} by copies of ${sizeText(RANGE_PART_BYTES)} ranges`, run: joinRanges },
    { what: `GET of part ${formatCount(parts)}`, run: getLastPart },
    { what: `copy of the ${joined}`, run: (context) => copy(context, { from: 'joined', to: 'joined-copy' }) },
    {
      what: `copy of the ${partsText}`,
      run: (context) => copy(context, { from: 'parts', to: 'parts-copy' }),
    },
    { what: 'ranges of the copy, across borders of a chunk and of a part', run: getRanges },
  ];
  return endpoint === undefined ? [...steps, { what: '`holdfast fsck --read-data`', run: runFsck }] : steps;
}

async function main(options: Options): Promise<void> {
  const md5 = createHash('md5');
  // Before the clock runs, because client and server share the processors.
  for (const piece of seededPieces(SEED, { offsetBytes: 0, sizeBytes: options.size })) md5.update(piece);
  const server = await openServer(options);
  const context: Context = {
    server,
    client: new LoadClient(server.target),
    bucket: `bench-${process.pid}-large`,
    sizeBytes: options.size,
    md5: md5.digest('hex'),
    partCount: options.parts,
  };
  const lines: string[][] = [];
  try {
    await succeed(context.client, { method: 'PUT', path: `/${context.bucket}` });
    for (const step of stepsOf(options)) lines.push(await take(step, context));
  } finally {
    await context.client.close();
    await server.stop();
  }
  const environment = await describeEnvironment('npx node bench/large.ts');
  const table = toTable(['what', 'took', '', 'peak RSS MiB so far'], lines);
  process.stdout.write(toPage({ table, environment, bounds: undefined }));
}

/** The step's line of the table. */
async function take(step: Step, context: Context): Promise<string[]> {
  const startedAt = performance.now();
  const note = await step.run(context);
  const took = secondsSince(startedAt);
  const { child } = context.server;
  const rss = child === undefined ? '' : formatCount(Math.round(await peakRssMiB(child.pid)));
  const line = [step.what, took, note, rss];
  say(`${line.join(' | ')}\n`);
  return line;
}

function secondsSince(startedAt: number): string {
  return secondsText((performance.now() - startedAt) / 1000);
}

function secondsText(seconds: number): string {
  return `${seconds.toFixed(seconds < 1 ? 2 : 1)} s`;
}

async function putWhole({ client, bucket, sizeBytes, md5 }: Context): Promise<string> {
  const startedAt = performance.now();
  const { headers } = await succeed(client, {
    method: 'PUT',
    path: `/${bucket}/whole`,
    headers: { 'content-length': String(sizeBytes) },
    body: Readable.from(seededPieces(SEED, { offsetBytes: 0, sizeBytes })),
  });
  if (headers.etag !== `"${md5}"`) throw new Error(`ETag ${headers.etag} of data with the MD5 ${md5}`);
  return `${rateSince(startedAt, sizeBytes)}, MD5 ETag right`;
}

async function getWhole({ client, bucket, sizeBytes, md5 }: Context): Promise<string> {
  const startedAt = performance.now();
  const hash = createHash('md5');
  await succeed(client, {
    method: 'GET',
    path: `/${bucket}/whole`,
    onPiece: (piece) => void hash.update(piece),
  });
  const got = hash.digest('hex');
  if (got !== md5) throw new Error(`MD5 ${got} of what was read, ${md5} of what was written`);
  return `${rateSince(startedAt, sizeBytes)}, MD5 right`;
}

function rateSince(startedAt: number, sizeBytes: number): string {
  return `${Math.round((sizeBytes / MiB / (performance.now() - startedAt)) * 1000)} MiB/s`;
}

function joinCopies(context: Context): Promise<string> {
  return makeByCopies(context, { key: 'joined', parts: Array(COPY_COUNT).fill({}) });
}

function joinRanges(context: Context): Promise<string> {
  const parts = Array.from({ length: context.partCount }, (_, index) => {
    const first = rangePartOffset(context, index);
    return { 'x-amz-copy-source-range': `bytes=${first}-${first + RANGE_PART_BYTES - 1}` };
  });
  return makeByCopies(context, { key: 'parts', parts });
}

/** The ranges go through the whole object, again and again. */
function rangePartOffset({ sizeBytes }: Context, index: number): number {
  return (index % Math.floor(sizeBytes / RANGE_PART_BYTES)) * RANGE_PART_BYTES;
}

async function makeByCopies(
  { server, bucket }: Context,
  { key, parts }: { key: string; parts: readonly Record<string, string>[] },
): Promise<string> {
  const upload = { path: `/${bucket}/${key}`, source: `/${bucket}/whole`, parts };
  return `Complete ${secondsText((await uploadByCopies(server.target, upload)) / 1000)}`;
}

async function getLastPart(context: Context): Promise<string> {
  const { client, bucket, partCount } = context;
  const { headers, body } = await succeed(client, {
    method: 'GET',
    path: `/${bucket}/parts`,
    query: `partNumber=${partCount}`,
    keepBody: true,
  });
  if (headers['x-amz-mp-parts-count'] !== String(partCount)) {
    throw new Error(`${headers['x-amz-mp-parts-count']} parts instead of ${partCount}`);
  }
  const offsetBytes = rangePartOffset(context, partCount - 1);
  expectBytes(body, [{ offsetBytes, sizeBytes: RANGE_PART_BYTES }]);
  return 'bytes right';
}

async function copy({ client, bucket }: Context, keys: { from: string; to: string }): Promise<string> {
  const headers = { 'x-amz-copy-source': `/${bucket}/${keys.from}` };
  await succeed(client, { method: 'PUT', path: `/${bucket}/${keys.to}`, headers });
  return '';
}

async function getRanges({ client, bucket, sizeBytes }: Context): Promise<string> {
  const path = `/${bucket}/joined-copy`;
  const get = async (offsetBytes: number) => {
    const range = `bytes=${offsetBytes}-${offsetBytes + MiB - 1}`;
    return (await succeed(client, { method: 'GET', path, headers: { range }, keepBody: true })).body;
  };
  const partOffset = (COPY_COUNT - 6) * sizeBytes;
  // A multiple of the largest chunk is one of any chunk.
  const chunkOffset = Math.floor(sizeBytes / 2 / LIMITS.chunkBytesMax) * LIMITS.chunkBytesMax;
  const before = 7;
  expectBytes(await get(partOffset + chunkOffset - before), [
    { offsetBytes: chunkOffset - before, sizeBytes: MiB },
  ]);
  expectBytes(await get(partOffset - before), [
    { offsetBytes: sizeBytes - before, sizeBytes: before },
    { offsetBytes: 0, sizeBytes: MiB - before },
  ]);
  return 'bytes right';
}

/** `stretches`: of the object that all others are copies of. */
function expectBytes(got: Buffer | undefined, stretches: readonly Stretch[]): void {
  const expected = Buffer.concat(stretches.map((stretch) => seededBytes(SEED, stretch)));
  if (got?.equals(expected) !== true) throw new Error(`wrong bytes: ${JSON.stringify(stretches)}`);
}

/** Its findings go to stderr, its verdict into the table. */
async function runFsck({ server }: Context): Promise<string> {
  const { endpoint, accessKey, secretKey } = server.target;
  const { dataDir } = must(server.child, 'a server of our own');
  const main = join(import.meta.dirname, '..', 'cmd', 'main.ts');
  const args = [main, 'fsck', '--read-data', '--endpoint', endpoint, '--data-dir', dataDir];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, HOLDFAST_ROOT_ACCESS_KEY: accessKey, HOLDFAST_ROOT_SECRET_KEY: secretKey },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let last = '';
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  for await (const line of createInterface({ input: child.stdout })) {
    say(`  ${line}\n`);
    last = line;
  }
  const code = await ended;
  if (code !== 0) throw new Error(`holdfast fsck ended with code ${code}`);
  return last;
}

await main(program.parse().opts<Options>());
