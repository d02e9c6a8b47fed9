// Every key of the shard that a master key wraps, page by page, for its rotation. Keys wrapped by a customer's key are
// not among them.
import { concatBytes } from '../../base/bytes/bytes.ts';
import { TABLE_END } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader, TableRef } from '../../ports/state-machine.ts';
import { COUNTER } from '../schema/counters.ts';
import { TABLES } from '../schema/keyspace.ts';
import { versionsBehind } from '../versions/version-walk.ts';
import { SECTION, type Section, wrappedIn, wrappedKeyName } from './wrapped-keys.ts';

type Result = ResultOf<'list-wrapped-keys'>;

interface Scanned {
  /** What follows the section in the name. */
  rest: Uint8Array;
  value: Uint8Array;
}

export const listWrappedKeys: QuerySpec<QueryOf<'list-wrapped-keys'>, Result> = {
  async run({ notKeyId, after, limit }, state) {
    const before = await countMoves(state);
    const section = (after?.[0] ?? SECTION.uploads) as Section;
    const scanned = await scanSection(section, { after: after?.subarray(1), limit, state });
    const items = scanned.flatMap(({ rest, value }) => {
      const wrapped = wrappedIn(section, value);
      const isWanted = wrapped !== undefined && wrapped.keyId !== notKeyId;
      return isWanted ? [{ row: wrappedKeyName(section, rest), wrapped }] : [];
    });
    const next = nextAfter(section, scanned, limit);
    const moveCounts = [before, await countMoves(state)] as const;
    return { items, ...(next && { next }), scannedCount: scanned.length, moveCounts };
  },
};

async function countMoves(state: StateReader): Promise<number> {
  const [count = 0] = await state.counters([COUNTER.moves]);
  return count;
}

/** Where the next page begins: in this section, or at the start of the one behind it. */
function nextAfter(section: Section, scanned: readonly Scanned[], limit: number): Uint8Array | undefined {
  const last = scanned.at(-1);
  if (last !== undefined && scanned.length === limit) return wrappedKeyName(section, last.rest);
  return section === SECTION.identities ? undefined : Uint8Array.of(section + 1);
}

const SECTION_TABLES = {
  [SECTION.uploads]: TABLES.uploads,
  [SECTION.accessKeys]: TABLES.accessKeys,
  [SECTION.identities]: TABLES.identities,
} as const;

interface ScanOptions {
  /** Exclusive; empty or absent: from the start. */
  after: Uint8Array | undefined;
  limit: number;
  state: StateReader;
}

function scanSection(section: Section, options: ScanOptions): Promise<Scanned[]> {
  if (section === SECTION.versions) return scanVersions(options);
  return scanTable(SECTION_TABLES[section], options);
}

async function scanTable(table: TableRef, { after, limit, state }: ScanOptions): Promise<Scanned[]> {
  const gte = after?.length ? concatBytes(after, Uint8Array.of(0)) : Uint8Array.of(0);
  const rows = await state.range({ table, gte, lt: TABLE_END, limit });
  return rows.map(({ key, value }) => ({ rest: key, value }));
}

async function scanVersions({ state, ...page }: ScanOptions): Promise<Scanned[]> {
  const scanned: Scanned[] = [];
  for await (const { position, value } of versionsBehind(state, page))
    scanned.push({ rest: position, value });
  return scanned;
}
