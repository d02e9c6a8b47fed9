// What a metadata node does about a database that is of no use any more (R17): puts it aside, for salvage, and begins with
// an empty one. That is another replica (R1), which is given everything by the others; who must be replaced in the voters
// they decide. A second one is not put aside beside the first: a disk that loses bytes again is to be replaced.
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Refusal } from '../base/refusal.ts';
import { syncFolder, writeDurableFile } from '../platform/disk/durable-file.ts';

/** Says that the database is to be put aside at the next start. */
const MARK_FILE = 'unreadable.json';
const ASIDE = '.unreadable';

/** The process is to end after this: what it has open is to be put aside. */
export async function markUnreadable(folder: string, error: Error): Promise<void> {
  const mark = { at: new Date().toISOString(), why: error.message };
  await writeDurableFile(join(folder, MARK_FILE), `${JSON.stringify(mark)}\n`);
}

export async function isMarkedUnreadable(folder: string): Promise<boolean> {
  return isThere(join(folder, MARK_FILE));
}

/**
 * Moves what `names` say, each to a name of its own beside it; done when it resolves, and done to its end at the next start
 * when it was cut short. Nothing may have them open. Throws {@link Refusal} when earlier ones are still there.
 */
export async function putAside(folder: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const from = join(folder, name);
    const to = `${from}${ASIDE}`;
    if (!(await isThere(from))) continue;
    if (await isThere(to))
      throw new Refusal(
        `${from} cannot be read, and ${to} is there from an earlier time: has the disk lost bytes again? When the others have all copies (holdfast cluster status), remove ${to}, or replace the disk, and start the node again.`,
      );
    await rename(from, to);
  }
  await syncFolder(folder);
  await rm(join(folder, MARK_FILE), { force: true });
  await syncFolder(folder);
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
