// The house rules as a test: layers, banned calls, sizes, dead files and what the project may mention. The tables are
// tests/tidy/rules.ts; each check proves first, on a few lines of source, that it can fail.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path/posix';
import { describe, expect, test } from 'vitest';
import {
  bannedCallProblems,
  type Check,
  deadFileProblems,
  docProblems,
  exportProblems,
  fileProblems,
  handedOnProblems,
  layerProblems,
  lockProblems,
  mentionProblems,
  operationProblems,
  packagesAtStart,
  sizeProblems,
  topLevelProblems,
} from './tidy/checks.ts';
import { citableIn, linkProblems, pathProblems, referenceProblems, type Text } from './tidy/references.ts';
import {
  DOC_MENTIONS,
  ENTRIES,
  HANDED_ON,
  LONG_FILES,
  LONG_FUNCTIONS,
  MENTION_FREE_PASS,
  ROOMS,
  TEST_ONLY,
  TOP_LEVEL,
} from './tidy/rules.ts';
import { parseSource } from './tidy/source.ts';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Every file of the project, by path from the top. */
function listFiles(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return listFiles(path);
    return entry.isFile() ? [path] : [];
  });
}

const allFiles = TOP_LEVEL.filter((name) => existsSync(join(ROOT, name))).flatMap((name) =>
  readdirSync(ROOT, { withFileTypes: true }).some((entry) => entry.name === name && entry.isDirectory())
    ? listFiles(name)
    : [name],
);
const sources = allFiles
  .filter((path) => /\.(ts|mjs)$/.test(path))
  .map((path) => parseSource(path, read(path)));

const problemsIn = (check: Check, path: string, text: string) => check([parseSource(path, text)]);

describe('layers', () => {
  test.each([
    ['src/base/a.ts', "import { x } from '../types/x.ts';", 'src/base may not import src/types'],
    ['src/types/a.ts', "import type { X } from '../config/x.ts';", 'src/types may not import src/config'],
    [
      'src/metadata/engine/a.ts',
      "import { x } from '../buckets/x.ts';",
      'src/metadata/engine may not import src/metadata',
    ],
    ['src/platform/a.ts', "import { x } from '../chunks/x.ts';", 'src/platform may not import src/chunks'],
    [
      'src/gateway/s3/a.ts',
      "import { x } from '../../platform/x.ts';",
      'src/gateway may not import src/platform',
    ],
    [
      'src/gateway/a.ts',
      "const x = await import('../platform/x.ts');",
      'src/gateway may not import src/platform',
    ],
    ['src/cli/a.ts', "import { x } from '../config/x.ts';", 'src/cli may not import src/config'],
    [
      'src/chunks/a.ts',
      "export { x } from '../metadata/engine/x.ts';",
      'src/chunks may not import src/metadata/engine',
    ],
    ['src/base/a.ts', "import { x } from './x';", './x lacks its file extension'],
    ['src/base/a.ts', "import { x } from '../../x.ts';", '../../x.ts is in no room'],
    ['src/unknown/a.ts', 'export const x = 1;', 'is in no room'],
    ['src/objects/a.ts', "import { readFile } from 'node:fs';", 'node:fs is not for src/objects'],
    ['src/base/a.ts', "import { crc32, gzip } from 'node:zlib';", 'node:zlib: gzip is not for src/base'],
    ['src/base/a.ts', "import * as zlib from 'node:zlib';", 'node:zlib: * is not for src/base'],
    ['src/base/a.ts', "import { Packr } from 'msgpackr';", 'the package msgpackr is not for'],
    ['src/gateway/a.ts', "import { Piscina } from 'piscina';", 'the package piscina is not for src/gateway'],
    ['src/ports/a.ts', "import '@scope/name/inner.js';", 'the package @scope/name is not for src/ports'],
  ])('%s: %s', (path, text, problem) => {
    expect(problemsIn(layerProblems, path, text)).toEqual([expect.stringContaining(problem)]);
  });

  test.each([
    ['src/base/record-codec.ts', "import { Packr } from 'msgpackr';"],
    ['src/base/a.ts', "import { crc32 } from 'node:zlib'; import { createHash } from 'node:crypto';"],
    ['src/gateway/a.ts', "import { x } from '../objects/x.ts'; import { createServer } from 'node:http';"],
    ['cmd/a.ts', "import { x } from '../src/platform/x.ts';"],
    [
      'src/metadata/engine/a.test.ts',
      "import { x } from '../../platform/memory-kv.ts'; import { test } from 'vitest';",
    ],
  ])('allowed: %s: %s', (path, text) => {
    expect(problemsIn(layerProblems, path, text)).toEqual([]);
  });

  test('of this project', () => expect(layerProblems(sources)).toEqual([]));
});

