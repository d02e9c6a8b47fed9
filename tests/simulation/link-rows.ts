// Blobs, links, claims and who owns them, as the logs of all shards tell, entry by entry. After every step: what a committed
// version, part or page leads to is live, and has its link row in its home (I9); what is condemned stays so (I10). At rest:
// links are owners, exactly, and nothing is under way (I16).
import { toHex } from '../../src/base/bytes/bytes.ts';
import { keyOfRow } from '../../src/metadata/engine/row-keys.ts';
import { TABLES } from '../../src/metadata/schema/keyspace.ts';
import { type BlobId, homeShardOf, type LinkId } from '../../src/types/names.ts';
import {
  blobCodec,
  type ForeignRecord,
  foreignCodec,
  type LinkRecord,
  linkCodec,
  manifestPageCodec,
  outboxCodec,
  partCodec,
} from '../../src/types/records/rows.ts';
import { decodeVersion } from '../../src/types/records/version-record.ts';
import { linksOf } from '../../src/types/version.ts';
import { SimulationFailure } from './scheduler.ts';
import type { ShardHistory } from './shard-history.ts';

interface LinkName {
  blobId: BlobId;
  linkId: LinkId;
}

type Row = { key: Uint8Array; value: Uint8Array | null };

const ID_BYTES = 16;
const idAt = (bytes: Uint8Array, at = 0) => toHex(bytes.subarray(at, at + ID_BYTES));

/** What waits for background work: empty at rest. */
const QUEUES: ReadonlyMap<number, string> = new Map(
  (['uploadTimes', 'endedUploads', 'endedLinks', 'condemned', 'pendingClaims'] as const).map((name) => [
    TABLES[name].id,
    name,
  ]),
);

/** What one shard has of blobs, of its own and of other homes. */
class ShardRows {
  readonly shard: number;
  readonly blobs = new Map<BlobId, { isMarked: boolean }>();
  readonly links = new Map<BlobId, Map<LinkId, LinkRecord>>();
  readonly foreign = new Map<BlobId, ForeignRecord>();
  /** Blob -> link -> how many rows lead to it by this link. */
  readonly owners = new Map<BlobId, Map<LinkId, number>>();
  /** What waits for background work, by the name of its table. */
  readonly queues = new Map<string, Set<string>>();
  readonly #usesOf = new Map<string, readonly LinkName[]>();
  readonly #gone = new Set<BlobId>();
  seenSeq = 0;

  constructor(shard: number) {
    this.shard = shard;
  }

  apply({ key, value }: Row, touched: Set<BlobId>): void {
    const own = keyOfRow(key);
    const queue = QUEUES.get(key[2] ?? 0);
    switch (key[2]) {
      case TABLES.objects.id:
        this.#own(key, value === null ? [] : linksOf(decodeVersion(value).manifest), touched);
        break;
      case TABLES.parts.id:
        this.#own(key, value === null ? [] : partCodec.decode(value).uses, touched);
        break;
      case TABLES.manifestPages.id:
        this.#own(key, value === null ? [] : manifestPageCodec.decode(value).uses, touched);
        break;
      case TABLES.blobs.id:
        this.#noteBlob(idAt(own) as BlobId, value, touched);
        break;
      case TABLES.links.id:
        this.#noteLink(own, value, touched);
        break;
      case TABLES.foreign.id:
        this.#noteForeign(idAt(own) as BlobId, value, touched);
        break;
      case TABLES.outbox.id:
        if (value === null || outboxCodec.decode(value).kind === 'release-link')
          this.#queue('outbox', key, value);
        break;
      default:
        if (queue !== undefined) this.#queue(queue, key, value);
    }
  }

