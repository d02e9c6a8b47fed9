// A file system of its own that can be made to leave writes unanswered, as a drive that is dying does: ext4 in a file,
// frozen. Only root may mount and freeze; where that is not allowed either, such tests are skipped, and say so.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const SEEN_AFTER_MS = 200;

export interface HangingDrive {
  readonly folder: string;
  /** From now on who writes waits, and cannot be killed. */
  hang(): void;
  /** What has waited is done. */
  goOn(): void;
  unmount(): void;
}

/** Undefined where mounting is not allowed. */
export function mountHangingDrive(sizeBytes: number): HangingDrive | undefined {
  const own = mkdtempSync(join(tmpdir(), 'holdfast-drive-'));
  const [image, folder] = [join(own, 'image'), join(own, 'drive')];
  const run = (program: string, ...args: string[]) => execFileSync(program, args, { stdio: 'ignore' });
  writeFileSync(image, '');
  truncateSync(image, sizeBytes);
  mkdirSync(folder);
  try {
    run('mkfs.ext4', '-q', '-E', 'root_owner=0:0', image);
    run('mount', '-o', 'loop', image, folder);
  } catch {
    rmSync(own, { recursive: true });
    return undefined;
  }
  let isMounted = true;
  let hangs = false;
  const goOn = () => {
    if (hangs) run('fsfreeze', '--unfreeze', folder);
    hangs = false;
  };
  const unmount = () => {
    if (!isMounted) return;
    isMounted = false;
    // One that hangs could not be unmounted, and a process that writes to it could not be ended.
    goOn();
    run('umount', '--lazy', folder);
    rmSync(own, { recursive: true });
  };
  process.once('exit', unmount);
  return {
    folder,
    goOn,
    unmount,
    hang() {
      hangs = true;
      run('fsfreeze', '--freeze', folder);
    },
  };
}

/**
 * A witness is written by the calling thread, and a frozen file system keeps that thread as it does every writer: the process
 * stands still then, which is another fault. Tried until it does not.
 */
export async function hangBeneath(processId: number, drive: HangingDrive): Promise<void> {
  for (;;) {
    drive.hang();
    await sleep(SEEN_AFTER_MS);
    if (!/\) D /.test(readFileSync(`/proc/${processId}/stat`, 'latin1'))) return;
    drive.goOn();
    await sleep(SEEN_AFTER_MS);
  }
}
