// References from comments, strings and pages to docs/internals, in the grammar of style 8: each leads to a heading that
// is there. Links of pages lead to files and headings. Pure: reading the project is tests/tidy.test.ts.
import { dirname, join } from 'node:path/posix';
import { CITED_ELSEWHERE, FOREIGN_PATHS } from './rules.ts';

export interface Text {
  readonly path: string;
  readonly text: string;
}

/** What can be cited: `R7`, `service 4.2`, `service MOVE rule 4`, `design "Takeover"`. */
export type Citable = ReadonlySet<string>;

/** Headings of a page, without those marks, outside of code. */
export function headingsOf(text: string): string[] {
  return withoutCode(text)
    .split('\n')
    .flatMap((line) => /^#{1,6} (.*)$/.exec(line)?.[1]?.trim() ?? []);
}

/** `name → text` of the pages of docs/internals, without `.md`. */
export function citableIn(pages: Readonly<Record<string, string>>): Citable {
  const found = new Set<string>();
  for (const [name, text] of Object.entries(pages)) {
    for (const heading of headingsOf(text)) {
      const [, id = '', title = heading] = /^([RIABL]\d+|\d+(?:\.\d+)*)\.? (.*)$/.exec(heading) ?? [];
      if (/^\d/.test(id)) found.add(`${name} ${id}`);
      else if (id !== '') found.add(id);
      found.add(`${name} "${title}"`);
    }
    for (const [, rule = ''] of text.matchAll(/^- \*\*(\w+ rule \d+)\.\*\*/gm)) found.add(`${name} ${rule}`);
  }
  return found;
}

const NUMBER = String.raw`\d+(?:\.\d+)*`;
const LIST = String.raw`((?:(?:,\s+|\s+and\s+|\s+to\s+|-)${NUMBER}(?![\w.]*\w))*)`;
const SECTIONS = new RegExp(
  String.raw`(?<![\w-])(service|extensions|s3-behaviour|clients|style)\s+(${NUMBER})${LIST}`,
  'g',
);
const RULES = new RegExp(String.raw`(?<![\w-])(MOVE|compose|append|delete) rules?\s+(${NUMBER})${LIST}`, 'g');
const QUOTED =
  /(?<![\w-])(service|extensions|s3-behaviour|clients|style|design|protocol|glossary)\s+"([A-Z][^"]{0,80})"/g;
