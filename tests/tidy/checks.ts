// The tidy checks: each takes parsed files and answers with one line per problem, none when all is well.
// Pure: reading the project is tests/tidy.test.ts, the tables are rules.ts.
import { basename, dirname, join } from 'node:path/posix';
import {
  ANY,
  BANNED,
  BANNED_IN_TESTS,
  DEFAULT_EXPORTS,
  EMPTY_NAMES,
  FILE_LINES_MAX,
  FOREIGN_MENTIONS,
  FUNCTION_LINES_MAX,
  HANDED_ON,
  MENTION_FREE_PASS,
  OUTER_ROOMS,
  PURE_NAMES,
  PURE_PACKAGES,
  ROOMS,
  type RoomRule,
  TOP_LEVEL,
} from './rules.ts';
import type { Import, SourceFile } from './source.ts';

export type Check = (files: readonly SourceFile[]) => string[];

const isTest = (path: string) => path.endsWith('.test.ts') || path.startsWith('tests/');
const roomOf = (path: string): RoomRule | undefined => ROOMS.find(({ room }) => path.startsWith(`${room}/`));
const isOneOf = (list: readonly string[], name: string) => list.includes(ANY) || list.includes(name);

/** Layers: which rooms, Node modules and packages each file imports. Unit tests may use any package and module. */
export const layerProblems: Check = (files) =>
  files.flatMap((file) => {
    const rule = roomOf(file.path);
    if (rule === undefined)
      return file.path.includes('/') ? [`${file.path}: is in no room of the layer table`] : [];
    return file.imports.flatMap((imported) => {
      const problem = importProblem(file.path, rule, imported);
      return problem === undefined ? [] : [`${file.path}: ${problem}`];
    });
  });

function importProblem(path: string, rule: RoomRule, { specifier, names }: Import): string | undefined {
  if (specifier.startsWith('.')) return roomProblem(path, rule, specifier);
  if (isTest(path)) return undefined;
  if (!specifier.startsWith('node:')) {
    const name = packageName(specifier);
    if (isOneOf(rule.packages, name) || PURE_PACKAGES[path] === name) return undefined;
    return `the package ${name} is not for ${rule.room}`;
  }
  const module = specifier.slice('node:'.length);
  if (!isOneOf(rule.node, module)) return `${specifier} is not for ${rule.room}`;
  const pureNames = rule.node.includes(ANY) ? undefined : PURE_NAMES[module];
  const impure = names.find((name) => pureNames !== undefined && !pureNames.includes(name));
  return impure === undefined ? undefined : `${specifier}: ${impure} is not for ${rule.room}`;
}

function roomProblem(path: string, rule: RoomRule, specifier: string): string | undefined {
  if (!/\.(ts|mjs)$/.test(specifier)) return `${specifier} lacks its file extension`;
  const target = join(dirname(path), specifier);
  const room = roomOf(target)?.room;
  if (room === undefined) return `${specifier} is in no room of the layer table`;
  // A unit test may put real neighbours together, but a room's own code may not.
  if (room === rule.room || isTest(path) || isOneOf(rule.mayImport, room)) return undefined;
  return `${rule.room} may not import ${room} (${specifier})`;
}

/** `@scope/name/inner` → `@scope/name` */
function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** Time, chance, environment and terminal outside of the rooms that own them; module mocks anywhere. */
export const bannedCallProblems: Check = (files) =>
  files.flatMap((file) => {
    const isOuter = isTest(file.path) || OUTER_ROOMS.includes(roomOf(file.path)?.room ?? 'cmd');
    const banned = isOuter ? [] : Object.entries(BANNED).filter(([name]) => file.uses.has(name));
    const mocks = BANNED_IN_TESTS.filter((name) => file.uses.has(name));
    return [
      ...banned.map(([name, instead]) => `${file.path}: uses ${name}, where ${instead} is meant`),
      ...mocks.map((name) => `${file.path}: uses ${name}; pass the collaborator as an argument`),
    ];
  });

/** Names that one file hands on (rules.ts) and another one imports for itself. */
export const handedOnProblems: Check = (files) =>
  files.flatMap(({ path, imports }) => {
    // The unit test of the file that defines it is about the name itself.
    const own = `./${basename(path).replace('.test.ts', '.ts')}`;
    const others = imports.filter(({ specifier }) => !path.endsWith('.test.ts') || specifier !== own);
    const names = others.flatMap((each) => each.names);
    return Object.entries(HANDED_ON)
      .filter(([name, owner]) => names.includes(name) && path !== owner)
      .map(([name, owner]) => `${path}: imports ${name}, which ${owner} hands on`);
  });

