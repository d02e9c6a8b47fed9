// A seeded tree of real files for the backup clients: the sizes at which stores make mistakes, the names at which
// clients and signers make them, folders deep and wide; a changed second state of it; and the comparison of two trees
// by content. The same seed gives the same bytes on every machine.
// Not here: folders without files and links, which most of the clients do not carry over.

import { createCipheriv, createHash } from 'node:crypto';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

const KiB = 1024;
const MiB = 1024 * KiB;
export const FULL_TREE_MIB = 200;
/** Has every size around a bound, and files of two and of three parts. */
export const MIDDLE_TREE_MIB = 80;
/** Of a tree that is smaller than the full one: a client starts a request, or several, for each. */
const FILES_OF_SMALLER = 160;
/** Every file of a fresh tree is dated within the year after this, to the millisecond. */
const EPOCH_MS = Date.UTC(2024, 0, 1);
const YEAR_MS = 365 * 24 * 3600 * 1000;

export interface TreeOptions {
  folder: string;
  seed: string;
  /**
   * Bytes of all files together, at least. 200 and more is the full tree: 2,000 files and all large ones; 80 lacks the
   * largest, and less what is larger than 2 MiB but for one. Smaller ones have 160 files.
   */
  sizeMiB: number;
}

/** Around the default inline bound, chunk size, part size and multipart threshold of the clients. */
const EDGE_SIZES = [
  0,
  1,
  64 * KiB - 1,
  64 * KiB,
  64 * KiB + 1,
  MiB - 1,
  MiB,
  MiB + 1,
  2 * MiB,
  8 * MiB - 1,
  8 * MiB,
  8 * MiB + 1,
];
/** Above the multipart threshold of the AWS CLI (8 MiB): two parts, three, five and a rest. */
const LARGE_SIZES = [9 * MiB, 20 * MiB + 7, 40 * MiB + 4097];

/** Names that need care in URLs, headers, XML and shells. All are legal file names on Linux. */
const ODD_NAMES = [
  'plain name with spaces',
  ' leading and trailing ',
  'double  space',
  'plus+sign+',
  'a+b c%20d',
  '100%',
  '%41%2F%zz',
  "it's quoted",
  'say "hello"',
  'amp&and=equals;semi,comma',
  'question?mark',
  'hash#mark',
  'tilde~under_score-dash.dot',
  'bang!star*(paren)[bracket]{brace}',
  'back\\slash',
  'at@colon:dollar$pipe|caret^grave`',
  'less<than>more',
  'füße-œuvre-ñ',
  'cafe\u0301-decomposed',
  'café-composed',
  '日本語のファイル',
  'Файл-έγγραφο-קובץ',
  'emoji-😀-👩‍💻',
  '.hidden',
  'ends.with.dot.',
  `long-${'x'.repeat(200)}`,
];

/** A stream of bytes that looks random and depends on its label alone. */
export function seededBytes(label: string, sizeBytes: number): Buffer {
  const key = createHash('sha256').update(label).digest();
  const cipher = createCipheriv('aes-128-ctr', key.subarray(0, 16), key.subarray(16));
  return cipher.update(Buffer.alloc(sizeBytes));
}

/** Numbers in [0, 1) that depend on the label alone. */
export function seededNumbers(label: string): () => number {
  let pool: Buffer = Buffer.alloc(0);
  let block = 0;
  return () => {
    if (pool.length < 4) pool = seededBytes(`${label}#${block++}`, 4096);
    const number = pool.readUInt32LE(0);
    pool = pool.subarray(4);
    return number / 2 ** 32;
  };
}

function writeSeeded(path: string, label: string, sizeBytes: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, seededBytes(label, sizeBytes));
}

