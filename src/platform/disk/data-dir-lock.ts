// Opens the data folder for one server: makes it at the first start, refuses it when another server holds it, it
// cannot be written, it is of a newer format or it is something else. A refusal leaves the folder as it was.
// Not here: what the server keeps in it (keys, stores, certificates).
import { constants } from 'node:fs';
import { access, readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createSequence } from '../../base/async/sequence.ts';
import { Refusal } from '../../base/refusal.ts';
import { syncFolder, writeDurableFile } from './durable-file.ts';
import { makeFolder } from './make-folder.ts';

/** Layouts of the folder. A later program reads earlier ones, never the reverse. */
const FIRST_FORMAT = 1;
/** Bytes of chunks may lie in extents, where a program of before finds none. */
export const EXTENTS_FORMAT = 2;
/** The last one that this program knows. */
const DATA_FORMAT = EXTENTS_FORMAT;

/** Of every data folder. */
export const FORMAT_FILE = 'format.json';
/** Of a folder that is becoming those of a cluster's roles, or has become them: `holdfast cluster grow`. */
export const GROW_FILE = 'grow.json';
const LOCK_FILE = 'lock';
/** What a first start that was cut short may have left beside the lock, and what file systems put there. */
const HARMLESS = [LOCK_FILE, `${FORMAT_FILE}.new`, 'lost+found'];
const SQLITE_BUSY = 5;

/** Keeps the locks from the garbage collector, which would close and so release them. */
const held = new Set<DatabaseSync>();

/** The folder cannot be used; the message says why and names it. */
export class DataDirError extends Refusal {
  override name = 'DataDirError';
}

export interface DataDir {
  /** Absolute. */
  readonly path: string;
  /** Number of metadata shards, fixed when the folder was made. */
  readonly shards: number;
  /** True when this call made it. */
  readonly isNew: boolean;
  /** The folder is of this format from now on, or of the later one that it had: no program that does not know it opens it. */
  raiseFormat(format: number): Promise<void>;
  /** Lets go of the folder. The end of the process does so too, however it ends. */
  close(): void;
}

export interface DataDirOptions {
  readonly path: string;
  /** For a new folder; an existing one keeps its number. */
  readonly shards: number;
}

interface FormatFile {
  readonly format: number;
  readonly shards: number;
  readonly createdAt: string;
}

/** Takes the data folder. Rejects with {@link DataDirError}. */
export async function openDataDir(options: DataDirOptions): Promise<DataDir> {
  const path = resolve(options.path);
  // Looks before it touches; what may change meanwhile is looked at again under the lock.
  if (await isThere(path)) {
    await refuseUnusable(path);
    await readFormat(path);
  }
  await makeDataFolder(path);
  const lock = takeLock(path);
  try {
    const found = await readFormat(path);
    let format = found ?? (await writeFormat(path, newFormat(options.shards)));
    // Disks of a node are opened beside one another.
    const inSequence = createSequence();
    return {
      path,
      shards: format.shards,
      isNew: found === undefined,
      raiseFormat: (to) =>
        inSequence(async () => {
          if (to > format.format) format = await writeFormat(path, { ...format, format: to });
        }),
      close: () => release(lock),
    };
  } catch (error) {
    release(lock);
    throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw new DataDirError(`the data folder ${path} cannot be used: ${(error as Error).message}`);
  }
  throw new DataDirError(`the data folder ${path} is not a folder`);
}

async function refuseUnusable(path: string): Promise<void> {
  try {
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new DataDirError(`the data folder ${path} is not writable: ${(error as Error).message}`);
  }
}

async function makeDataFolder(path: string): Promise<void> {
  try {
    const madeFirst = await makeFolder(path, 0o700);
    // Its name in the folder above must survive a crash as well.
    if (madeFirst !== undefined) await syncFolder(dirname(madeFirst));
  } catch (error) {
    throw new DataDirError(`the data folder ${path} cannot be made: ${(error as Error).message}`);
  }
}

