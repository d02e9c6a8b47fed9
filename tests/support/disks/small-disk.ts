// A file system of its own, of a few hundred MiB, for tests of full disks: in memory, mounted for the time of a test.
// Only root may mount; where that is not allowed either, such tests are skipped, and say so.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SmallDisk {
  readonly folder: string;
  freeBytes(): number;
  /** Takes all room but `leftBytes`, as other programs on the machine might; `all` gives it back. */
  leave(leftBytes: number | 'all'): void;
  unmount(): void;
}

/** Undefined where mounting is not allowed. */
export function mountSmallDisk(sizeBytes: number): SmallDisk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeBytes}`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    rmdirSync(folder);
    return undefined;
  }
  let isMounted = true;
  const unmount = () => {
    if (!isMounted) return;
    isMounted = false;
    execFileSync('umount', ['--lazy', folder]);
    rmdirSync(folder);
  };
  process.once('exit', unmount);
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  };
  const other = join(folder, 'other-programs');
  return {
    folder,
    freeBytes,
    leave(leftBytes) {
      writeFileSync(other, '');
      if (leftBytes === 'all') return;
      const takenBytes = freeBytes() - leftBytes;
      if (takenBytes > 0) execFileSync('fallocate', ['--length', String(Math.ceil(takenBytes)), other]);
    },
    unmount,
  };
}
