// How soon does the file system get back what was deleted, while clients go on writing? A server of its own with default settings
// takes objects of 1, 4 and 16 MiB; a random half of their bytes is deleted, and the data folder is looked at until 90 % of that
// half is free again. Ends with exit code 1 where that takes more than ten minutes from the moment on from which it may: those
// who read have ten minutes first (storage.readingGrace). Run:
// npx node bench/give-back.ts [--gib N] [--pace MIB_PER_SECOND] [--beside MIB_PER_SECOND]
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { must } from '../src/base/assert.ts';
import { formatBytes } from '../src/cli/format.ts';
import { describeEnvironment } from './environment.ts';
import { LoadClient, succeed } from './load/client.ts';
import type { Target } from './load/spec.ts';
import { openServer } from './measured-server.ts';
import { quantity } from './quantity.ts';
import { toPage, toTable } from './report.ts';
import { Bodies, type StoredObject } from './soak/bodies.ts';
import { Pacer } from './soak/pacer.ts';
import { diskUseOf, metricsOf, rssBytesOf } from './soak/watched.ts';
import { cpuSecondsOf } from './timing.ts';

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;
const SIZES = [16 * MiB, 4 * MiB, MiB] as const;
const CLIENTS = 4;
const LOOK_EVERY_MS = 5000;
const AIMED_SHARE = 0.9;
/** The default of storage.readingGrace. */
const GRACE_SECONDS = 600;
const AIM_SECONDS = GRACE_SECONDS + 600;
const GIVE_UP_SECONDS = GRACE_SECONDS + 2400;
/** Of what is told to people: each time so much more has come back. */
const SHARES = [0.1, 0.25, 0.5, 0.75, AIMED_SHARE] as const;

interface Options {
  gib: number;
  pace?: number;
  beside: number;
}

interface Run {
  bucket: string;
  bodies: Bodies;
  clients: readonly LoadClient[];
  pid: number;
  dataDir: string;
  target: Target;
}

const say = (text: string) => process.stderr.write(`${text}\n`);

const program = new Command('give-back')
  .description('deletes a random half of what a server of its own holds, and waits for its room')
  .option('--gib <n>', 'GiB that are written first', quantity({ kind: 'integer', min: 1, max: 100_000 }), 20)
  .option(
    '--pace <mib>',
    'MiB a second then; default: as fast as it goes',
    quantity({ kind: 'integer', min: 1, max: 100_000 }),
  )
  .option(
    '--beside <mib>',
    'MiB a second that clients write meanwhile',
    quantity({ kind: 'integer', min: 1, max: 100_000 }),
    5,
  );

async function main(options: Options): Promise<void> {
  const server = await openServer({ region: 'us-east' });
  const clients = Array.from({ length: CLIENTS }, () => new LoadClient(server.target));
  const own = must(server.child, 'a server of our own');
  const { target } = server;
  const run: Run = { ...own, target, clients, bucket: 'give-back', bodies: new Bodies() };
  try {
    await succeed(must(clients[0], 'a client'), { method: 'PUT', path: `/${run.bucket}` });
    const objects = await write(run, options);
    const lines = await deleteHalf(run, objects, options.beside);
    const environment = await describeEnvironment('npx node bench/give-back.ts');
    const heads = ['what', 'after s', 'disk', 'CPU s of the server', 'RSS MiB'];
    process.stdout.write(toPage({ table: toTable(heads, lines), environment, bounds: undefined }));
  } finally {
    for (const client of clients) await client.close();
    await server.stop();
  }
}

/** Returns what was written. */
async function write(run: Run, { gib, pace }: Options): Promise<StoredObject[]> {
  const pacer = new Pacer(pace);
  const objects: StoredObject[] = [];
  let bytes = 0;
  await eachClient(run, async (client) => {
    while (bytes < gib * GiB) {
      const object = newObject(run, 'first', objects.length + 1);
      objects.push(object);
      bytes += object.sizeBytes;
      await pacer.turn(object.sizeBytes);
      await run.bodies.put(client, object);
      if (objects.length % 100 === 0) say(`${formatBytes(bytes)} written`);
    }
  });
  return objects;
}

