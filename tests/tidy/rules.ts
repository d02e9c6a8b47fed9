// The tables behind tests/tidy.test.ts: what the code must look like. Change a rule here, never in the checks.
// Exceptions may only shrink: one that is larger than needed, or not needed at all, fails the test.

/** Node's modules for code that must run under simulation (layers 0-3). */
const PURE_NODE = ['buffer', 'crypto', 'stream', 'stream/promises', 'stream/web', 'util', 'zlib'];
/** In a list of rooms, modules or packages: every one. */
export const ANY = '*';

export interface RoomRule {
  /** Folder of the room. */
  readonly room: string;
  /** Rooms whose files it may import, beside its own. */
  readonly mayImport: readonly string[];
  /** Node's modules it may import, without `node:`. */
  readonly node: readonly string[];
  /** Packages it may import. */
  readonly packages: readonly string[];
}

const INNER = ['src/base', 'src/types', 'src/config', 'src/ports'];
/** Layer 3: siblings never import one another; they meet through ports, and cmd wires them. */
const CORE = [
  // What a shard is, without a word of what it keeps.
  'src/metadata/engine',
  'src/metadata/replication',
  // Keys of rows, and the form of commands.
  'src/metadata/schema',
  // Buckets, versions, uploads and all else that shards keep: features of one state machine.
  'src/metadata',
  'src/coordination',
  'src/chunks',
  'src/objects',
  'src/policy',
  'src/billing',
  'src/accounts',
  'src/fsck',
];
/** Rooms of the core that others of the core stand on. */
const CORE_BASES: Readonly<Record<string, readonly string[]>> = {
  'src/metadata/replication': ['src/metadata/engine'],
  'src/metadata': ['src/metadata/schema'],
  'src/chunks': ['src/coordination'],
  'src/accounts': ['src/billing'],
};

/** Who may import whom: the layers, from the bottom. A file belongs to the first room that holds it. */
export const ROOMS: readonly RoomRule[] = [
  { room: 'src/base', mayImport: [], node: PURE_NODE, packages: [] },
  { room: 'src/types', mayImport: ['src/base'], node: PURE_NODE, packages: [] },
  // Bounds of settings refer to the limits among the types, so that each number stands once.
  { room: 'src/config', mayImport: ['src/base', 'src/types'], node: PURE_NODE, packages: [] },
  { room: 'src/ports', mayImport: ['src/base', 'src/types', 'src/config'], node: PURE_NODE, packages: [] },
  ...CORE.map((room) => ({
    room,
    mayImport: [...INNER, ...(CORE_BASES[room] ?? [])],
    node: PURE_NODE,
    packages: [],
  })),
  {
    room: 'src/platform',
    // What is kept in etcd is told by coordination; platform/etcd and platform/memory keep it.
    mayImport: [...INNER, 'src/coordination'],
    node: [ANY],
    packages: [
      '@grpc/grpc-js',
      '@grpc/proto-loader',
      '@nxtedition/rocksdb',
      'cockatiel',
      'etcd3',
      'nodemailer',
      'pdfkit',
      'pino',
      'piscina',
      'prom-client',
      'selfsigned',
    ],
  },
  {
    room: 'src/gateway',
    mayImport: [...INNER, ...CORE],
    node: [ANY],
    packages: ['fastify', '@fastify/ajv-compiler', '@fastify/swagger', 'lean-qr', 'otpauth'],
  },
  { room: 'src/console', mayImport: ['src/base', 'src/types'], node: [], packages: [] },
  {
    room: 'src/cli',
    mayImport: ['src/base', 'src/types'],
    node: [ANY],
    packages: ['commander', 'cli-progress', 'csv-parse'],
  },
  {
    room: 'src/admin',
    mayImport: [...INNER, ...CORE, 'src/platform', 'src/gateway', 'src/cli'],
    node: [ANY],
    packages: ['commander'],
  },
  { room: 'cmd', mayImport: [ANY], node: [ANY], packages: ['commander'] },
  { room: 'tests', mayImport: [ANY], node: [ANY], packages: [ANY] },
  { room: 'bench', mayImport: [ANY], node: [ANY], packages: [ANY] },
  { room: 'tools', mayImport: [ANY], node: [ANY], packages: [] },
];

/** Libraries without I/O in layers 0-3: each in the one file that wraps it. */
export const PURE_PACKAGES: Readonly<Record<string, string>> = {
  'src/base/crypto/crc32.ts': '@node-rs/crc32',
  'src/base/record-codec.ts': 'msgpackr',
  'src/policy/conditions/addresses.ts': 'ipaddr.js',
  'src/billing/exact.ts': 'fraction.js',
};

/** What a pure room may take from a module that also holds more than pure things. */
export const PURE_NAMES: Readonly<Record<string, readonly string[]>> = { zlib: ['crc32'] };

/** Rooms in which time, chance, the environment and the terminal are anyone's to use. */
export const OUTER_ROOMS = ['src/platform', 'src/admin', 'cmd', 'tests', 'bench', 'tools'];

