// A disk's store that notices when its last commits were cut off (R40, L4). Each synced commit carries a number, and the
// last acknowledged number is in a witness file beside the store, as for replicas (R17). A store that opens with a lower
// number has lost acknowledged data.
import { DriveHangs } from '../../base/drive-hangs.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import { COMMITS_KEY, decodeCommits, encodeCommits } from './keyspace.ts';

/** The witness format is that of shards; a disk uses one slot of it. */
const PLACE = 0;

export interface WitnessedKv {
  /** Counts its synced commits. Closing it closes the witness; a failed witness fails the store (R20). */
  kv: KvPort;
  /** It lacks acknowledged commits, or the witness cannot prove that it does not. */
  isCut: boolean;
  /** The number of the last known commit, acknowledged or not. Later numbers are higher, and none is used twice. */
  lastSeq: number;
}

export async function openWitnessedKv(kv: KvPort, witness: WitnessPort): Promise<WitnessedKv> {
  const [row] = await kv.getMany('index', [COMMITS_KEY]);
  const stored = row === undefined ? 0 : decodeCommits(row);
  const kept = witness.read(PLACE);
  const answered = kept === undefined || kept === 'damaged' ? 0 : kept.seq;
  let begun = Math.max(stored, answered);
  let written = begun;

  const failed = Promise.race([kv.failed, witness.failed]);
  let hasHung = false;
  failed.then((error) => {
    hasHung = error instanceof DriveHangs;
  });
  /** The first failure of store or witness. It is final: a drive that hung may answer later, with an error. */
  let failure: Error | undefined;
  for (const store of [kv, witness]) {
    store.failed.then((error) => {
      if (!(error instanceof DriveHangs)) failure ??= error;
    });
  }

  async function commit(rows: readonly KvPut[], options: Parameters<KvPort['commit']>[1]): Promise<void> {
    if (options?.sync === false) return kv.commit(rows, options);
    const seq = ++begun;
    await kv.commit([...rows, { column: 'index', key: COMMITS_KEY, value: encodeCommits(seq) }], options);
    // Before the answer, and never lower: commits end together, in any order.
    written = Math.max(written, seq);
    witness.write(PLACE, { seq: written, epoch: 0 });
  }

  return {
    isCut: kept === 'damaged' || answered > stored,
    lastSeq: begun,
    kv: {
      getMany: (column, keys) => kv.getMany(column, keys),
      readPart: async (key, part) => kv.readPart?.(key, part),
      range: (range) => kv.range(range),
      cursor: (bounds) => kv.cursor(bounds),
      commit: (rows, options) => commit(rows, options),
      clear: (range) => kv.clear(range),
      usage: () => kv.usage(),
      turnOver: (signal) => kv.turnOver(signal),
      giveBack: () => kv.giveBack?.(),
      // Whether it is lost or not, the value is there.
      separate: async (key) => (await kv.separate?.(key)) ?? false,
      failed,
      async close() {
        const errors = [...(await errorOf(kv.close())), ...(await errorOf(witness.close()))];
        const decisive = errors.find((error) => !(error instanceof DriveHangs));
        const error = decisive ?? (hasHung ? failure : undefined) ?? errors[0];
        if (error !== undefined) throw error;
      },
    },
  };
}

async function errorOf(ending: Promise<void>): Promise<unknown[]> {
  const [outcome] = await Promise.allSettled([ending]);
  return outcome?.status === 'rejected' ? [outcome.reason] : [];
}
