// The AWS CLI against a whole server: today's from PyPI over HTTPS; in the long form over HTTP, too, and Debian's older one. Sync both
// ways with files below and above the multipart threshold (8 MiB), single copies, and the calls of s3api by hand.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  type ClientWorld,
  openWorld,
  PROGRAMS,
  type RunOptions,
  type Transport,
  testOver,
} from '../support/clients/clients.ts';
import { fullTreeMiB } from '../support/clients/full-tree.ts';
import { changeTree, compareTrees, listFiles, writeTree } from '../support/clients/tree.ts';
import { casesOf } from '../support/run/long-form.ts';

interface Run {
  name: 'of today' | 'of Debian';
  transport: Transport;
  sizeMiB: number;
  /** Trees only, and no copies within the server: other calls are the same over either transport, and each is a start of Python. */
  isTreesOnly?: boolean;
}

const RUNS = casesOf<Run>({
  short: [{ name: 'of today', transport: 'https', sizeMiB: fullTreeMiB() }],
  longOnly: [
    { name: 'of Debian', transport: 'http', sizeMiB: 16 },
    { name: 'of today', transport: 'http', sizeMiB: 16, isTreesOnly: true },
  ],
});
/** boto3 computes all by the same code (boto3.test.ts). */
const ALGORITHMS = casesOf({ short: ['CRC32', 'SHA256'], longOnly: ['CRC32C', 'SHA1'] });
/** Where the two differ. */
const PROGRAM = {
  'of today': {
    command: PROGRAMS.pypiAws,
    /** Of `s3 cp --checksum-algorithm`; Debian's has the flag only in s3api. */
    cpAlgorithms: casesOf({ short: ['CRC64NVME'], longOnly: ['SHA256', 'CRC32', 'CRC32C', 'SHA1'] }),
    /** After an error of the service. */
    errorCode: 255,
    /** In this region, unless told otherwise. */
    presignsBy: 'SigV2',
  },
  'of Debian': {
    command: PROGRAMS.debianAws,
    cpAlgorithms: [],
    errorCode: 254,
    presignsBy: 'SigV4',
  },
};

function expectSameBytes(actual: string, expected: string): void {
  expect(readFileSync(actual).equals(readFileSync(expected))).toBe(true);
}

