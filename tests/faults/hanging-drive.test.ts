// A drive that leaves writes unanswered, beneath the real stores: they say so, and are as they were once it answers.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect, test } from 'vitest';
import { closeUnlessItHangs, DriveHangs } from '../../src/base/drive-hangs.ts';
import { openRocksdbKv } from '../../src/platform/rocksdb/rocksdb-kv.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { programPath } from '../support/clients/client-programs.ts';
import { mountHangingDrive } from '../support/disks/hanging-drive.ts';
import { ROOT } from '../support/run/root.ts';

const MiB = 1024 * 1024;
const AFTER_MS = 500;
const SYNC_HANGS_S = 3;
const PATIENT = { clock: systemClock, maxMs: 60_000 };

const drive = mountHangingDrive(256 * MiB);
const folder = mkdtempSync(join(tmpdir(), 'holdfast-hangs-'));
afterAll(() => {
  drive?.unmount();
  rmSync(folder, { recursive: true });
});

test.skipIf(drive === undefined)(
  'a database: writes are rejected, and it is closed when the drive answers (skipped where nobody may mount one)',
  async () => {
    if (drive === undefined) return;
    const open = () =>
      openRocksdbKv({
        folder: join(drive.folder, 'database'),
        columns: { rows: { reads: 'sync', content: 'rows' } },
        hangs: { clock: systemClock, afterMs: AFTER_MS },
      });
    const row = (key: number) => ({ column: 'rows', key: Uint8Array.of(key), value: Uint8Array.of(key) });
    const kv = await open();
    await kv.commit([row(1)]);
    drive.hang();
    let closing: Promise<void>;
    try {
      await expect(kv.commit([row(2)])).rejects.toBeInstanceOf(DriveHangs);
      expect(await kv.failed).toBeInstanceOf(DriveHangs);
      expect(await kv.getMany('rows', [row(1).key])).toEqual([Buffer.of(1)]);
      closing = kv.close();
      await closeUnlessItHangs({ failed: kv.failed, close: () => closing }, PATIENT);
    } finally {
      drive.goOn();
    }
    await closing;
    const again = await open();
    await again.commit([row(3)]);
    // Of the second nobody knew.
    const [first, , third] = await again.getMany('rows', [row(1).key, row(2).key, row(3).key]);
    expect([first, third]).toEqual([Buffer.of(1), Buffer.of(3)]);
    await again.close();
  },
);

test('more threads can sync than one hanging drive of several can block', async () => {
  const databases = await Promise.all(
    ['a', 'b'].map((name) =>
      openRocksdbKv({
        folder: join(folder, name),
        columns: { rows: { reads: 'sync', content: 'rows' } },
        databaseCount: 2,
      }),
    ),
  );
  const names = readdirSync('/proc/self/task').map((task) =>
    readFileSync(`/proc/self/task/${task}/comm`, 'utf8').trim(),
  );
  for (const kv of databases) await kv.close();
  expect(names.filter((name) => name === 'rocksdb:high').length).toBeGreaterThanOrEqual(4);
});

/** Opens a witness whose syncs take longer than it waits for them; says what became of what was asked of it. */
const WITNESS_PROGRAM = `
  import { systemClock } from '${ROOT}/src/platform/system-clock.ts';
  import { openWitnessFile } from '${ROOT}/src/platform/disk/witness-file.ts';
  import { closeUnlessItHangs } from '${ROOT}/src/base/drive-hangs.ts';
  const hangs = { clock: systemClock, afterMs: ${AFTER_MS} };
  const witness = await openWitnessFile(process.argv[1], systemClock, hangs);
  const beganMs = performance.now();
  const lowered = await witness.lower(1, { epoch: 1, seq: 1 }).catch((error) => error.name);
  const { name } = await witness.failed;
  await closeUnlessItHangs(witness, { clock: systemClock, maxMs: 60_000 });
  console.log(JSON.stringify({ lowered, name, isSoon: performance.now() - beganMs < ${SYNC_HANGS_S * 1000} }));`;

test('a witness: calls that wait for its sync are rejected, and its end is not recorded', async () => {
  const inject = `inject=fdatasync:delay_enter=${SYNC_HANGS_S * 1_000_000}`;
  const node = [process.execPath, '--input-type=module', '--eval', WITNESS_PROGRAM, join(folder, 'witness')];
  const strace = spawn(programPath('strace') ?? 'strace', [
    '-f',
    '-qq',
    '-o',
    '/dev/null',
    '-e',
    inject,
    ...node,
  ]);
  const [said, complained] = await Promise.all([
    text(strace.stdout),
    text(strace.stderr),
    once(strace, 'exit'),
  ]);
  expect(complained).toBe('');
  expect(JSON.parse(said)).toEqual({ lowered: 'DriveHangs', name: 'DriveHangs', isSoon: true });
});
