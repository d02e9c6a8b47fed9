import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Refusal } from '../../src/base/refusal.ts';
import { DevCluster } from './dev-cluster.ts';

test('a port that somebody else has is refused before anything starts', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-dev-'));
  try {
    const dataDir = join(folder, 'data');
    const counts = { metadata: 1, storage: 1, gateways: 2, shards: 1 };
    const listen = `127.0.0.1:${port - 1}`;
    const cluster = new DevCluster(
      { ...counts, dataDir, listen, restarts: false, logLevel: 'info' },
      () => undefined,
    );
    const start = cluster.start();
    await expect(start).rejects.toThrow(Refusal);
    await expect(start).rejects.toThrow(/cannot listen on 127\.0\.0\.1:\d+: another program listens there/);
    expect(existsSync(dataDir)).toBe(false);
  } finally {
    other.close();
    rmSync(folder, { recursive: true });
  }
});