describe('banned calls', () => {
  test.each([
    ['Date.now', 'const at = Date.now();'],
    ['new Date()', 'const at = new Date();'],
    ['performance.now', 'const at = performance.now();'],
    ['Math.random', 'const x = Math.random();'],
    ['setTimeout', 'setTimeout(go, 1);'],
    ['setTimeout', 'globalThis.setTimeout(go, 1);'],
    ['setInterval', 'const again = setInterval;'],
    ['process.env', 'const home = process.env.HOME;'],
    ['console', "console.log('x');"],
    ['randomBytes', "import { randomBytes } from 'node:crypto';\nconst x = randomBytes(3);"],
    ['crypto.getRandomValues', 'crypto.getRandomValues(x);'],
  ])('%s: %s', (name, text) => {
    expect(problemsIn(bannedCallProblems, 'src/objects/a.ts', text)).toContainEqual(
      expect.stringContaining(`uses ${name},`),
    );
    expect(problemsIn(bannedCallProblems, 'src/platform/a.ts', text)).toEqual([]);
  });

  test('the same words as properties, and a date of a given time, are allowed', () => {
    const text =
      'const at = new Date(5); socket.setTimeout(1); const x = { console: at.now, setInterval() {} };';
    expect(problemsIn(bannedCallProblems, 'src/objects/a.ts', text)).toEqual([]);
  });

  test('module mocks in tests', () => {
    expect(problemsIn(bannedCallProblems, 'src/objects/a.test.ts', "vi.mock('./b.ts');")).toHaveLength(1);
  });

  test('of this project', () => expect(bannedCallProblems(sources)).toEqual([]));
});

describe('what is handed on', () => {
  test.each(['src/metadata/commands/a.ts', 'cmd/a.ts', 'src/objects/a.test.ts'])('%s', (path) => {
    const text = "import { DELETE_RULES } from '../../model/delete-blocker.ts';";
    expect(problemsIn(handedOnProblems, path, text)).toEqual([expect.stringContaining('hands on')]);
    expect(problemsIn(handedOnProblems, 'src/metadata/state-machine.ts', text)).toEqual([]);
  });

  test('of this project', () => {
    expect(handedOnProblems(sources)).toEqual([]);
    // The table is not out of date.
    for (const owner of Object.values(HANDED_ON)) expect(sources.map(({ path }) => path)).toContain(owner);
  });
});

describe('exports', () => {
  test.each([
    ['src/base/a.ts', 'export default 1;', 'has a default export'],
    ['src/base/a.ts', 'const a = 1; export { a as default };', 'has a default export'],
    ['src/base/a.ts', "export * from './b.ts';", 'only passes on'],
    ['src/base/a.ts', "import './c.ts'; export { b } from './b.ts';", 'only passes on'],
    ['src/ports/a.ts', 'export class A {}', 'has code'],
  ])('%s: %s', (path, text, problem) => {
    expect(problemsIn(exportProblems, path, text)).toEqual([expect.stringContaining(problem)]);
  });

  test('of this project', () => expect(exportProblems(sources)).toEqual([]));
});

describe('files', () => {
  test.each([
    ['src/base/twoWords.ts', '// x', 'kebab-case'],
    ['src/base/string-utils.ts', '// x', '"utils"'],
    ['src/base/a.ts', 'export const a = 1;', 'does not begin with a comment'],
  ])('%s: %s', (path, text, problem) => {
    expect(problemsIn(fileProblems, path, text)).toEqual([expect.stringContaining(problem)]);
  });

  test('of this project', () => expect(fileProblems(sources)).toEqual([]));
});