describe.each(RUNS)('AWS CLI $name over $transport', (run) => {
  const test = testOver(run.transport);
  const { name, transport, sizeMiB } = run;
  const { command, cpAlgorithms, errorCode, presignsBy } = PROGRAM[name];
  let world: ClientWorld;
  const tree = () => world.path('tree');
  const aws = async (args: string[], options: RunOptions = {}) => {
    const ran = await world.run(command, ['--endpoint-url', world.server.endpoint, ...args], {
      ...options,
      env: { ...world.awsVariables(), AWS_PAGER: '', ...options.env },
    });
    return options.code === undefined ? ran.stdout : ran.stderr;
  };
  const api = async (...args: string[]) => {
    const text = await aws(['s3api', ...args]);
    return (text.trim() === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
  };

  beforeAll(async () => {
    world = await openWorld({ transport });
    writeTree({ folder: tree(), seed: `aws-${transport}`, sizeMiB });
    await aws(['s3', 'mb', 's3://aws-sync']);
    await aws(['s3', 'mb', 's3://aws-other']);
  });
  afterAll(() => world.close());

  test('syncs a tree up, and then its changes', async () => {
    await aws(['s3', 'sync', '--only-show-errors', tree(), 's3://aws-sync/in a folder']);
    const isSynced = await aws(['s3', 'sync', '--dryrun', tree(), 's3://aws-sync/in a folder']);
    expect(isSynced).toBe('');
    changeTree({ folder: tree(), seed: `aws-${transport}` });
    await aws(['s3', 'sync', '--only-show-errors', '--delete', tree(), 's3://aws-sync/in a folder']);
    const summary = await aws(['s3', 'ls', '--recursive', '--summarize', 's3://aws-sync']);
    expect(summary).toContain(`Total Objects: ${listFiles(tree()).length}`);
  });

  test('syncs it down again with the same bytes', async () => {
    await aws(['s3', 'sync', '--only-show-errors', 's3://aws-sync/in a folder', world.path('down')]);
    expect(compareTrees({ expected: tree(), actual: world.path('down') })).toEqual([]);
  });

  test('copies from standard input and to standard output', async () => {
    await aws(['s3', 'cp', '-', 's3://aws-sync/stream'], { input: 'from standard input' });
    expect(await aws(['s3', 'cp', 's3://aws-sync/stream', '-'])).toBe('from standard input');
  });

  if (run.isTreesOnly) return;

  test('syncs from bucket to bucket, moves, and removes recursively', async () => {
    await aws([
      's3',
      'sync',
      '--only-show-errors',
      's3://aws-sync/in a folder/sizes',
      's3://aws-other/sizes',
    ]);
    await aws(['s3', 'mv', 's3://aws-other/sizes/65536.bin', 's3://aws-other/moved + é']);
    await aws(['s3', 'cp', 's3://aws-other/moved + é', world.path('moved')]);
    expectSameBytes(world.path('moved'), join(tree(), 'sizes/65536.bin'));
    // Above the threshold the copy is made of parts of its source.
    await aws(['s3', 'cp', 's3://aws-other/sizes/1.bin', world.path('grown')]);
    expectSameBytes(world.path('grown'), join(tree(), 'sizes/1.bin'));
    await aws(['s3', 'rm', '--only-show-errors', '--recursive', 's3://aws-other']);
    await aws(['s3', 'rb', 's3://aws-other']);
    expect(await aws(['s3', 'ls'])).not.toContain('aws-other');
  });

  const isSendingTrailers = transport === 'https';
  // Only where they are trailers: what they are as headers is seen with s3api below.
  const checksumAlgorithms = isSendingTrailers ? cpAlgorithms : [];
  test.for([checksumAlgorithms].filter((list) => list.length > 0))('copies with %j', async (algorithms) => {
    const large = join(tree(), 'sizes/1.bin');
    const copyBothWays = async (algorithm: string) => {
      const place = `s3://aws-sync/checksums/${algorithm}`;
      await aws(['s3', 'cp', '--only-show-errors', '--checksum-algorithm', algorithm, large, place]);
      await aws([
        's3',
        'cp',
        '--only-show-errors',
        '--checksum-mode',
        'ENABLED',
        place,
        world.path(algorithm),
      ]);
      expectSameBytes(world.path(algorithm), large);
      const place2 = ['--bucket', 'aws-sync', '--key', `checksums/${algorithm}`];
      const head = await api('head-object', ...place2, '--checksum-mode', 'ENABLED');
      expect(head[`Checksum${algorithm}`]).toEqual(expect.any(String));
    };
    await Promise.all(algorithms.map(copyBothWays));
  });

  test('puts and heads objects with checksums and metadata', async () => {
    const file = world.path('small');
    writeFileSync(file, 'small body');
    await Promise.all(
      ALGORITHMS.map(async (algorithm) => {
        const place = ['--bucket', 'aws-sync', '--key', `api/${algorithm}`];
        const more = [
          '--checksum-algorithm',
          algorithm,
          '--metadata',
          'a=1,b-c=x y',
          '--content-type',
          'x/y',
        ];
        const put = await api('put-object', ...place, '--body', file, ...more);
        const head = await api('head-object', ...place, '--checksum-mode', 'ENABLED');
        expect(head[`Checksum${algorithm}`]).toBe(put[`Checksum${algorithm}`]);
        expect(head).toMatchObject({
          ContentLength: 10,
          ContentType: 'x/y',
          Metadata: { a: '1', 'b-c': 'x y' },
        });
      }),
    );
    const ranged = [
      '--bucket',
      'aws-sync',
      '--key',
      'api/SHA256',
      '--range',
      'bytes=2-4',
      world.path('range'),
    ];
    expect(await api('get-object', ...ranged)).toMatchObject({
      ContentLength: 3,
      ContentRange: 'bytes 2-4/10',
    });
    expect(readFileSync(world.path('range'), 'utf8')).toBe('all');
  });

  test('pages through a list and deletes what it found', async () => {
    const range = ['--bucket', 'aws-sync', '--prefix', 'in a folder/odd names/'];
    const whole = await api('list-objects-v2', ...range, '--page-size', '7');
    const keys = (whole.Contents as { Key: string }[]).map((found) => found.Key);
    const names = listFiles(join(tree(), 'odd names')).map((name) => `in a folder/odd names/${name}`);
    expect([...keys].sort()).toEqual(names);
    expect((await api('list-objects', ...range, '--page-size', '7')).Contents).toHaveLength(keys.length);
    const first = await api('list-objects-v2', ...range, '--page-size', '3', '--max-items', '5');
    const more = ['--page-size', '3', '--starting-token', String(first.NextToken)];
    const rest = await api('list-objects-v2', ...range, ...more);
    expect([first, rest].flatMap((page) => page.Contents as object[])).toHaveLength(keys.length);
    const request = world.path('delete.json');
    writeFileSync(request, JSON.stringify({ Objects: keys.map((Key) => ({ Key })) }));
    const gone = await api('delete-objects', '--bucket', 'aws-sync', '--delete', `file://${request}`);
    expect(gone.Deleted).toHaveLength(keys.length);
    expect((await api('list-objects-v2', ...range)).Contents).toBeUndefined();
  });

  test('uploads in parts by hand', async () => {
    const place = ['--bucket', 'aws-sync', '--key', 'by hand'];
    const [one, two] = [world.path('part one'), world.path('part two')];
    writeFileSync(one, Buffer.alloc(5 * 1024 * 1024, 'one'));
    writeFileSync(two, 'two');
    const { UploadId } = await api('create-multipart-upload', ...place);
    const upload = [...place, '--upload-id', String(UploadId)];
    const tags = await Promise.all(
      [one, two].map((file, index) =>
        api('upload-part', ...upload, '--part-number', String(index + 1), '--body', file),
      ),
    );
    const listed = (await api('list-parts', ...upload)).Parts as { PartNumber: number; ETag: string }[];
    expect(listed.map((part) => part.ETag)).toEqual(tags.map((tag) => tag.ETag));
    const request = world.path('complete.json');
    const parts = listed.map(({ PartNumber, ETag }) => ({ PartNumber, ETag }));
    writeFileSync(request, JSON.stringify({ Parts: parts }));
    await api('complete-multipart-upload', ...upload, '--multipart-upload', `file://${request}`);
    await api('get-object', ...place, world.path('by hand'));
    const got = readFileSync(world.path('by hand'));
    expect(got.equals(Buffer.concat([readFileSync(one), readFileSync(two)]))).toBe(true);

    const aborted = await api('create-multipart-upload', '--bucket', 'aws-sync', '--key', 'aborted');
    const open = await api('list-multipart-uploads', '--bucket', 'aws-sync');
    expect((open.Uploads as { Key: string }[]).map((found) => found.Key)).toEqual(['aborted']);
    const abort = ['--bucket', 'aws-sync', '--key', 'aborted', '--upload-id', String(aborted.UploadId)];
    await api('abort-multipart-upload', ...abort);
  });

  test('presigns a URL that anyone can fetch', async () => {
    const trust = world.caFile === undefined ? [] : ['--cacert', world.caFile];
    const env = { AWS_CONFIG_FILE: world.path('config') };
    const versions: string[] = [];
    for (const config of ['', '[default]\ns3 =\n  signature_version = s3v4\n']) {
      writeFileSync(env.AWS_CONFIG_FILE, config);
      const url = await aws(['s3', 'presign', 's3://aws-sync/stream', '--expires-in', '60'], { env });
      versions.push(url.includes('X-Amz-Signature=') ? 'SigV4' : 'SigV2');
      const got = await world.run(PROGRAMS.curl, [
        '--silent',
        '--show-error',
        '--fail',
        ...trust,
        url.trim(),
      ]);
      expect(got.stdout).toBe('from standard input');
    }
    expect(versions).toEqual([presignsBy, 'SigV4']);
  });

  test('reports errors', async () => {
    const missing = ['--bucket', 'aws-sync', '--key', 'missing'];
    expect(await aws(['s3api', 'head-object', ...missing], { code: errorCode })).toContain('404');
    expect(await aws(['s3api', 'get-object', ...missing, world.path('x')], { code: errorCode })).toContain(
      'NoSuchKey',
    );
    expect(await aws(['s3', 'ls', 's3://aws-not-there'], { code: errorCode })).toContain('NoSuchBucket');
    expect(await aws(['s3', 'rb', 's3://aws-sync'], { code: 1 })).toContain('BucketNotEmpty');
    expect(await api('get-bucket-location', '--bucket', 'aws-sync')).toEqual({
      LocationConstraint: 'us-east',
    });
  });
});