/** Not within quotes or encoded text alone: there such letters are the data of tests. */
const PROTOCOL = /(?<![\w%./+=#'"-])([RIABL]\d{1,2})(?![\w%/+='"])/g;

/** One line for each reference that leads nowhere, and for each citation of a text that is not in the repository. */
export function referenceProblems(texts: readonly Text[], citable: Citable): string[] {
  return texts.flatMap(({ path, text }) => {
    const flat = flatten(text);
    const at = (index: number) => `${path}:${text.slice(0, index).split('\n').length}`;
    const missing = referencesIn(flat)
      .filter(({ reference }) => !citable.has(reference))
      .map(({ reference, index }) => `${at(index)}: ${reference} leads to no heading of docs/internals`);
    const foreign = CITED_ELSEWHERE.flatMap((pattern) =>
      [...flat.matchAll(new RegExp(pattern, 'g'))].map(
        ({ 0: cited, index }) =>
          `${at(index)}: cites ${cited.trim()}, which is not how this repository is cited`,
      ),
    );
    return [...missing, ...foreign];
  });
}

function referencesIn(flat: string): { reference: string; index: number }[] {
  return [
    ...[...flat.matchAll(PROTOCOL)].map(({ 1: id = '', index }) => ({ reference: id, index })),
    ...[...flat.matchAll(SECTIONS)].flatMap(({ 1: page, 2: first = '', 3: rest = '', index }) =>
      numbersOf(first, rest).map((number) => ({ reference: `${page} ${number}`, index })),
    ),
    ...[...flat.matchAll(RULES)].flatMap(({ 1: what, 2: first = '', 3: rest = '', index }) =>
      numbersOf(first, rest).map((number) => ({ reference: `service ${what} rule ${number}`, index })),
    ),
    ...[...flat.matchAll(QUOTED)].map(({ 1: page, 2: title = '', index }) => ({
      reference: `${page} "${title.replace(/\s+/g, ' ')}"`,
      index,
    })),
  ];
}

const numbersOf = (first: string, rest: string): string[] => [
  first,
  ...[...rest.matchAll(new RegExp(NUMBER, 'g'))].map(([number]) => number),
];

/** Line ends, with what begins the next line of a comment, as blanks: a reference may stand on two lines. */
function flatten(text: string): string {
  return text.replace(/\n([ \t]*)(\/\/|\*(?![/*])|#(?= ))?/g, (found, _, mark) =>
    mark === undefined ? found : `\n${' '.repeat(found.length - 1)}`,
  );
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, (code) => code.replace(/[^\n]/g, ' '));
}

/** Links of pages to files that are not there, or to headings that their page does not have. */
export function linkProblems(pages: readonly Text[], files: readonly string[]): string[] {
  const anchors = new Map(pages.map(({ path, text }) => [path, new Set(headingsOf(text).map(anchorOf))]));
  const isThere = (path: string) => files.some((file) => file === path || file.startsWith(`${path}/`));
  return pages.flatMap(({ path, text }) =>
    [...withoutCode(text).matchAll(/\]\(([^()\s]+)\)/g)].flatMap(({ 1: link = '', index }) => {
      if (/^[a-z]+:/.test(link)) return [];
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? path : join(dirname(path), file);
      const isRight = isThere(target) && (anchor === undefined || anchors.get(target)?.has(anchor) !== false);
      const line = text.slice(0, index).split('\n').length;
      return isRight ? [] : [`${path}:${line}: the link ${link} leads nowhere`];
    }),
  );
}

const FOLDERS = 'bench|cmd|deploy|docs|proto|src|tests|tools';
/** From the top of the repository: in prose, in links and in code. */
const FULL_PATH = new RegExp(String.raw`(?<![\w./@~-])(?:${FOLDERS})/[\w./*-]*[\w/*]`, 'g');
/** A file of source by the end of its path, as in `write-body.ts`. */
const SOURCE_NAME = /`([\w./*-]+\.(?:ts|mjs))`/g;

/** Paths that pages name and that are not there. `*` and NAME stand for any name. */
export function pathProblems(pages: readonly Text[], files: readonly string[]): string[] {
  const folders = new Set(files.flatMap(foldersOf));
  const isThere = (path: string) => {
    if (!/\*|NAME/.test(path)) return files.includes(path) || folders.has(path.replace(/\/$/, ''));
    const pattern = new RegExp(`^${path.replaceAll('.', '\\.').replace(/\*|NAME/g, '[^/]+')}$`);
    return files.some((file) => pattern.test(file));
  };
  const isEnd = (name: string) => files.some((file) => file === name || file.endsWith(`/${name}`));
  return pages.flatMap(({ path, text }) => {
    const foreign = FOREIGN_PATHS[path];
    const own = foreign === undefined ? text : text.replace(foreign, (found) => found.replace(/[^\n]/g, ' '));
    const full = [...own.matchAll(FULL_PATH)].map(({ 0: name, index }) => ({ name, index }));
    const ends = [...own.matchAll(SOURCE_NAME)]
      .map(({ 1: name = '', index }) => ({ name, index }))
      .filter(({ name }) => !new RegExp(`^(?:${FOLDERS})/`).test(name));
    const missing = [
      ...full.filter(({ name }) => !isThere(name)),
      ...ends.filter(({ name }) => !isEnd(name)),
    ];
    return missing.map(
      ({ name, index }) => `${path}:${own.slice(0, index).split('\n').length}: ${name} is not there`,
    );
  });
}

function foldersOf(file: string): string[] {
  const parts = file.split('/').slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
}

/** As GitHub makes them. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}