/** Exports: by name, from the file that defines them. Ports hold types and constants only. */
export const exportProblems: Check = (files) =>
  files.flatMap((file) => {
    const problems: string[] = [];
    if (file.hasDefaultExport && !DEFAULT_EXPORTS.includes(file.path)) problems.push('has a default export');
    if (file.isBarrel) problems.push('only passes on what other files export');
    if (file.hasCode && file.path.startsWith('src/ports/') && !isTest(file.path)) {
      problems.push('has code; a port is an interface');
    }
    return problems.map((problem) => `${file.path}: ${problem}`);
  });

/** Names of files say what is in them, in kebab-case; each file begins with a comment that says what it is for. */
export const fileProblems: Check = (files) =>
  files.flatMap(({ path, text }) => {
    const name = basename(path).replace(/(\.test|\.d)?\.(ts|mjs)$/, '');
    const problems: string[] = [];
    if (!/^[a-z0-9]+(-[a-z0-9]+)*(\.config)?$/.test(name)) problems.push('is not named in kebab-case');
    const empty = name.split('-').find((word) => EMPTY_NAMES.includes(word));
    if (empty !== undefined) problems.push(`is named "${empty}", which says nothing`);
    if (!path.endsWith('.test.ts') && !/^(#!.*\n)?(\/\/|\/\*)/.test(text)) {
      problems.push('does not begin with a comment that says what it is for');
    }
    return problems.map((problem) => `${path}: ${problem}`);
  });

/** Each operation is driven over HTTP by a test file of its name. */
export const operationProblems: Check = (files) => {
  const paths = new Set(files.map((file) => file.path));
  return files.flatMap(({ path, text }) => {
    const isOperation =
      path.startsWith('src/gateway/s3/') && /^export const .* = defineOperation\(/m.test(text);
    if (!isOperation || isTest(path) || paths.has(`tests/api/${basename(path, '.ts')}.test.ts`)) return [];
    return [`${path}: has no tests/api/${basename(path, '.ts')}.test.ts`];
  });
};

export interface SizeExceptions {
  readonly files: Readonly<Record<string, number>>;
  readonly functions: Readonly<Record<string, number>>;
}

/** Files and functions over the limit, and exceptions that are higher than needed or needed no more. */
export function sizeProblems(files: readonly SourceFile[], exceptions: SizeExceptions): string[] {
  const fileSizes = files.map((file) => ({ name: file.path, lineCount: file.lineCount }));
  const functionSizes = files
    .filter((file) => !isTest(file.path))
    .flatMap((file) =>
      file.functions.map(({ name, lineCount }) => ({ name: `${file.path}#${name}`, lineCount })),
    );
  return [
    ...ratchet(fileSizes, { max: FILE_LINES_MAX, exceptions: exceptions.files }),
    ...ratchet(functionSizes, { max: FUNCTION_LINES_MAX, exceptions: exceptions.functions }),
  ];
}

function ratchet(
  sizes: readonly { name: string; lineCount: number }[],
  limit: { max: number; exceptions: Readonly<Record<string, number>> },
): string[] {
  const tooLong = sizes
    .filter(({ name, lineCount }) => lineCount > (limit.exceptions[name] ?? limit.max))
    .map(
      ({ name, lineCount }) => `${name}: ${lineCount} lines, at most ${limit.exceptions[name] ?? limit.max}`,
    );
  const loose = Object.entries(limit.exceptions).flatMap(([name, allowed]) => {
    const lineCount = Math.max(
      0,
      ...sizes.filter((size) => size.name === name).map((size) => size.lineCount),
    );
    if (lineCount <= limit.max) return [`${name}: its exception is needed no more, remove it`];
    return lineCount < allowed ? [`${name}: lower its exception to ${lineCount}`] : [];
  });
  return [...tooLong, ...loose];
}

export interface Reachability {
  readonly entries: readonly string[];
  readonly testOnly: readonly string[];
}

/** Files that no program and no test leads to; files that only tests lead to must be listed, and only those. */
export function deadFileProblems(
  files: readonly SourceFile[],
  { entries, testOnly }: Reachability,
): string[] {
  const tests = files
    .map((file) => file.path)
    .filter((path) => path.endsWith('.test.ts') || path.startsWith('bench/'));
  const fromPrograms = reachable(files, entries);
  const fromAnywhere = reachable(files, [...entries, ...tests]);
  const isListed = (path: string) => testOnly.includes(path);
  return [
    ...files
      .filter(({ path }) => !fromAnywhere.has(path) && !path.endsWith('.d.ts'))
      .map(({ path }) => `${path}: nothing leads to it`),
    ...files
      .filter(({ path }) => !isTest(path) && !path.startsWith('bench/'))
      .filter(({ path }) => fromAnywhere.has(path) && !fromPrograms.has(path) && !isListed(path))
      .map(({ path }) => `${path}: only tests lead to it`),
    ...testOnly
      .filter((path) => fromPrograms.has(path) || !fromAnywhere.has(path))
      .map((path) => `${path}: is not a file that only tests lead to, remove it from the list`),
  ];
}

function reachable(files: readonly SourceFile[], entries: readonly string[]): ReadonlySet<string> {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const open = entries.filter((path) => byPath.has(path));
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const file = byPath.get(path);
    if (file === undefined || seen.has(path)) continue;
    seen.add(path);
    // Imports are strings too, so the named files include them.
    open.push(...file.namedFiles);
  }
  return seen;
}

/** Paths of a machine and hosts of package registries, line by line. */
export function mentionProblems(texts: readonly { path: string; text: string }[]): string[] {
  return texts
    .filter(({ path }) => !MENTION_FREE_PASS.includes(path))
    .flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, index) => {
        const found = FOREIGN_MENTIONS.map((pattern) => pattern.exec(line)?.[0]).find(
          (match) => match !== undefined,
        );
        return found === undefined ? [] : [`${path}:${index + 1}: mentions ${found}`];
      }),
    );
}

