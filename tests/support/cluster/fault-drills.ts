// What tests of faults of real processes (tests/cluster/faults.test.ts) do by their form: how long, how much load, and how
// much is compared. HOLDFAST_TEST_CLUSTER_FAULTS asks for one of the longer forms, HOLDFAST_TEST_SEED for the requests
// and the faults of an earlier run, but for the moments of the kernel and the disk.
import { parseSetting } from '../../../src/config/values.ts';
import { isLongForm } from '../run/long-form.ts';
import { type Endurance, type EnduranceOptions, openEndurance } from './endure.ts';

const ASKED = process.env.HOLDFAST_TEST_CLUSTER_FAULTS;
const FORM = ASKED ?? (isLongForm ? '30min' : '6s');

/** With more load, and everything compared behind each fault. */
export const isLong = FORM === 'long';
/** As all tests run it: with the least load that shows in each shard what a fault does. */
const isShort = ASKED === undefined && !isLongForm;
export const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());
/** For how long chance goes on choosing faults. */
export const RANDOM_MS = durationMs(isLong ? '60min' : FORM);
/** In the long forms there are tens of thousands of objects to compare. */
export const COMPARE_MS = 600_000 + RANDOM_MS / 2;
export const SHARDS = 4;

function durationMs(text: string): number {
  const parsed = parseSetting({ key: 'HOLDFAST_TEST_CLUSTER_FAULTS', kind: 'duration', help: '' }, text);
  if ('problem' in parsed) throw new Error(`HOLDFAST_TEST_CLUSTER_FAULTS: ${parsed.problem}`);
  return Number(parsed.value);
}

export function openFaults(options: Pick<EnduranceOptions, 'cluster' | 'prepare'> = {}): Promise<Endurance> {
  return openEndurance({
    seed: SEED,
    workersPerShard: isLong ? 4 : isShort ? 1 : 2,
    betweenMs: isLong ? 5000 : 500,
    // Unless it is asked for by itself it runs beside other clusters, and has to leave them something.
    ...(ASKED === undefined && { restMs: 400 }),
    compare: isLong ? 'all' : 'touched',
    // To fill a prefix and to rename it takes more than all else of the load.
    renamedPrefixes: isShort ? 1 : SHARDS - 1,
    ...options,
    cluster: { shards: SHARDS, ...options.cluster },
  });
}