/**
 * An exclusive record lock of the operating system on the file `lock`, by way of an empty SQLite database, because
 * Node has no call for it. The kernel drops it with the process, it is atomic, and processes in other containers over
 * the same file system see it: none of which a file with a process id can offer.
 */
function takeLock(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(join(path, LOCK_FILE));
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    held.add(lock);
    return lock;
  } catch (error) {
    lock?.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) {
      throw new DataDirError(`the data folder ${path} is in use by another Holdfast server`);
    }
    throw new DataDirError(`the data folder ${path} cannot be locked: ${(error as Error).message}`);
  }
}

function release(lock: DatabaseSync): void {
  if (held.delete(lock)) lock.close();
}

/** What the folder says of itself, undefined for an empty one. Rejects for newer formats and for other folders. */
async function readFormat(path: string): Promise<FormatFile | undefined> {
  let text: string;
  try {
    text = await readFile(join(path, FORMAT_FILE), 'utf8');
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') {
      throw new DataDirError(`the data folder ${path} cannot be read: ${(error as Error).message}`);
    }
    const names = await readdir(path);
    const strange = names.find((name) => !HARMLESS.includes(name));
    if (strange === undefined) return undefined;
    if (names.includes(GROW_FILE))
      throw new DataDirError(
        `${path} has become a cluster's, or was becoming one: finish \`holdfast cluster grow ${path}\`, then start the roles with the folders in it`,
      );
    throw new DataDirError(
      `${path} is not a Holdfast data folder and not empty (it holds ${strange}); choose another or an empty one`,
    );
  }
  const format = parseFormat(text);
  if (format === undefined) throw new DataDirError(`${join(path, FORMAT_FILE)} is damaged`);
  if (format.format > DATA_FORMAT) {
    throw new DataDirError(
      `the data folder ${path} is of format ${format.format}, newer than this program reads (${DATA_FORMAT}); run a newer Holdfast`,
    );
  }
  return format;
}

function parseFormat(text: string): FormatFile | undefined {
  try {
    const json = JSON.parse(text) as FormatFile;
    const isValid = Number.isSafeInteger(json.format) && json.format >= 1;
    // Of a newer format nothing but its number is known.
    if (
      !isValid ||
      (json.format <= DATA_FORMAT && !(Number.isSafeInteger(json.shards) && json.shards >= 1))
    ) {
      return undefined;
    }
    return json;
  } catch {
    return undefined;
  }
}

/**
 * A folder that is no data folder any more, or is one, held against every other server. Not for serving it: `openDataDir`.
 * Rejects with {@link DataDirError}.
 */
export async function lockDataDir(path: string): Promise<{ close(): void }> {
  await refuseUnusable(path);
  const lock = takeLock(path);
  return { close: () => release(lock) };
}

/** What the folder says of itself; undefined: it says nothing. Rejects with {@link DataDirError}. */
export async function readDataDirShards(path: string): Promise<number | undefined> {
  if (!(await isThere(path))) throw new DataDirError(`there is no folder ${path}`);
  try {
    await access(join(path, FORMAT_FILE));
  } catch {
    return undefined;
  }
  return (await readFormat(path))?.shards;
}

/** Makes a folder a data folder. */
export async function writeFormatFile(path: string, shards: number): Promise<void> {
  await writeFormat(path, newFormat(shards));
}

/** No server takes the folder any more. Durable when it resolves. */
export async function removeFormatFile(path: string): Promise<void> {
  await rm(join(path, FORMAT_FILE), { force: true });
  await syncFolder(path);
}

function newFormat(shards: number): FormatFile {
  return { format: FIRST_FORMAT, shards, createdAt: new Date().toISOString() };
}

async function writeFormat(path: string, format: FormatFile): Promise<FormatFile> {
  await writeDurableFile(join(path, FORMAT_FILE), `${JSON.stringify(format, undefined, 2)}\n`);
  return format;
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