describe('operations', () => {
  test('an operation without an api test', () => {
    const text = 'export const getObject = defineOperation({});';
    const operation = parseSource('src/gateway/s3/objects/get-object.ts', text);
    expect(operationProblems([operation])).toEqual([
      `${operation.path}: has no tests/api/get-object.test.ts`,
    ]);
    expect(operationProblems([operation, parseSource('tests/api/get-object.test.ts', '')])).toEqual([]);
  });

  test('of this project', () => expect(operationProblems(sources)).toEqual([]));
});

describe('what a server loads at its start', () => {
  test('packages behind imports of values, and none behind types or later imports', () => {
    const files = [
      parseSource(
        'cmd/a.ts',
        "import { b } from './b.ts';\nimport type { C } from './c.ts';\nawait import('./d.ts');",
      ),
      parseSource(
        'cmd/b.ts',
        "import one from 'one';\nimport { type Two } from 'two';\nimport 'three/inner.js';",
      ),
      parseSource('cmd/c.ts', "import 'four';"),
      parseSource('cmd/d.ts', "import 'five';"),
    ];
    expect([...packagesAtStart(files, 'cmd/a.ts')]).toEqual(['one', 'three']);
  });

  test('a single node loads no module for communication within a cluster', () => {
    const packages = packagesAtStart(sources, 'cmd/server.ts');
    expect(packages).toContain('fastify');
    for (const name of ['@grpc/grpc-js', '@grpc/proto-loader', 'etcd3', 'cockatiel'])
      expect(packages).not.toContain(name);
  });
});

describe('sizes', () => {
  const none = { files: {}, functions: {} };
  const long = parseSource('src/base/a.ts', `function f() {${'\n'.repeat(70)}}${'\n'.repeat(630)}`);

  test('a file and a function one line too long', () => {
    expect(long.lineCount).toBe(700);
    expect(sizeProblems([long], none)).toEqual(['src/base/a.ts#f: 71 lines, at most 70']);
    const longer = parseSource('src/base/a.ts', '\n'.repeat(701));
    expect(sizeProblems([longer], none)).toEqual(['src/base/a.ts: 701 lines, at most 700']);
  });

  test('lines of a named function inside another are its own; those of a callback are not', () => {
    const body = '\n'.repeat(60);
    const factory = (inner: string) => parseSource('src/base/a.ts', `function create() {\n${inner}${body}}`);
    for (const inner of [
      `function f() {${body}}`,
      `const f = () => {${body}};`,
      `return { f() {${body}} };`,
    ]) {
      expect(sizeProblems([factory(inner)], none)).toEqual([]);
    }
    expect(sizeProblems([factory(`each(() => {${body}});`)], none)).toHaveLength(1);
  });

  test('an exception holds for its number of lines, no more and no fewer', () => {
    const check = (lines: number) =>
      sizeProblems([long], { files: {}, functions: { 'src/base/a.ts#f': lines } });
    expect(check(71)).toEqual([]);
    expect(check(72)).toEqual(['src/base/a.ts#f: lower its exception to 71']);
    const useless = { files: { 'src/base/a.ts': 800 }, functions: { 'src/base/a.ts#f': 71 } };
    expect(sizeProblems([long], useless)).toEqual([
      'src/base/a.ts: its exception is needed no more, remove it',
    ]);
  });

  test('of this project', () => {
    expect(sizeProblems(sources, { files: LONG_FILES, functions: LONG_FUNCTIONS })).toEqual([]);
  });
});

describe('dead files', () => {
  const files = [
    parseSource(
      'cmd/main.ts',
      "import '../src/base/a.ts'; const x = new URL('./worker.ts', import.meta.url);",
    ),
    parseSource('cmd/worker.ts', 'export const w = 1;'),
    parseSource('src/base/a.ts', 'export const a = 1;'),
    parseSource('src/base/fake.ts', 'export const f = 1;'),
    parseSource('src/base/a.test.ts', "import './fake.ts';"),
  ];
  const entries = ['cmd/main.ts'];

  test('a file without importers, and one with a test as its only importer', () => {
    const dead = parseSource('src/base/dead.ts', 'export const d = 1;');
    expect(deadFileProblems([...files, dead], { entries, testOnly: [] })).toEqual([
      'src/base/dead.ts: nothing leads to it',
      'src/base/fake.ts: only tests lead to it',
    ]);
    expect(deadFileProblems(files, { entries, testOnly: ['src/base/fake.ts'] })).toEqual([]);
  });

  test('a file on the list of test-only files that the program uses', () => {
    expect(deadFileProblems(files, { entries, testOnly: ['src/base/fake.ts', 'src/base/a.ts'] })).toEqual([
      expect.stringContaining('src/base/a.ts: is not a file that only tests lead to'),
    ]);
  });

  test('of this project', () => {
    expect(deadFileProblems(sources, { entries: ENTRIES, testOnly: TEST_ONLY })).toEqual([]);
  });
});

