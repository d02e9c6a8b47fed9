// What every WitnessPort promises (src/ports/witness.ts), run over each adapter; and what the file does beyond that.
import { constants, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { openWitnessFile } from '../../src/platform/disk/witness-file.ts';
import { openMemoryWitness, WitnessMedium } from '../../src/platform/memory/memory-witness.ts';
import type { WitnessPort } from '../../src/ports/witness.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { createManualClock } from '../support/run/simulated.ts';

const PAGE_BYTES = 32 * LIMITS.shardCountMax;

const folders: string[] = [];
const opened: WitnessPort[] = [];
afterEach(async () => {
  for (const witness of opened.splice(0)) await witness.close().catch(() => undefined);
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const clock = createManualClock(0);

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-witness-'));
  folders.push(folder);
  return join(folder, 'witness');
}

async function openFile(path: string): Promise<WitnessPort> {
  const witness = await openWitnessFile(path, clock);
  opened.push(witness);
  return witness;
}

/** Opens again and again what was written through the earlier ones, which are left as a killed process leaves them. */
type Reopen = () => Promise<WitnessPort>;

describe.each<[string, () => Reopen]>([
  [
    'memory',
    () => {
      const medium = new WitnessMedium();
      return async () => openMemoryWitness(medium, clock);
    },
  ],
  [
    'file',
    () => {
      const path = newPath();
      return () => openFile(path);
    },
  ],
])('%s', (_name, prepare) => {
  test('a replica that begins again is marked until its next acknowledgement', async () => {
    const reopen = prepare();
    const before = await reopen();
    before.write(3, { epoch: 2, seq: 10 });
    await before.lower(3, { epoch: 2, seq: 10, isEmptied: true });
    expect((await reopen()).read(3)).toEqual({ epoch: 2, seq: 10, isEmptied: true });
    const witness = await reopen();
    witness.write(3, { epoch: 2, seq: 10 });
    expect((await reopen()).read(3)).toEqual({ epoch: 2, seq: 10 });
  });

  test('a new one is empty', async () => {
    const witness = await prepare()();
    expect([0, 1, LIMITS.shardCountMax - 1].map((shard) => witness.read(shard))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('the next process sees the last write of each shard', async () => {
    const reopen = prepare();
    const first = await reopen();
    first.write(0, { epoch: 1, seq: 5 });
    first.write(7, { epoch: 2, seq: 2 ** 40 });
    first.write(0, { epoch: 1, seq: 6 });
    expect(first.read(0)).toEqual({ epoch: 1, seq: 6 });
    const second = await reopen();
    expect(second.read(0)).toEqual({ epoch: 1, seq: 6 });
    expect(second.read(7)).toEqual({ epoch: 2, seq: 2 ** 40 });
    expect(second.read(1)).toBeUndefined();
  });

  test('a position can be lowered, and removed', async () => {
    const reopen = prepare();
    const first = await reopen();
    first.write(3, { epoch: 4, seq: 100 });
    first.write(4, { epoch: 4, seq: 50 });
    await first.lower(3, { epoch: 3, seq: 90 });
    await first.lower(4, undefined);
    const second = await reopen();
    expect(second.read(3)).toEqual({ epoch: 3, seq: 90 });
    expect(second.read(4)).toBeUndefined();
    second.write(3, { epoch: 5, seq: 91 });
    expect((await reopen()).read(3)).toEqual({ epoch: 5, seq: 91 });
  });

  test('over many syncs the newest write counts', async () => {
    const reopen = prepare();
    const witness = await reopen();
    for (let seq = 1; seq <= 9; seq++) {
      witness.write(seq % 2, { epoch: 1, seq });
      await witness.lower(9, { epoch: 1, seq });
      witness.write(2, { epoch: 1, seq });
    }
    const next = await reopen();
    expect([0, 1, 2].map((shard) => next.read(shard))).toEqual([
      { epoch: 1, seq: 8 },
      { epoch: 1, seq: 9 },
      { epoch: 1, seq: 9 },
    ]);
  });

  test('a closed one accepts nothing more, and closing it again is no error', async () => {
    const witness = await prepare()();
    await witness.close();
    await witness.close();
    expect(() => witness.write(0, { epoch: 1, seq: 1 })).toThrow('closed');
    await expect(witness.lower(0, undefined)).rejects.toThrow('closed');
  });
});

describe('memory, as a medium', () => {
  test('a loss of power loses unsynced writes; the clock syncs each second', async () => {
    const medium = new WitnessMedium();
    const manual = createManualClock(0);
    const witness = openMemoryWitness(medium, manual);
    witness.write(0, { epoch: 1, seq: 1 });
    manual.advance(LIMITS.witnessSyncMs);
    await Promise.resolve();
    witness.write(0, { epoch: 1, seq: 2 });
    medium.losePower();
    expect(openMemoryWitness(medium, clock).read(0)).toEqual({ epoch: 1, seq: 1 });
    medium.damage(0);
    expect(openMemoryWitness(medium, clock).read(0)).toBe('damaged');
  });

  test('a failure is final', async () => {
    const witness = openMemoryWitness(new WitnessMedium(), clock);
    witness.fail(new Error('disk on fire'));
    expect((await witness.failed).message).toBe('disk on fire');
    expect(() => witness.write(0, { epoch: 1, seq: 1 })).toThrow('disk on fire');
  });
});

describe('the file', () => {
  test('a torn record leaves the one of the other page', async () => {
    const path = newPath();
    const first = await openFile(path);
    await first.lower(5, { epoch: 1, seq: 10 });
    first.write(5, { epoch: 1, seq: 11 });
    const bytes = readFileSync(path);
    const [one, other] = [bytes.readUIntBE(5 * 32 + 16, 6), bytes.readUIntBE(PAGE_BYTES + 5 * 32 + 16, 6)];
    expect([one, other]).toEqual([10, 11]);
    flip(bytes, PAGE_BYTES + 5 * 32 + 20);
    writeFileSync(path, bytes);
    expect((await openFile(path)).read(5)).toEqual({ epoch: 1, seq: 10 });
  });

  test('a record with no readable copy is damaged until it is written again', async () => {
    const path = newPath();
    const first = await openFile(path);
    await first.lower(5, { epoch: 1, seq: 10 });
    await first.lower(5, { epoch: 1, seq: 11 });
    first.write(6, { epoch: 1, seq: 3 });
    const bytes = readFileSync(path);
    for (const page of [0, PAGE_BYTES]) flip(bytes, page + 5 * 32 + 6);
    writeFileSync(path, bytes);
    const second = await openFile(path);
    expect(second.read(5)).toBe('damaged');
    expect(second.read(6)).toEqual({ epoch: 1, seq: 3 });
    second.write(5, { epoch: 2, seq: 12 });
    expect((await openFile(path)).read(5)).toEqual({ epoch: 2, seq: 12 });
  });

  test('a record in another shard’s place is damage', async () => {
    const path = newPath();
    const first = await openFile(path);
    first.write(5, { epoch: 1, seq: 10 });
    const bytes = readFileSync(path);
    bytes.copyWithin(9 * 32, 5 * 32, 6 * 32);
    writeFileSync(path, bytes);
    expect((await openFile(path)).read(9)).toBe('damaged');
  });

  test('records that a cut file lacks are damaged, not unknown', async () => {
    const path = newPath();
    (await openFile(path)).write(1, { epoch: 1, seq: 1 });
    truncateSync(path, 32 * 100);
    const witness = await openFile(path);
    expect(witness.read(1)).toEqual({ epoch: 1, seq: 1 });
    // One copy that was never written, and one that is gone: it may have been the only one.
    expect(witness.read(99)).toBe('damaged');
    expect(witness.read(100)).toBe('damaged');
  });

  test('is synced each second when there is something to sync, and at the end', async () => {
    const path = newPath();
    const manual = createManualClock(0);
    const syncs = await countSyncs(path, async () => {
      const witness = await openWitnessFile(path, manual);
      opened.push(witness);
      witness.write(0, { epoch: 1, seq: 1 });
      witness.write(0, { epoch: 1, seq: 1 });
      await untilPage(path, { shard: 0, manual, write: (seq) => witness.write(0, { epoch: 1, seq }) });
      await witness.close();
    });
    expect(syncs).toBeGreaterThanOrEqual(2);
  });

  test('a failed sync is final (R20)', async () => {
    const path = newPath();
    const witness = await openFile(path);
    await withDatasync(
      path,
      async () => {
        throw new Error('EIO');
      },
      async () => {
        await expect(witness.lower(0, { epoch: 1, seq: 1 })).rejects.toThrow('EIO');
      },
    );
    expect((await witness.failed).message).toBe('EIO');
    expect(() => witness.write(0, { epoch: 1, seq: 2 })).toThrow('EIO');
    await expect(witness.lower(0, undefined)).rejects.toThrow('EIO');
  });
});

function flip(bytes: Buffer, at: number): void {
  bytes.writeUInt8(bytes.readUInt8(at) ^ 0x80, at);
}

/** Moves the clock until a write has gone to the second page: the first one was synced. */
async function untilPage(
  path: string,
  options: { shard: number; manual: ReturnType<typeof createManualClock>; write(seq: number): void },
): Promise<void> {
  for (let seq = 2; ; seq++) {
    options.manual.advance(LIMITS.witnessSyncMs);
    await new Promise((resolve) => setImmediate(resolve));
    options.write(seq);
    if (readFileSync(path)[PAGE_BYTES + options.shard * 32 + 2] !== 0) return;
  }
}

/** Runs `work` while file handles sync by `datasync`: the disk itself cannot be made to fail from here. */
async function withDatasync(
  path: string,
  datasync: (this: FileHandle) => Promise<void>,
  work: () => Promise<void>,
): Promise<void> {
  const file = await open(path, constants.O_RDWR);
  const prototype = Object.getPrototypeOf(file) as FileHandle;
  await file.close();
  const real = prototype.datasync;
  prototype.datasync = datasync;
  try {
    await work();
  } finally {
    prototype.datasync = real;
  }
}

async function countSyncs(path: string, work: () => Promise<void>): Promise<number> {
  await (await openWitnessFile(path, clock)).close();
  const file = await open(path, constants.O_RDWR);
  const real = (Object.getPrototypeOf(file) as FileHandle).datasync;
  await file.close();
  let count = 0;
  await withDatasync(
    path,
    function (this: FileHandle) {
      count++;
      return real.call(this);
    },
    work,
  );
  return count;
}