  #noteForeign(blobId: BlobId, value: Uint8Array | null, touched: Set<BlobId>): void {
    touched.add(blobId);
    if (value === null) this.foreign.delete(blobId);
    else this.foreign.set(blobId, foreignCodec.decode(value));
  }

  #queue(name: string, key: Uint8Array, value: Uint8Array | null): void {
    const rows = this.queues.get(name) ?? new Set();
    this.queues.set(name, rows);
    if (value === null) rows.delete(toHex(key));
    else rows.add(toHex(key));
  }

  #noteBlob(blobId: BlobId, value: Uint8Array | null, touched: Set<BlobId>): void {
    touched.add(blobId);
    const isMarked = value !== null && blobCodec.decode(value).condemnedAtMs !== undefined;
    if (value === null || isMarked) this.#gone.add(blobId);
    else if (this.#gone.has(blobId))
      throw new SimulationFailure(`I10: blob ${blobId} lives again, and was condemned before`);
    if (value === null) this.blobs.delete(blobId);
    else this.blobs.set(blobId, { isMarked });
  }

  #noteLink(own: Uint8Array, value: Uint8Array | null, touched: Set<BlobId>): void {
    const blobId = idAt(own) as BlobId;
    const linkId = idAt(own, ID_BYTES) as LinkId;
    touched.add(blobId);
    const links = this.links.get(blobId) ?? new Map<LinkId, LinkRecord>();
    if (value === null) links.delete(linkId);
    else links.set(linkId, linkCodec.decode(value));
    if (links.size === 0) this.links.delete(blobId);
    else this.links.set(blobId, links);
  }

  #own(key: Uint8Array, uses: readonly LinkName[], touched: Set<BlobId>): void {
    const row = toHex(key);
    const before = this.#usesOf.get(row) ?? [];
    for (const name of before) this.#count(name, -1, touched);
    for (const name of uses) this.#count(name, 1, touched);
    if (uses.length === 0) this.#usesOf.delete(row);
    else
      this.#usesOf.set(
        row,
        uses.map(({ blobId, linkId }) => ({ blobId, linkId })),
      );
  }

  #count({ blobId, linkId }: LinkName, delta: number, touched: Set<BlobId>): void {
    touched.add(blobId);
    const links = this.owners.get(blobId) ?? new Map<LinkId, number>();
    const count = (links.get(linkId) ?? 0) + delta;
    if (count === 0) links.delete(linkId);
    else links.set(linkId, count);
    if (links.size === 0) this.owners.delete(blobId);
    else this.owners.set(blobId, links);
  }
}

export class LinkRows {
  readonly #shards: ShardRows[] = [];

  /** Takes in what shards have committed since the last time, and checks what of it has changed. */
  follow(histories: readonly ShardHistory[]): void {
    const touched = new Set<BlobId>();
    for (const history of histories) {
      this.#shards[history.shard] ??= new ShardRows(history.shard);
      const rows = this.#shards[history.shard] as ShardRows;
      for (; rows.seenSeq < history.lastSeq; rows.seenSeq++)
        for (const row of history.entry(rows.seenSeq + 1)?.rows ?? [])
          if (row.column === 'rows') rows.apply(row, touched);
    }
    for (const blobId of touched) this.#check(blobId);
  }

  /** I9 */
  #check(blobId: BlobId): void {
    for (const { shard, owners } of this.#shards)
      for (const linkId of owners.get(blobId)?.keys() ?? []) {
        const lack = this.#lackOf({ blobId, linkId }, shard);
        if (lack !== undefined)
          throw new SimulationFailure(
            `I9: shard ${shard} has a version or part of blob ${blobId} by link ${linkId}, and ${lack}`,
          );
      }
  }

  #lackOf({ blobId, linkId }: LinkName, shard: number): string | undefined {
    const home = this.#shards[homeShardOf(blobId)];
    const rows = this.#shards[shard];
    if (home === undefined || rows === undefined) return 'there is no such shard';
    if (rows.links.get(blobId)?.get(linkId)?.state !== 'own') return 'no row of that link';
    if (home !== rows) {
      const foreign = rows.foreign.get(blobId);
      if (foreign === undefined) return 'no claim that it stands on';
      const claim = home.links.get(blobId)?.get(foreign.linkId);
      if (claim === undefined || claim.state === 'own' || claim.shard !== shard)
        return `its home has no claim ${foreign.linkId} of it`;
    }
    const blob = home.blobs.get(blobId);
    if (blob === undefined) return 'the blob is gone';
    return blob.isMarked ? 'the blob is condemned' : undefined;
  }

  /** I16: what is not as it must be when nothing is under way; empty when all is well. */
  unrest(): string[] {
    return this.#shards.flatMap((rows) =>
      [...this.#unrestOf(rows)].map((what) => `shard ${rows.shard}: ${what}`),
    );
  }

  *#unrestOf(rows: ShardRows): Generator<string> {
    for (const [name, { size }] of rows.queues) if (size > 0) yield `${size} rows in ${name}`;
    yield* this.#orphanedLinks(rows);
    for (const blobId of rows.foreign.keys())
      if (!rows.owners.has(blobId)) yield `a claim on ${blobId} that nobody uses`;
    for (const blobId of rows.blobs.keys()) if (!rows.links.has(blobId)) yield `no link on ${blobId}`;
  }

  *#orphanedLinks(rows: ShardRows): Generator<string> {
    for (const [blobId, links] of rows.links)
      for (const [linkId, { state, shard }] of links) {
        const isHeld =
          state === 'own'
            ? rows.owners.get(blobId)?.has(linkId) === true
            : this.#shards[shard]?.foreign.get(blobId)?.linkId === linkId;
        if (!isHeld || state === 'pending')
          yield `the ${state} link ${linkId} on ${blobId}${isHeld ? '' : ', without owner'}`;
        const ownerCount = rows.owners.get(blobId)?.get(linkId) ?? 0;
        if (ownerCount > 1) yield `the link ${linkId} on ${blobId} has ${ownerCount} owners`;
      }
  }
}
