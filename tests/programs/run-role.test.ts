import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const MAIN = join(import.meta.dirname, '..', '..', 'cmd', 'main.ts');

test('a disk that is named twice is refused', () => {
  const env = { ...process.env, HOLDFAST_STORAGE_DISKS: '/mnt/a,/mnt/b,/mnt/../mnt/a' };
  const { status, stderr } = spawnSync(process.execPath, [MAIN, 'storage'], { env, encoding: 'utf8' });
  expect(status).toBe(1);
  expect(stderr).toContain('holdfast: storage.disks names /mnt/a twice');
});

test('a refused start is explained in the log, and to the caller', async () => {
  const env = { ...process.env, HOLDFAST_CLUSTER_SECRET: 'a secret that only this test knows' };
  const child = spawn(process.execPath, [MAIN, 'gateway'], { env });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  await once(child, 'close');
  const why = '--join must name the etcd servers of the cluster';
  const lines = texts.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ event }) => event)).toEqual(['not-started', 'stopped']);
  expect(lines[0]).toMatchObject({ role: 'gateway' });
  expect(lines[0].err).toEqual({ type: 'Refusal', message: expect.stringContaining(why) });
  expect(texts.stderr).toContain(`holdfast: ${why}`);
  expect(child.exitCode).not.toBe(0);
});