describe('mentions', () => {
  test.each([
    '/work/main/x',
    'at /root/.npmrc',
    "'/home/someone/x'",
    'https://registry.npmjs.org/x',
    'files.pythonhosted.org',
  ])('%s', (text) => {
    expect(mentionProblems([{ path: 'docs/a.md', text: `fine\n${text}` }])).toEqual([
      expect.stringContaining('docs/a.md:2: mentions '),
    ]);
  });

  test('of this project', () => {
    const texts = allFiles
      .filter((path) => path !== 'package-lock.json')
      .map((path) => ({ path, text: read(path) }));
    expect(mentionProblems(texts)).toEqual([]);
  });
});

describe('references', () => {
  const citable = citableIn({
    protocol: '### R7. Evaluate\n\n### I3. One primary\n\n### B11. Tombstones',
    service: '## 4. Endpoints\n\n### 4.2 Objects\n\n- **MOVE rule 4.** It is.',
    's3-behaviour': '### A refused upload\n\n### 16. Expect',
  });
  const problemsOf = (text: string) => referenceProblems([{ path: 'src/base/a.ts', text }], citable);

  test.each([
    '// Locks (R7) end here (I3), behind deleted rows (B11).',
    "test('service 4, 4.2, MOVE rule 4: refused', () => {});",
    '// Dropped (s3-behaviour 16, s3-behaviour "A refused\n// upload").',
    "const id = 'R99'; const path = '/b/R99/%C3%A9'; // 'A0'",
  ])('lead to headings: %s', (text) => expect(problemsOf(text)).toEqual([]));

  test.each([
    ['// Fine.\n// As in (R49).', 'src/base/a.ts:2: R49 leads to no heading'],
    ['// I17 holds.', 'I17 leads'],
    ['// Crawls (B12).', 'B12 leads'],
    ["test('service 4.2, 4.3: refused', () => {});", 'service 4.3 leads'],
    ['/**\n * As service\n * 9 has it.\n */', 'src/base/a.ts:2: service 9 leads'],
    ['// s3-behaviour 15-16', 's3-behaviour 15 leads'],
    ['// service 4.2, MOVE rules 4 and 5', 'service MOVE rule 5 leads'],
    ['// s3-behaviour "A refused request"', 's3-behaviour "A refused request" leads'],
    ['// service.txt 4.2', 'cites service.txt'],
    ['// (architecture 3)', 'cites architecture 3'],
    ['// extensions.md 2.1', 'cites extensions.md 2'],
    ['// see ../shared/house.md', 'cites house.md'],
    ['// spec 4.2', 'cites spec 4'],
    ["test('rule 16: refused', () => {});", 'cites rule 1'],
  ])('%j', (text, problem) => {
    expect(problemsOf(text)).toContainEqual(expect.stringContaining(problem));
  });

  test('a link to a missing file or heading', () => {
    const pages = [
      { path: 'docs/a.md', text: '# A\n\n[x](b.md#the-b) [y](b.md#c) [z](c.md) [w](https://x.y/z) [v](#a)' },
      { path: 'docs/b.md', text: '# The B' },
    ];
    expect(linkProblems(pages, ['docs/a.md', 'docs/b.md'])).toEqual([
      'docs/a.md:3: the link b.md#c leads nowhere',
      'docs/a.md:3: the link c.md leads nowhere',
    ]);
  });

  test('a path of a missing file or folder', () => {
    const text = [
      'See `src/base/a.ts`, `src/base/`, src/base, `base/a.ts`, `a.ts`, `src/*/a.ts` and `src/base/NAME.ts`.',
      'See `src/base/b.ts` and src/other.',
      '[x](src/c.md), `other/a.ts`, `b.ts`, `src/*/b.ts`, `src/NAME.md`',
    ].join('\n');
    expect(pathProblems([{ path: 'docs/a.md', text }], ['src/base/a.ts', 'docs/a.md'])).toEqual([
      'docs/a.md:2: src/base/b.ts is not there',
      'docs/a.md:2: src/other is not there',
      'docs/a.md:3: src/c.md is not there',
      'docs/a.md:3: src/*/b.ts is not there',
      'docs/a.md:3: src/NAME.md is not there',
      'docs/a.md:3: other/a.ts is not there',
      'docs/a.md:3: b.ts is not there',
    ]);
    const elsewhere = { path: 'docs/internals/style.md', text: '## 11. Models\n\n`src/tidy.zig`' };
    expect(pathProblems([elsewhere], [])).toEqual([]);
  });

  const INTERNALS = /^docs\/internals\/([\w-]+)\.md$/;
  const pages = allFiles.filter((path) => path.endsWith('.md')).map((path) => ({ path, text: read(path) }));
  const internals = Object.fromEntries(
    pages.flatMap(({ path, text }) => {
      const name = INTERNALS.exec(path)?.[1];
      return name === undefined ? [] : [[name, text]];
    }),
  );

  test('each rule and each invariant has one heading, in order', () => {
    const ids = (kind: string, count: number) => Array.from({ length: count }, (_, at) => `${kind}${at + 1}`);
    const numbers = [...(internals.protocol ?? '').matchAll(/^### ([RI]\d+)\. /gm)].map(([, id]) => id);
    expect(numbers).toEqual([...ids('R', 48), ...ids('I', 16)]);
  });

  test('of this project', () => {
    const texts: Text[] = allFiles
      .filter((path) => !/\.(json|svg)$/.test(path) && !MENTION_FREE_PASS.includes(path))
      .map((path) => ({ path, text: read(path) }));
    expect(referenceProblems(texts, citableIn(internals))).toEqual([]);
  });

  test('paths that the pages for developers name', () => {
    const forDevelopers = pages.filter(
      ({ path }) => INTERNALS.test(path) || ['README.md', 'CONTRIBUTING.md'].includes(path),
    );
    // A room may be named before there is a file in it.
    const rooms = ROOMS.map(({ room }) => `${room}/`);
    expect(pathProblems(forDevelopers, [...allFiles, ...rooms])).toEqual([]);
  });

  test('links of this project', () => expect(linkProblems(pages, allFiles)).toEqual([]));
});

describe('the lock', () => {
  test('a resolved address, a missing integrity, and a missing optional package', () => {
    const packages = {
      'node_modules/a': { resolved: 'https://x', optionalDependencies: { 'a-linux': '1', 'a-mac': '1' } },
      'node_modules/a-linux': { integrity: 'sha512-x' },
      'node_modules/b': { integrity: 'sha1-x' },
    };
    expect(lockProblems({ packages })).toEqual([
      'node_modules/a: has a resolved address',
      'node_modules/a: has no integrity',
      'node_modules/a: its optional package a-mac is not in the lock',
      'node_modules/b: has no integrity',
    ]);
  });

  test('of this project', () => expect(lockProblems(JSON.parse(read('package-lock.json')))).toEqual([]));
});

describe('the top level', () => {
  const git = spawnSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' });

  test('a foreign entry', () => {
    expect(topLevelProblems(['src/base/a.ts', 'notes.txt'])).toEqual([
      'notes.txt: does not belong at the top',
    ]);
  });

  test.skipIf(git.status !== 0)('of this project', () => {
    expect(topLevelProblems(git.stdout.trim().split('\n'))).toEqual([]);
  });
});

describe('documents', () => {
  test('a missing word, and a missing document', () => {
    expect(docProblems('a.md', 'npm start', ['npm start', 'npm test'])).toEqual([
      'a.md: does not mention npm test',
    ]);
    expect(docProblems('a.md', undefined, ['x'])).toEqual(['a.md: is missing']);
  });

  test.each(DOC_MENTIONS)('$doc', ({ doc, words, folders }) => {
    const rooms =
      folders === undefined ? [] : readdirSync(join(ROOT, folders)).map((name) => `${folders}/${name}`);
    const text = existsSync(join(ROOT, doc)) ? read(doc) : undefined;
    expect(docProblems(doc, text, [...words, ...rooms])).toEqual([]);
  });
});
