// s3cmd with its default signature (V4) and the old one (V2): its own way of uploading in parts, syncing and asking for
// details.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  type ClientWorld,
  openWorld,
  PROGRAMS,
  type Transport,
  testOver,
} from '../support/clients/clients.ts';
import { changeTree, compareTrees, listFiles, writeTree } from '../support/clients/tree.ts';
import { casesOf, isLongForm } from '../support/run/long-form.ts';

interface Run {
  transport: Transport;
  signature: 'SigV2' | 'SigV4';
  args: readonly string[];
}

const RUNS = casesOf<Run>({
  short: [
    { transport: 'https', signature: 'SigV4', args: [] },
    { transport: 'http', signature: 'SigV2', args: ['--signature-v2'] },
  ],
  longOnly: [{ transport: 'http', signature: 'SigV4', args: [] }],
});

describe.each(RUNS)('s3cmd over $transport with $signature', ({ transport, signature, args: choice }) => {
  const test = testOver(transport);
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
      ...choice,
    ];
    return (await world.run(PROGRAMS.s3cmd, [...settings, ...trust, ...args])).stdout;
  };

  beforeAll(async () => {
    world = await openWorld({ transport });
    writeTree({ folder: tree(), seed: `s3cmd-${transport}`, sizeMiB: 16 });
    await s3cmd('mb', 's3://s3cmd-one');
  });
  afterAll(() => world.close());

  // It signs each request of that as it signs those of single files.
  test.skipIf(signature === 'SigV2' && !isLongForm)(
    'syncs a tree up and down, and what changed',
    async () => {
      await s3cmd('sync', `${tree()}/`, 's3://s3cmd-one/tree/');
      changeTree({ folder: tree(), seed: `s3cmd-${transport}` });
      await s3cmd('sync', '--delete-removed', `${tree()}/`, 's3://s3cmd-one/tree/');
      const listed = (await s3cmd('ls', '--recursive', 's3://s3cmd-one/tree/')).trim().split('\n');
      expect(listed).toHaveLength(listFiles(tree()).length);
      await s3cmd('sync', 's3://s3cmd-one/tree/', `${world.path('down')}/`);
      expect(compareTrees({ expected: tree(), actual: world.path('down') })).toEqual([]);
    },
  );

  test('puts and gets single files, small and in parts', async () => {
    for (const name of ['sizes/65537.bin', 'sizes/1.bin', "odd names/it's quoted", 'odd names/a+b c%20d']) {
      const local = join(tree(), name);
      await s3cmd('put', local, `s3://s3cmd-one/single/${name}`);
      await s3cmd('get', '--force', `s3://s3cmd-one/single/${name}`, world.path('got'));
      expect(readFileSync(world.path('got')).equals(readFileSync(local))).toBe(true);
    }
  });

  test('signs a URL that anyone can fetch', async () => {
    const url = await s3cmd('signurl', 's3://s3cmd-one/single/sizes/65537.bin', '+60');
    const trust = world.caFile === undefined ? [] : ['--cacert', world.caFile];
    const place = url.trim().replace(/^http:/, `${transport}:`);
    await world.run(PROGRAMS.curl, [
      '--silent',
      '--fail',
      ...trust,
      '--output',
      world.path('fetched'),
      place,
    ]);
    expect(readFileSync(world.path('fetched')).equals(readFileSync(join(tree(), 'sizes/65537.bin')))).toBe(
      true,
    );
  });

  test('shows the details of an object', async () => {
    const details = await s3cmd('info', 's3://s3cmd-one/single/sizes/65537.bin');
    expect(details).toMatch(/File size: 65537/);
    expect(details).toMatch(/MD5 sum: +[0-9a-f]{32}/);
    expect(details).toMatch(new RegExp(`ACL: +${world.owner}: FULL_CONTROL`));
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

  test('used this signature, and no other', () => {
    // Apart from the URL, which is of version 2 always.
    const seen = world.server
      .logs()
      .map(({ operation, signatureVersion }) => (operation === 'GetObject' ? undefined : signatureVersion))
      .filter((version) => version !== undefined);
    expect([...new Set(seen)]).toEqual([signature]);
  });
});
