// s3cmd with its default signature (V4): its own way of uploading in parts, syncing and asking for details.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientWorld, openWorld, PROGRAMS, type Transport } from '../support/clients.ts';
import { changeTree, compareTrees, listFiles, writeTree } from '../support/tree.ts';

const TRANSPORTS: Transport[] = ['http', 'https'];

describe.each(TRANSPORTS)('s3cmd over %s', (transport) => {
  let world: ClientWorld;
  const tree = () => world.path('tree');
  const s3cmd = async (...args: string[]) => {
    const trust = world.caFile === undefined ? ['--no-ssl'] : ['--ssl', `--ca-certs=${world.caFile}`];
    const settings = [
      `--access_key=${world.server.accessKey}`,
      `--secret_key=${world.server.secretKey}`,
      `--host=${world.host}`,
      `--host-bucket=${world.host}`,
      '--multipart-chunk-size-mb=5',
      '--no-progress',
    ];
    return (await world.run(PROGRAMS.s3cmd, [...settings, ...trust, ...args])).stdout;
  };

  beforeAll(async () => {
    world = await openWorld({ transport });
    writeTree({ folder: tree(), seed: `s3cmd-${transport}`, sizeMiB: 16 });
    await s3cmd('mb', 's3://s3cmd-one');
  });
  afterAll(() => world.close());

  test('syncs a tree up and down, and what changed', async () => {
    await s3cmd('sync', `${tree()}/`, 's3://s3cmd-one/tree/');
    changeTree({ folder: tree(), seed: `s3cmd-${transport}` });
    await s3cmd('sync', '--delete-removed', `${tree()}/`, 's3://s3cmd-one/tree/');
    const listed = (await s3cmd('ls', '--recursive', 's3://s3cmd-one/tree/')).trim().split('\n');
    expect(listed).toHaveLength(listFiles(tree()).length);
    await s3cmd('sync', 's3://s3cmd-one/tree/', `${world.path('down')}/`);
    expect(compareTrees({ expected: tree(), actual: world.path('down') })).toEqual([]);
  });

  test('puts and gets single files, small and in parts', async () => {
    for (const name of ['sizes/65537.bin', 'sizes/1.bin', "odd names/it's quoted", 'odd names/a+b c%20d']) {
      const local = join(tree(), name);
      await s3cmd('put', local, `s3://s3cmd-one/single/${name}`);
      await s3cmd('get', '--force', `s3://s3cmd-one/single/${name}`, world.path('got'));
      expect(readFileSync(world.path('got')).equals(readFileSync(local))).toBe(true);
    }
  });

  test('tells the details of an object', async () => {
    const details = await s3cmd('info', 's3://s3cmd-one/single/sizes/65537.bin');
    expect(details).toMatch(/File size: 65537/);
    expect(details).toMatch(/MD5 sum: +[0-9a-f]{32}/);
  });

  test('copies, moves and deletes', async () => {
    await s3cmd('cp', 's3://s3cmd-one/single/sizes/65537.bin', 's3://s3cmd-one/copied');
    await s3cmd('mv', 's3://s3cmd-one/copied', 's3://s3cmd-one/moved');
    expect(await s3cmd('ls', 's3://s3cmd-one/')).toMatch(/65537 +s3:\/\/s3cmd-one\/moved\n/);
    await s3cmd('del', 's3://s3cmd-one/moved');
    await s3cmd('del', '--recursive', '--force', 's3://s3cmd-one/');
    expect((await s3cmd('la')).trim()).toBe('');
    await s3cmd('rb', 's3://s3cmd-one');
    expect(await s3cmd('ls')).toBe('');
  });
});
