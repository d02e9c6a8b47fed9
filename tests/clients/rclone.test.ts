// rclone against a whole server: sync, check, copies within the server, moves, times and clean-up; over TLS with a
// full tree, over HTTP with a small one and the other version of the list operation.
// Parts of 5 MiB, so that many files are uploaded in parts.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  type ClientWorld,
  openWorld,
  PROGRAMS,
  type Transport,
  testOver,
} from '../support/clients/clients.ts';
import { fullTreeMiB } from '../support/clients/full-tree.ts';
import { changeTree, compareTrees, listFiles, writeTree } from '../support/clients/tree.ts';
import { casesOf } from '../support/run/long-form.ts';

const RUNS = casesOf<{ transport: Transport; sizeMiB: number; listVersion: string }>({
  short: [{ transport: 'https', sizeMiB: fullTreeMiB(), listVersion: '2' }],
  longOnly: [{ transport: 'http', sizeMiB: 32, listVersion: '1' }],
});

describe.each(RUNS)('rclone over $transport with $sizeMiB MiB', ({ transport, sizeMiB, listVersion }) => {
  const test = testOver(transport);
  let world: ClientWorld;
  const tree = () => world.path('tree');
  const rclone = async (...args: string[]) => {
    const ran = await world.run(PROGRAMS.rclone, ['--transfers', '8', '--checkers', '8', ...args], {
      env: {
        RCLONE_CONFIG_HF_TYPE: 's3',
        RCLONE_CONFIG_HF_PROVIDER: 'Other',
        RCLONE_CONFIG_HF_ENDPOINT: world.server.endpoint,
        RCLONE_CONFIG_HF_ACCESS_KEY_ID: world.server.accessKey,
        RCLONE_CONFIG_HF_SECRET_ACCESS_KEY: world.server.secretKey,
        RCLONE_S3_UPLOAD_CUTOFF: '5Mi',
        RCLONE_S3_CHUNK_SIZE: '5Mi',
        RCLONE_S3_LIST_VERSION: listVersion,
        RCLONE_LOW_LEVEL_RETRIES: '1',
        RCLONE_RETRIES: '1',
        ...(world.caFile !== undefined && { RCLONE_CA_CERT: world.caFile }),
      },
    });
    return ran.stdout;
  };
  const lines = (text: string) => text.split('\n').filter((line) => line !== '');
  const requestCount = (operation: string) =>
    world.server.logs().filter((line) => line.operation === operation).length;

  beforeAll(async () => {
    world = await openWorld({ transport });
    writeTree({ folder: tree(), seed: `rclone-${transport}`, sizeMiB });
  });
  afterAll(() => world.close());

  test('syncs a tree and finds it equal', async () => {
    await rclone('sync', tree(), 'hf:rclone-one/copy of tree');
    await rclone('check', tree(), 'hf:rclone-one/copy of tree');
    expect(requestCount('CompleteMultipartUpload')).toBeGreaterThan(0);
  });

  test('has nothing to do the second time', async () => {
    const putCount = requestCount('PutObject');
    await rclone('sync', tree(), 'hf:rclone-one/copy of tree');
    expect(requestCount('PutObject')).toBe(putCount);
  });

  test('syncs changes', async () => {
    changeTree({ folder: tree(), seed: `rclone-${transport}` });
    await rclone('sync', tree(), 'hf:rclone-one/copy of tree');
    await rclone('check', tree(), 'hf:rclone-one/copy of tree');
    await rclone('check', '--download', join(tree(), 'odd names'), 'hf:rclone-one/copy of tree/odd names');
    await rclone('check', '--download', join(tree(), 'large'), 'hf:rclone-one/copy of tree/large');
  });

  test('lists every name unchanged', async () => {
    const found = lines(await rclone('lsf', '-R', '--files-only', 'hf:rclone-one/copy of tree'));
    expect(found.sort()).toEqual(listFiles(tree()));
  });

  test('copies back with the same bytes and times', async () => {
    await rclone('copy', 'hf:rclone-one/copy of tree', world.path('back'));
    expect(compareTrees({ expected: tree(), actual: world.path('back') })).toEqual([]);
    const timeOf = (folder: string, path: string) => Math.floor(statSync(join(folder, path)).mtimeMs);
    const moved = listFiles(tree()).filter(
      (path) => timeOf(tree(), path) !== timeOf(world.path('back'), path),
    );
    expect(moved).toEqual([]);
  });

  test('copies from bucket to bucket without the bytes passing through it', async () => {
    const getCount = requestCount('GetObject');
    await rclone('copy', '--s3-copy-cutoff', '5Mi', 'hf:rclone-one', 'hf:rclone-two');
    expect(requestCount('GetObject')).toBe(getCount);
    expect(requestCount('UploadPartCopy')).toBeGreaterThan(0);
    await rclone('check', '--download', join(tree(), 'large'), 'hf:rclone-two/copy of tree/large');
    await rclone('check', '--download', join(tree(), 'odd names'), 'hf:rclone-two/copy of tree/odd names');
  });

  test('moves, touches and deletes', async () => {
    const from = 'hf:rclone-two/copy of tree/sizes/65536.bin';
    await rclone('moveto', from, 'hf:rclone-two/moved/+ %41 é.bin');
    expect(lines(await rclone('lsf', 'hf:rclone-two/moved'))).toEqual(['+ %41 é.bin']);
    expect(lines(await rclone('lsf', 'hf:rclone-two/copy of tree/sizes'))).not.toContain('65536.bin');
    await rclone('touch', '--timestamp', '2021-02-03T04:05:06', 'hf:rclone-two/moved/+ %41 é.bin');
    const listed = await rclone('lsf', '--format', 't', 'hf:rclone-two/moved');
    expect(listed).toContain('2021-02-03 04:05:06');
    await rclone('delete', '--include', '*.bin', 'hf:rclone-two');
    const left = lines(await rclone('lsf', '-R', '--files-only', 'hf:rclone-two'));
    expect(left.filter((name) => name.endsWith('.bin'))).toEqual([]);
    expect(left.length).toBeGreaterThan(0);
  });

  test('purges a bucket', async () => {
    await rclone('purge', 'hf:rclone-two');
    expect(lines(await rclone('lsf', 'hf:'))).toEqual(['rclone-one/']);
  });
});
