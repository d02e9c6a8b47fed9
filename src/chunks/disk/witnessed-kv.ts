// A disk's store that notices when its end was cut off (R40, L4): each synced commit carries a number, and the last one that
// was answered stands in a witness beside the store, as for replicas (R17). A store that comes back with a lower one has
// lost what was acknowledged.
import { DriveHangs } from '../../base/drive-hangs.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import { COMMITS_KEY, decodeCommits, encodeCommits } from './keyspace.ts';

/** A witness is made for shards, and a disk has the place of one. */
const PLACE = 0;

export interface WitnessedKv {
  /** Counts its synced commits; with it the witness is closed, and a failed witness is a failed store (R20). */
  kv: KvPort;
  /** It lacks commits that were answered, or its witness cannot say that it does not. */
  isCut: boolean;
  /** Of the last commit that it knows of, answered or not: numbers go on behind it, and none comes twice. */
  lastSeq: number;
}

export async function openWitnessedKv(kv: KvPort, witness: WitnessPort): Promise<WitnessedKv> {
  const [row] = await kv.getMany('index', [COMMITS_KEY]);
  const stored = row === undefined ? 0 : decodeCommits(row);
  const kept = witness.read(PLACE);
  const answered = kept === undefined || kept === 'damaged' ? 0 : kept.seq;
  let begun = Math.max(stored, answered);
  let told = begun;

  const failed = Promise.race([kv.failed, witness.failed]);
  let hasHung = false;
  failed.then((error) => {
    hasHung = error instanceof DriveHangs;
  });
  /** Of either, and final: a drive that has hung may answer, and then with this. */
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
    // Before it is answered, and never back: commits end together, in no order.
    told = Math.max(told, seq);
    witness.write(PLACE, { seq: told, epoch: 0 });
  }

  return {
    isCut: kept === 'damaged' || answered > stored,
    lastSeq: begun,
    kv: {
      getMany: (column, keys) => kv.getMany(column, keys),
      range: (range) => kv.range(range),
      cursor: (bounds) => kv.cursor(bounds),
      commit: (rows, options) => commit(rows, options),
      clear: (range) => kv.clear(range),
      usage: () => kv.usage(),
      turnOver: (signal) => kv.turnOver(signal),
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
