// A file, or what comes on standard input, whose size is known before the first byte of it is sent, and which is read twice:
// for its digest, and to be sent. What is written to it meanwhile does not belong to it.
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Refusal } from '../base/refusal.ts';
import { formatBytes } from './format.ts';

const STANDARD_INPUT = '-';
const PIECE_BYTES = 256 * 1024;

export interface FileSource {
  sizeBytes: number;
  /** Its bytes, from the first on; as often as it is called. Throws {@link Refusal} when they cannot be had any more. */
  read(): AsyncGenerator<Buffer, void>;
}

export interface SourceOptions {
  /** What `-` stands for. */
  input: AsyncIterable<Buffer>;
  /** What it is read for takes no more: nothing behind that is read, or kept. */
  bytesMax: number;
  /** As a Refusal names it. */
  taker: string;
}

/**
 * Calls `use` with what is in `file`, `-` being the input. Throws {@link Refusal} for what cannot be read, and for what is
 * too long.
 */
export async function withFileSource<Result>(
  file: string,
  options: SourceOptions,
  use: (source: FileSource) => Promise<Result>,
): Promise<Result> {
  if (file === STANDARD_INPUT) return withSpooled(upTo(options, options.input), 'standard input', use);
  const handle = await open(file).catch(refuseToRead(file));
  try {
    const stats = await handle.stat();
    if (stats.isDirectory()) throw new Refusal(`cannot read ${file}: it is a folder`);
    // A pipe, or a file of /proc: only who reads it knows how long it is.
    if (!stats.isFile() || stats.size === 0)
      return await withSpooled(upTo(options, readOn(handle, file)), file, use);
    if (stats.size > options.bytesMax) throw tooLong(options, formatBytes(stats.size));
    return await use(sourceOf(handle, file, stats.size));
  } finally {
    await handle.close();
  }
}

/** Keeps all of it in a temporary file. */
async function withSpooled<Result>(
  input: AsyncIterable<Buffer>,
  name: string,
  use: (source: FileSource) => Promise<Result>,
): Promise<Result> {
  const handle = await openUnnamed();
  try {
    await handle.writeFile(input).catch(refuseToRead(`${name} into ${tmpdir()}`));
    return await use(sourceOf(handle, name, (await handle.stat()).size));
  } finally {
    await handle.close();
  }
}

async function* upTo(options: SourceOptions, input: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let sizeBytes = 0;
  for await (const piece of input) {
    sizeBytes += piece.length;
    if (sizeBytes > options.bytesMax) throw tooLong(options, 'more');
    yield piece;
  }
}

function tooLong({ taker, bytesMax }: SourceOptions, found: string): Refusal {
  return new Refusal(`${taker} takes ${formatBytes(bytesMax)} at most, and this has ${found}`);
}

/** A temporary file that has lost its name already: however this process ends, nothing of it stays. */
async function openUnnamed(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-input-'));
  try {
    return await open(join(folder, 'input'), 'w+', 0o600);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function sourceOf(handle: FileHandle, name: string, sizeBytes: number): FileSource {
  return {
    sizeBytes,
    async *read() {
      for (let at = 0; at < sizeBytes; ) {
        const piece = await readPiece(handle, { name, at, length: Math.min(PIECE_BYTES, sizeBytes - at) });
        if (piece.length === 0) throw new Refusal(`${name} has become shorter while it was read`);
        at += piece.length;
        yield piece;
      }
    },
  };
}

/** What has no size, to its end. */
async function* readOn(handle: FileHandle, name: string): AsyncGenerator<Buffer, void> {
  for (;;) {
    const piece = await readPiece(handle, { name, at: null, length: PIECE_BYTES });
    if (piece.length === 0) return;
    yield piece;
  }
}

async function readPiece(
  handle: FileHandle,
  { name, at, length }: { name: string; at: number | null; length: number },
): Promise<Buffer> {
  const { buffer, bytesRead } = await handle
    .read(Buffer.allocUnsafe(length), 0, length, at)
    .catch(refuseToRead(name));
  return buffer.subarray(0, bytesRead);
}

function refuseToRead(name: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    throw error instanceof Refusal
      ? error
      : new Refusal(`cannot read ${name}: ${error.code ?? error.message}`);
  };
}