/** Paths and sizes of a fresh tree, in the order in which they are written. */
function planTree({ seed, sizeMiB }: TreeOptions): { path: string; sizeBytes: number }[] {
  const random = seededNumbers(`plan:${seed}`);
  const deep = Array.from({ length: 12 }, (_, level) => `level ${level}`).join('/');
  const isMiddle = sizeMiB >= MIDDLE_TREE_MIB;
  const largeSizes = LARGE_SIZES.slice(0, sizeMiB >= FULL_TREE_MIB ? LARGE_SIZES.length : isMiddle ? 2 : 1);
  const plan = EDGE_SIZES.filter((size) => isMiddle || size <= 2 * MiB).map((sizeBytes) => ({
    path: `sizes/${sizeBytes}.bin`,
    sizeBytes,
  }));
  for (let copy = 0; copy < Math.max(1, Math.floor(sizeMiB / FULL_TREE_MIB)); copy++) {
    for (const sizeBytes of largeSizes) {
      plan.push({ path: `large/${copy}/${sizeBytes}.bin`, sizeBytes });
    }
  }
  for (const name of ODD_NAMES) {
    plan.push({ path: `odd names/${name}`, sizeBytes: Math.floor(random() * 3 * KiB) });
    plan.push({ path: `odd folders/${name}/in it`, sizeBytes: Math.floor(random() * 300) });
  }
  plan.push({ path: `${deep}/at the bottom.txt`, sizeBytes: 1234 });
  const missingCount = (sizeMiB >= FULL_TREE_MIB ? sizeMiB * 10 : FILES_OF_SMALLER) - plan.length;
  const missingBytes = sizeMiB * MiB - plan.reduce((sum, file) => sum + file.sizeBytes, 0);
  const meanBytes = missingBytes / missingCount;
  for (let index = 0; index < missingCount; index++) {
    // Squared, so that most files are small; the mean of 3r² is 1. The last one makes up what lacks.
    const sizeBytes = Math.round(meanBytes * 3 * random() ** 2);
    plan.push({ path: `many/${index % 7}/${index % 31}/file ${index}.dat`, sizeBytes });
  }
  const lackingBytes = sizeMiB * MiB - plan.reduce((sum, file) => sum + file.sizeBytes, 0);
  plan.push({ path: 'many/rest.dat', sizeBytes: Math.max(0, lackingBytes) });
  return plan;
}

/** Writes a fresh tree; the folder must not hold one yet. */
export function writeTree(options: TreeOptions): void {
  const random = seededNumbers(`times:${options.seed}`);
  for (const { path, sizeBytes } of planTree(options)) {
    const target = join(options.folder, path);
    writeSeeded(target, `${options.seed}:${path}`, sizeBytes);
    const modifiedS = (EPOCH_MS + Math.floor(random() * YEAR_MS)) / 1000;
    utimesSync(target, modifiedS, modifiedS);
  }
}

/**
 * The second state of a tree, dated now: about one file in thirty gets other bytes of the same size, one in thirty
 * another size, one in thirty goes, one in thirty is renamed, and as many new ones come.
 */
export function changeTree({ folder, seed }: { folder: string; seed: string }): void {
  const random = seededNumbers(`change:${seed}`);
  const paths = listFiles(folder);
  for (const path of paths) {
    const target = join(folder, path);
    const draw = Math.floor(random() * 30);
    const label = `${seed}:changed:${path}`;
    if (draw === 0) writeSeeded(target, label, statSync(target).size);
    if (draw === 1) writeSeeded(target, label, statSync(target).size + 1 + Math.floor(random() * KiB));
    if (draw === 2) rmSync(target);
    if (draw === 3) renameSync(target, `${target}.renamed`);
    if (draw === 4) writeSeeded(`${target} (new)`, label, Math.floor(random() * 100 * KiB));
  }
  // What grows over the multipart threshold, and what shrinks below it, is uploaded in another way than before.
  writeSeeded(join(folder, 'sizes/1.bin'), `${seed}:grown`, 9 * MiB);
  writeSeeded(join(folder, `large/0/${LARGE_SIZES[0]}.bin`), `${seed}:shrunk`, 100);
}

/** Relative paths of all files, `/` between folders, sorted by code units. */
export function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort();
}

/** SHA-256 of each file's bytes by its relative path. */
export function hashTree(folder: string): Map<string, string> {
  return new Map(
    listFiles(folder).map((path) => [
      path,
      createHash('sha256')
        .update(readFileSync(join(folder, path)))
        .digest('hex'),
    ]),
  );
}

/** What differs between two trees, one line per file; empty when they hold the same files with the same bytes. */
export function compareTrees({ expected, actual }: { expected: string; actual: string }): string[] {
  const wanted = hashTree(expected);
  const found = hashTree(actual);
  const differences = [...wanted].flatMap(([path, hash]) => {
    if (!found.has(path)) return [`missing: ${path}`];
    return found.get(path) === hash ? [] : [`differs: ${path}`];
  });
  return [...differences, ...[...found.keys()].filter((path) => !wanted.has(path)).map((p) => `extra: ${p}`)];
}
