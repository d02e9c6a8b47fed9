// All versions in the order of key and age, wherever each of them lies: the latest ones, the markers and the others are
// merged under one cursor, so every version that is there at that moment is met exactly once.
import { must } from '../../base/assert.ts';
import { compareBytes, concatBytes, EMPTY_BYTES, utf8 } from '../../base/bytes/bytes.ts';
import { TABLE_END } from '../../base/table-rows.ts';
import type { Row, StateReader } from '../../ports/state-machine.ts';
import { decodeVersionSummary } from '../../types/records/version-record.ts';
import { REGION, type Region, readVersionPosition, TABLES, versionPosition } from '../schema/keyspace.ts';
import { createRowScan, type RowScan, SCAN_BYTES_MAX } from '../schema/row-scan.ts';

export interface WalkedVersion {
  /** See versionPosition. */
  position: Uint8Array;
  value: Uint8Array;
  region: Region;
  isLatest: boolean;
}

/** A bound of a walk, in the two ways in which keys are written: as such, and escaped. Both begin with the bucket. */
export interface WalkBound {
  plain: Uint8Array;
  escaped: Uint8Array;
}

export interface VersionWalk {
  /** The next version in memory; undefined: `fill` first, or the end. */
  peek(): WalkedVersion | undefined;
  /** Goes behind the version that `peek` gave. */
  advance(): void;
  skipTo(bound: WalkBound): void;
  fill(): Promise<boolean>;
  close(): void;
}

interface Source {
  scan: RowScan;
  isLatest: boolean;
  isEnded: boolean;
  head: WalkedVersion | undefined;
}

/** From `from` (inclusive; `escaped` may be any position) to `to` (exclusive). Close it. */
export function createVersionWalk(options: {
  state: Pick<StateReader, 'cursor'>;
  from: WalkBound;
  to: WalkBound;
  firstChunk: number;
}): VersionWalk {
  const { state, from, to, firstChunk } = options;
  const lt = Uint8Array.of(REGION.version + 1);
  const bounds = { gte: Uint8Array.of(REGION.current), lt, bytesMax: SCAN_BYTES_MAX };
  const cursor = state.cursor({ table: TABLES.objects, ...bounds });
  const sourceOf = (region: Region): Source => {
    const gte = inRegion(region, from);
    const scan = createRowScan({ cursor, gte, lt: inRegion(region, to), firstChunk });
    return { scan, isLatest: region !== REGION.version, isEnded: false, head: undefined };
  };
  const sources = Object.values(REGION).map(sourceOf);

  function headOf(source: Source): WalkedVersion | undefined {
    for (
      let row = source.scan.peek();
      source.head === undefined && row !== undefined;
      row = source.scan.peek()
    ) {
      const head = walked(row, source.isLatest);
      // A latest version begins with its key; the walk may begin behind it.
      if (compareBytes(head.position, from.escaped) < 0) source.scan.advance();
      else source.head = head;
    }
    return source.head;
  }

  function first(): Source | undefined {
    let least: Source | undefined;
    for (const source of sources) {
      const head = headOf(source);
      if (head === undefined) {
        if (!source.isEnded) return undefined;
      } else if (least?.head === undefined || compareBytes(head.position, least.head.position) < 0) {
        least = source;
      }
    }
    return least;
  }

  return {
    peek: () => first()?.head,
    advance() {
      const source = must(first(), 'there is a version to go behind');
      source.scan.advance();
      source.head = undefined;
    },
    skipTo(bound) {
      for (const [at, region] of Object.values(REGION).entries()) {
        const source = must(sources[at], 'a source per region');
        source.scan.skipTo(inRegion(region, bound));
        source.head = undefined;
      }
    },
    async fill() {
      for (const source of sources) {
        while (headOf(source) === undefined && !source.isEnded) source.isEnded = !(await source.scan.fill());
      }
      return first() !== undefined;
    },
    close: () => cursor.close(),
  };
}

/** Versions of the whole shard behind the one at position `after`, `limit` at most. */
export async function* versionsBehind(
  state: Pick<StateReader, 'cursor'>,
  { after, limit }: { after: Uint8Array | undefined; limit: number },
): AsyncGenerator<WalkedVersion> {
  const to = { plain: TABLE_END, escaped: TABLE_END };
  const walk = createVersionWalk({ state, from: walkBehind(after), to, firstChunk: limit });
  try {
    for (let count = 0; count < limit && (walk.peek() !== undefined || (await walk.fill())); ) {
      const walked = walk.peek();
      if (walked === undefined) continue;
      yield walked;
      count++;
      walk.advance();
    }
  } finally {
    walk.close();
  }
}

/** Where a walk begins that goes on behind a version; at the start without one. */
function walkBehind(position: Uint8Array | undefined): WalkBound {
  if (!position?.length) return { plain: EMPTY_BYTES, escaped: EMPTY_BYTES };
  const { key } = readVersionPosition(position);
  const plain = concatBytes(position.subarray(0, 8), utf8(key));
  return { plain, escaped: concatBytes(position, Uint8Array.of(0)) };
}

function inRegion(region: Region, { plain, escaped }: WalkBound): Uint8Array {
  return concatBytes(Uint8Array.of(region), region === REGION.version ? escaped : plain);
}

function walked({ key, value }: Row, isLatest: boolean): WalkedVersion {
  const position = isLatest ? versionPosition(key, decodeVersionSummary(value).order) : key.subarray(1);
  return { position, value, region: key[0] as Region, isLatest };
}