/** Calls and names that belong to the outer rooms, with what to use instead. */
export const BANNED: Readonly<Record<string, string>> = {
  'Date.now': 'ClockPort.wallMs',
  'performance.now': 'ClockPort.monotonicMs',
  'new Date()': 'ClockPort.wallMs',
  'Math.random': 'RandomPort',
  randomBytes: 'RandomPort',
  randomUUID: 'RandomPort',
  'crypto.randomBytes': 'RandomPort',
  'crypto.randomUUID': 'RandomPort',
  'crypto.getRandomValues': 'RandomPort',
  setTimeout: 'ClockPort.sleep',
  setInterval: 'ClockPort.sleep',
  'process.env': 'Config',
  console: 'Logger',
};

/** Name of an export → the one file that may import it. That file passes it to all others, so all of them have the same. */
export const HANDED_ON: Readonly<Record<string, string>> = { DELETE_RULES: 'src/metadata/state-machine.ts' };

/** Module mocks: needing one means that the design is wrong. */
export const BANNED_IN_TESTS = ['vi.mock', 'vi.doMock'];

export const FILE_LINES_MAX = 700;
export const FUNCTION_LINES_MAX = 70;
/** path → lines, exactly. Only ever lower or remove an entry. */
export const LONG_FILES: Readonly<Record<string, number>> = {};
/** path#function → lines, exactly. Only ever lower or remove an entry. */
export const LONG_FUNCTIONS: Readonly<Record<string, number>> = {};

/** Tools that read a default export. */
export const DEFAULT_EXPORTS = ['vitest.config.ts'];

/** Where programs begin; everything else must be reachable from one of these or from a test. */
export const ENTRIES = [
  'cmd/holdfast.mjs',
  'tools/run.mjs',
  'vitest.config.ts',
  'tests/support/run/compare-bytes.ts',
];
/** Files of src that only tests use. Remove an entry when the product uses the file. */
export const TEST_ONLY: readonly string[] = [
  'src/platform/memory/memory-store.ts',
  'src/platform/memory/memory-calls.ts',
  'src/platform/memory/memory-coordinator.ts',
  'src/platform/memory/memory-kv.ts',
  'src/platform/memory/memory-peers.ts',
  // For simulations, and for forms in which disks and their users are one process.
  'src/chunks/copies/own-disk.ts',
];

/** Words that say nothing. */
export const EMPTY_NAMES = [
  'util',
  'utils',
  'common',
  'manager',
  'helper',
  'helpers',
  'misc',
  'info',
  'handler',
];

export const TOP_LEVEL = [
  '.ci',
  '.dockerignore',
  '.gitignore',
  '.npmrc',
  'CONTRIBUTING.md',
  'LICENSE',
  'README.md',
  'bench',
  'biome.json',
  'cmd',
  'deploy',
  'docs',
  'package-lock.json',
  'package.json',
  'proto',
  'src',
  'tests',
  'tools',
  'tsconfig.json',
  'vitest.config.ts',
];

/** Places of the machine it was written on, and where its packages came from: neither belongs in the project. */
export const FOREIGN_MENTIONS: readonly RegExp[] = [
  /(?<![\w.:/])\/(work|root|home|Users|tmp)\/[\w.]/,
  /\bregistry\.[a-z0-9-]+\.(?:com|org|net|io|dev|cn)\b/i,
  /pythonhosted|pypi\.org|deb\.debian/i,
];
/** Citations of texts that are not in the repository, or by the name of a file where the grammar of style 8 has its own. */
export const CITED_ELSEWHERE: readonly RegExp[] = [
  /\bservice\.txt\b/,
  /\barchitecture(?:\.md,?|,)?\s\d/,
  /\barchitecture\.md\b/,
  /\b(?:hotpath|house|faults-r2)\.md\b/,
  /\b(?:service|extensions|s3-behaviour|clients|style|protocol)\.md,?\s\d/,
  /\bspec\s\d/,
  /(?<!(?:MOVE|compose|append|delete)\s+)\brules?\s\d/,
  /(?:\.\.\/)+shared\b/,
];
/** Parts of pages whose paths are those of other repositories. */
export const FOREIGN_PATHS: Readonly<Record<string, RegExp>> = {
  'docs/internals/clients.md': /^Source: .*$/gm,
  'docs/internals/style.md': /^## 11\. Models[\s\S]*/m,
};
/** Files that must name the above to forbid them, and texts that are not ours. */
export const MENTION_FREE_PASS = ['tests/tidy/rules.ts', 'tests/tidy.test.ts', 'LICENSE'];

/** What a document must say: the folders of a path with `*` at its end, or the words themselves. */
export const DOC_MENTIONS: readonly { doc: string; words: readonly string[]; folders?: string }[] = [
  { doc: 'README.md', words: ['npm start', 'npm test'], folders: 'src' },
  { doc: 'docs/internals/style.md', words: ROOMS.map(({ room }) => `\`${room}\``) },
];