function newObject({ bucket }: Run, folder: string, number: number): StoredObject {
  const sizeBytes = must(SIZES[number % SIZES.length], 'a size');
  return { path: `/${bucket}/${folder}/${number}`, number, sizeBytes, readerCount: 0 };
}

async function eachClient(run: Run, work: (client: LoadClient) => Promise<void>): Promise<void> {
  await Promise.all(run.clients.map(work));
}

/** Lines of the table. */
async function deleteHalf(run: Run, objects: readonly StoredObject[], beside: number): Promise<string[][]> {
  const before = await diskUseOf(run.dataDir);
  const cpuBefore = cpuSecondsOf(run.pid);
  const writing = writeBeside(run, beside);
  const startedAt = performance.now();
  const { left, goneBytes } = await deleteRandomHalf(run, objects);
  const lineOf = async (what: string, diskBytes: number) => [
    what,
    ((performance.now() - startedAt) / 1000).toFixed(0),
    formatBytes(diskBytes),
    (cpuSecondsOf(run.pid) - cpuBefore).toFixed(1),
    String(Math.round((await rssBytesOf(run.pid)) / MiB)),
  ];
  const lines = [
    ['before', '0', formatBytes(before.bytes), '0', ''],
    await lineOf(`${formatBytes(goneBytes)} deleted`, before.bytes),
  ];
  const shares: number[] = [...SHARES];
  for (let seconds = 0; shares.length > 0 && seconds < GIVE_UP_SECONDS; await sleep(LOOK_EVERY_MS)) {
    seconds = (performance.now() - startedAt) / 1000;
    const now = await diskUseOf(run.dataDir);
    // What is written meanwhile takes room of its own.
    const share = (before.bytes + writing.bytes() - now.bytes) / goneBytes;
    const pending =
      (await metricsOf(run.target.endpoint)).get('holdfast_pending_reclaim_bytes') ?? Number.NaN;
    say(
      `${seconds.toFixed(0)} s: ${(100 * share).toFixed(1)} % is back, disk ${formatBytes(now.bytes)}, pending ${formatBytes(pending)}, ${now.extentCount} extents`,
    );
    for (; shares.length > 0 && share >= must(shares[0], 'a share'); shares.shift())
      lines.push(await lineOf(`${100 * must(shares[0], 'a share')} % of it is back`, now.bytes));
    if (shares.length === 0 && seconds > AIM_SECONDS) process.exitCode = 1;
  }
  if (shares.length > 0) process.exitCode = 1;
  await writing.end();
  say('comparing what is left');
  let next = 0;
  await eachClient(run, async (client) => {
    for (let object = left[next++]; object !== undefined; object = left[next++])
      await run.bodies.check(client, object);
  });
  return [...lines, await lineOf('what is left has been compared', (await diskUseOf(run.dataDir)).bytes)];
}

/** Each object by the toss of a coin, in the order of their names, one request after the other for each client. */
async function deleteRandomHalf(
  run: Run,
  objects: readonly StoredObject[],
): Promise<{ left: StoredObject[]; goneBytes: number }> {
  const left: StoredObject[] = [];
  const gone: StoredObject[] = [];
  for (const object of objects) (Math.random() < 0.5 ? gone : left).push(object);
  let next = 0;
  await eachClient(run, async (client) => {
    for (let object = gone[next++]; object !== undefined; object = gone[next++])
      await succeed(client, { method: 'DELETE', path: object.path });
  });
  return { left, goneBytes: gone.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
}

/** Writes on and on until it is ended; nothing of it is deleted. */
function writeBeside(run: Run, mibPerSecond: number): { bytes(): number; end(): Promise<void> } {
  const pacer = new Pacer(mibPerSecond);
  let isOver = false;
  let bytes = 0;
  const writing = (async () => {
    const client = new LoadClient(run.target);
    for (let number = 1; !isOver; number++) {
      const object = newObject(run, 'beside', number);
      await pacer.turn(object.sizeBytes);
      await run.bodies.put(client, object);
      bytes += object.sizeBytes;
    }
    await client.close();
  })();
  return {
    bytes: () => bytes,
    async end() {
      isOver = true;
      await writing;
    },
  };
}

await main(program.parse().opts<Options>());
