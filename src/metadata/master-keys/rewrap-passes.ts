// Passes over all wrapped keys of all shards: whatever is not under the active master key is wrapped anew. They only ever see
// wrapped keys: bodies and headers are not sealed anew, because their own keys stay as they are.
import type { KeyringPort } from '../../ports/keyring.ts';
import type { CommandOf, MetadataPort } from '../../ports/metadata/port.ts';
import type { WrappedKek } from '../../types/version.ts';
import { finishLeft } from '../workers/late-items.ts';
import { doneValue } from '../workers/shard-worker.ts';

const PAGE_ROWS = 256;
/** A master key may go when this many passes in a row have found nothing under it. */
const CLEAN_PASSES = 2;

/**
 * `clean`: the last passes have found nothing, and nothing can come after them. `held-up`: the last one found nothing, and may
 * not count, because requests of before are under way: there is no other one before they have ended.
 */
export type PassState = 'under-way' | 'ended' | 'held-up' | 'clean';

export interface RewrapPasses {
  /** Does the next pages of a pass, as many as are empty and one more. Rejects where a shard does not answer: try again. */
  work(signal: AbortSignal): Promise<PassState>;
  /** The next pass is the first one again. */
  forget(): void;
  /** Shards that the pass under way is done with. */
  readonly shardsDone: number;
  /** The mark of the last pass that has ended. */
  readonly mark: string | undefined;
  /** Keys wrapped anew since this process began. */
  readonly rewrappedCount: number;
}

export function createRewrapPasses(deps: {
  metadata: MetadataPort;
  keyring: KeyringPort;
  /**
   * Asked as each pass begins: undefined while a request is under way that may yet commit under an older key, else a mark. With
   * another mark than before there may have been such a request meanwhile.
   */
  settledMark(): string | undefined | Promise<string | undefined>;
}): RewrapPasses {
  return new Passes(deps);
}

interface Pass {
  shard: number;
  after: Uint8Array | undefined;
  foundCount: number;
  movesSeen: number;
  canBeLast: boolean;
  mark: string | undefined;
}

class Passes implements RewrapPasses {
  readonly #deps: Parameters<typeof createRewrapPasses>[0];
  #pass: Pass | undefined;
  #cleanPasses = 0;
  #hasFoundNone = false;
  #cleanMark: string | undefined;
  #rewrappedCount = 0;

  constructor(deps: Parameters<typeof createRewrapPasses>[0]) {
    this.#deps = deps;
  }

  get shardsDone(): number {
    return this.#pass?.shard ?? 0;
  }

  get mark(): string | undefined {
    return this.#cleanMark;
  }

  get rewrappedCount(): number {
    return this.#rewrappedCount;
  }

  forget(): void {
    this.#pass = undefined;
    this.#cleanPasses = 0;
    this.#hasFoundNone = false;
  }

  async work(signal: AbortSignal): Promise<PassState> {
    const { metadata } = this.#deps;
    this.#pass ??= await this.#newPass();
    const pass = this.#pass;
    if (pass === undefined) return 'held-up';
    while (!signal.aborted && (await this.#rewrapPage(pass)) && pass.shard < metadata.shardCount);
    if (pass.shard < metadata.shardCount) return 'under-way';
    // Requests that began before the new key was made may still commit under the old one: a pass counts only when it
    // began after they had ended. And it takes two in a row, because a Complete carries a key from an upload's row to
    // a version's, which the pass may have gone by already.
    const hasFoundNone = pass.foundCount === 0;
    if (pass.mark !== this.#cleanMark) this.#cleanPasses = 0;
    this.#cleanPasses = hasFoundNone && pass.canBeLast ? this.#cleanPasses + 1 : 0;
    this.#cleanMark = pass.mark;
    this.#hasFoundNone = hasFoundNone;
    this.#pass = undefined;
    if (this.#cleanPasses >= CLEAN_PASSES) return 'clean';
    return hasFoundNone && !pass.canBeLast ? 'held-up' : 'ended';
  }

  /** Undefined: it would find nothing, and not count. */
  async #newPass(): Promise<Pass | undefined> {
    const mark = await this.#deps.settledMark();
    if (mark === undefined && this.#hasFoundNone) return undefined;
    return {
      ...{ shard: 0, after: undefined, foundCount: 0, movesSeen: 0 },
      ...{ canBeLast: mark !== undefined, mark },
    };
  }

  /** True when the page held nothing at all: the next one costs no more than a look. */
  async #rewrapPage(pass: Pass): Promise<boolean> {
    const { metadata, keyring } = this.#deps;
    const envelope = { shard: pass.shard };
    const query = {
      notKeyId: keyring.activeKeyId,
      limit: PAGE_ROWS,
      ...(pass.after && { after: pass.after }),
    };
    const { items, next, scannedCount, moveCounts } = doneValue(
      await metadata.query(envelope, 'list-wrapped-keys', query),
    );
    if (items.length > 0) {
      const each = items.map(({ row, wrapped }) => ({
        row,
        expected: wrapped,
        replacement: rewrap(keyring, wrapped),
      }));
      const send = async (command: CommandOf<'rewrap-keys'>) => {
        const { count, left = [] } = doneValue(await metadata.execute(envelope, 'rewrap-keys', command));
        this.#rewrappedCount += count;
        return left;
      };
      const left = await send({ items: each, leavesBusy: true });
      const leftOut = each.filter((_, at) => left.includes(at));
      await finishLeft(leftOut, (item) => send({ items: [item] }));
    }
    pass.foundCount += items.length;
    // A MOVE may have carried an old key past the scan, pass after pass: such a pass has not seen all.
    const [before, after] = moveCounts;
    if (pass.after === undefined) pass.movesSeen = before;
    if (after !== pass.movesSeen) pass.canBeLast = false;
    pass.after = next;
    if (next === undefined) pass.shard++;
    return scannedCount === 0;
  }
}

function rewrap(keyring: KeyringPort, wrapped: WrappedKek): WrappedKek {
  return keyring.wrap(keyring.unwrap(wrapped));
}
