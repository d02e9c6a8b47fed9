// The groups of test files. The folder of a file says its group; docs/internals/testing.md tells what each is for.

/** A folder's test files, and how vitest runs them. */
interface Group {
  /** Patterns of files, from the top of the project. */
  readonly include: readonly string[];
  /** How many files run beside one another on two cores. */
  readonly workers: number;
  /** True: each file has a process of its own. False: files share a process and its loaded modules, and leave both clean. */
  readonly isolate: boolean;
  /** True: its files run among those of the group before it, with as many workers. */
  readonly isBesideGroupBefore?: true;
  /** Of a test without a bound of its own. It ends tests that hang; slow and busy machines stay below it. */
  readonly timeoutMs: number;
}

const folder = (name: string) => `tests/${name}/**/*.test.ts`;

/** By name, in the order in which `npm test` runs them. */
export const GROUPS = {
  unit: {
    include: ['src/**/*.test.ts', 'cmd/**/*.test.ts', 'tests/*.test.ts', folder('scenarios')],
    workers: 2,
    isolate: false,
    timeoutMs: 120_000,
  },
  // From here on to api they run beside one another: no end of a group waits for one file. Some of their files wait.
  models: { include: [folder('models')], workers: 4, isolate: false, timeoutMs: 300_000 },
  programs: {
    include: [folder('programs')],
    workers: 4,
    isolate: false,
    timeoutMs: 120_000,
    isBesideGroupBefore: true,
  },
  contract: {
    include: [folder('contract')],
    workers: 4,
    isolate: false,
    timeoutMs: 120_000,
    isBesideGroupBefore: true,
  },
  deploy: {
    include: [folder('deploy')],
    workers: 4,
    isolate: false,
    timeoutMs: 120_000,
    isBesideGroupBefore: true,
  },
  sim: {
    include: [folder('simulation')],
    workers: 4,
    isolate: false,
    timeoutMs: 300_000,
    isBesideGroupBefore: true,
  },
  // Jobs of a server look for work each second or less often, and tests wait for them.
  api: {
    include: [folder('api')],
    workers: 4,
    isolate: false,
    timeoutMs: 120_000,
    isBesideGroupBefore: true,
  },
  // Clusters mostly wait for leases and promises to end, and client programs have the processor meanwhile.
  cluster: { include: [folder('cluster')], workers: 4, isolate: true, timeoutMs: 600_000 },
  clients: {
    include: [folder('clients')],
    workers: 4,
    isolate: false,
    timeoutMs: 600_000,
    isBesideGroupBefore: true,
  },
  // Starts of servers wait for the disk.
  faults: {
    include: [folder('faults')],
    workers: 4,
    isolate: false,
    timeoutMs: 300_000,
    isBesideGroupBefore: true,
  },
  // They measure time or memory, or take much of the machine. Two at a time: about half of the time one waits.
  alone: { include: [folder('alone')], workers: 2, isolate: true, timeoutMs: 300_000 },
} as const satisfies Readonly<Record<string, Group>>;

export type GroupName = keyof typeof GROUPS;

export const GROUP_NAMES = Object.keys(GROUPS) as GroupName[];

/** When the files of a group run: those of one number beside one another, and numbers one after the other. */
export function orderOf(group: GroupName): number {
  const before: readonly Group[] = GROUP_NAMES.slice(0, GROUP_NAMES.indexOf(group) + 1).map(
    (name) => GROUPS[name],
  );
  return before.filter(({ isBesideGroupBefore }) => isBesideGroupBefore !== true).length - 1;
}

/** What the script `test:NAME` runs, where that is more than the group NAME: projects of vitest.config.ts. */
const MORE_PROJECTS: Readonly<Record<string, readonly string[]>> = {
  api: ['api', 'api-loopback'],
  faults: ['faults', 'alone'],
};

/** The projects of vitest that belong to a group. */
export const projectsOf = (group: GroupName): readonly string[] => MORE_PROJECTS[group] ?? [group];
