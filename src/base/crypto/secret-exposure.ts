// The one rule for files with secrets (keys, credentials, passwords): who but the process may have a look at them.
import { Refusal } from '../refusal.ts';

/** What of a file's state decides. */
export interface FileRights {
  /** Permission bits, as stat gives them. */
  mode: number;
  /** Owner. */
  uid: number;
}

const OTHERS = 0o007;
const GROUP = 0o070;
const GROUP_READ = 0o040;

/**
 * Throws {@link Refusal} when a file with a secret can be reached by others than the process. A file of another owner, say
 * root's, may be readable by its group: that is how service managers and container platforms hand a secret to one service.
 * `ownUid`: the user of the process.
 */
export function refuseExposedSecret(path: string, { mode, uid }: FileRights, ownUid: number): void {
  const allowed = uid === ownUid ? 0 : GROUP_READ;
  if ((mode & (OTHERS | GROUP) & ~allowed) === 0) return;
  const remedy =
    uid === ownUid
      ? `run chmod 600 ${path}`
      : `mode 0400 for the user of this process, or 0440 with a group that it is in, is what it should have`;
  const modeText = (mode & 0o777).toString(8).padStart(4, '0');
  throw new Refusal(
    `${path} holds a secret and can be read or written by others than its owner (mode ${modeText}): ${remedy}`,
  );
}