interface LockedPackage {
  /** Digest of the archive: what the registry sends must have it. */
  readonly integrity?: string;
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** The lock names no host, and every optional package of every platform: npm ci refuses a lock without them. */
export function lockProblems(lock: { packages: Readonly<Record<string, LockedPackage>> }): string[] {
  return Object.entries(lock.packages).flatMap(([path, locked]) => {
    const missing = Object.keys(locked.optionalDependencies ?? {}).filter(
      (name) =>
        !(`node_modules/${name}` in lock.packages) && !(`${path}/node_modules/${name}` in lock.packages),
    );
    return [
      ...(locked.resolved === undefined ? [] : [`${path}: has a resolved address`]),
      ...(path === '' || locked.integrity?.startsWith('sha512-') ? [] : [`${path}: has no integrity`]),
      ...missing.map((name) => `${path}: its optional package ${name} is not in the lock`),
    ];
  });
}

export function topLevelProblems(paths: readonly string[]): string[] {
  const names = new Set(paths.map((path) => path.split('/')[0] ?? path));
  return [...names]
    .filter((name) => !TOP_LEVEL.includes(name))
    .map((name) => `${name}: does not belong at the top`);
}

/** Words that a document must hold and does not. */
export function docProblems(doc: string, text: string | undefined, words: readonly string[]): string[] {
  if (text === undefined) return [`${doc}: is missing`];
  return words.filter((word) => !text.includes(word)).map((word) => `${doc}: does not mention ${word}`);
}

/**
 * Packages that are loaded when a program of this file starts: by the imports of values that lead from it, at the beginning
 * of files. What is imported later, by `import()`, is not.
 */
export function packagesAtStart(files: readonly SourceFile[], entry: string): ReadonlySet<string> {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const seen = new Set([entry]);
  const packages = new Set<string>();
  for (const path of seen) {
    for (const [, names = '', specifier = ''] of (texts.get(path) ?? '').matchAll(
      /^(?:import|export) (?!type\b)(?:([^;']*?) from )?'([^']+)';$/gm,
    )) {
      const taken = names
        .replace(/[{}\s]/g, ' ')
        .split(',')
        .filter((name) => name.trim() !== '');
      if (names !== '' && taken.every((name) => name.trim().startsWith('type '))) continue;
      if (specifier.startsWith('.')) seen.add(join(dirname(path), specifier));
      else if (!specifier.startsWith('node:')) packages.add(packageName(specifier));
    }
  }
  return packages;
}
