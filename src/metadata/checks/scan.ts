// What every check of a row is given, and gathers into: a view of the shard at one moment, findings, and facts for
// comparisons with what is elsewhere.
import { concatBytes, fromHex } from '../../base/bytes/bytes.ts';
import type { CheckFacts } from '../../ports/metadata/checks.ts';
import type { ResultOf } from '../../ports/metadata/port.ts';
import type { Row, RowAddress, StateView } from '../../ports/state-machine.ts';
import type { FindingKind, FindingPlace } from '../../types/findings.ts';
import { type BlobId, type BucketId, homeShardOf } from '../../types/names.ts';
import { type BucketRecord, blobCodec, bucketCodec, foreignCodec } from '../../types/records/rows.ts';
import { type BlobLayout, isLaidWithin, type WrappedKek } from '../../types/version.ts';
import type { LinkName } from '../blobs/links.ts';
import { blobRow, bucketRow, foreignRow, linkRow } from '../schema/keyspace.ts';

/** Looks at one row and at all that must agree with it in the same view. */
export type RowCheck = (row: Row, scan: CheckScan) => Promise<void>;

export class CheckScan {
  readonly view: StateView;
  readonly shard: number;
  readonly findings: ResultOf<'check-rows'>['findings'] = [];
  readonly facts: Omit<CheckFacts, 'uses' | 'ownLinks'> = {
    pieceUses: [],
    claims: [],
    blobs: [],
    foreign: [],
    unlinked: [],
    usage: [],
    buckets: [],
    names: [],
  };
  readonly #uses: Uint8Array[] = [];
  readonly #ownLinks: Uint8Array[] = [];
  readonly #buckets = new Map<BucketId, BucketRecord | undefined>();

  readonly #keyIds: ReadonlySet<string>;

  constructor(view: StateView, shard: number, keyIds: readonly string[] = []) {
    this.view = view;
    this.shard = shard;
    this.#keyIds = new Set(keyIds);
  }

  found(kind: FindingKind, place: FindingPlace): void {
    this.findings.push({ kind, shard: this.shard, ...place });
  }

  async row(address: RowAddress): Promise<Uint8Array | undefined> {
    const [row] = await this.view.rows([address]);
    return row;
  }

  /** Finds `kind` unless the row is there. */
  async expectRow(address: RowAddress, kind: FindingKind, place: FindingPlace): Promise<void> {
    if ((await this.row(address)) === undefined) this.found(kind, place);
  }

  async bucket(bucketId: BucketId): Promise<BucketRecord | undefined> {
    if (!this.#buckets.has(bucketId)) {
      const row = await this.row(bucketRow(bucketId));
      this.#buckets.set(bucketId, row && bucketCodec.decode(row));
    }
    return this.#buckets.get(bucketId);
  }

  /** Customers' keys are not here to be known. */
  checkKey(key: WrappedKek | undefined, place: FindingPlace): void {
    if (key?.by !== 'master' || this.#keyIds.has(key.keyId)) return;
    this.found('key-unknown', { ...place, note: key.keyId });
  }

  addOwnLink(name: LinkName): void {
    this.#ownLinks.push(linkBytes(name));
  }

  /** A link that a version, part or manifest holds, and the data behind it. */
  async checkUse(use: LinkName & { layout: BlobShape }, place: FindingPlace): Promise<void> {
    this.#uses.push(linkBytes(use));
    const { blobId, linkId, layout } = use;
    const where = { ...place, blob: blobId, link: linkId };
    await this.expectRow(linkRow(blobId, linkId), 'link-missing', where);
    const isHome = homeShardOf(blobId) === this.shard;
    const row = await this.row(isHome ? blobRow(blobId) : foreignRow(blobId));
    if (row === undefined) {
      this.found(isHome ? 'blob-missing' : 'claim-missing', where);
      return;
    }
    const blob = isHome ? blobCodec.decode(row) : foreignCodec.decode(row).layout;
    if ('condemnedAtMs' in blob && blob.condemnedAtMs !== undefined) this.found('blob-condemned', where);
    if (!fits(layout, blob)) {
      const note = `${shapeText(layout)}, is ${shapeText(blob)}`;
      this.found('layout-differs', { ...where, note });
    } else this.#notePieces(blobId, layout, isHome ? blob : undefined, where);
  }

  /** Where the row of the blob names the same last piece there is nothing to be compared. */
  #notePieces(blobId: BlobId, seen: BlobShape, blob: BlobShape | undefined, place: FindingPlace): void {
    if (!('grown' in seen) || seen.grown === undefined) return;
    const { pieceCount, lastPieceId } = seen.grown;
    const isEnd = blob !== undefined && 'grown' in blob && blob.grown?.pieceCount === pieceCount;
    if (isEnd) return;
    this.facts.pieceUses.push({ blobId, pieceCount, lastPieceId, place: { shard: this.shard, ...place } });
  }

  result(): Pick<ResultOf<'check-rows'>, 'findings' | 'facts'> {
    const facts = {
      ...this.facts,
      uses: concatBytes(...this.#uses),
      ownLinks: concatBytes(...this.#ownLinks),
    };
    return { findings: this.findings, facts };
  }
}

/** Of a manifest only its size means anything. */
export type BlobShape =
  | { kind: 'manifest'; sizeBytes: number }
  | (BlobLayout & { kind: 'data' | 'manifest' });

/** Whether the data is as its user sees it. */
export function fits(seen: BlobShape, stored: BlobShape): boolean {
  if (seen.kind !== stored.kind) return false;
  if (seen.kind === 'manifest' || stored.kind === 'manifest') return seen.sizeBytes === stored.sizeBytes;
  return isLaidWithin(seen, stored);
}

function shapeText(shape: BlobShape): string {
  if (shape.kind === 'manifest') return `manifest of ${shape.sizeBytes}`;
  const { sizeBytes, storage, chunkSizeBytes, grown } = shape;
  const how = grown === undefined ? `by ${chunkSizeBytes}` : `in ${grown.pieceCount}`;
  return `${storage} of ${sizeBytes} ${how}`;
}

function linkBytes({ blobId, linkId }: LinkName): Uint8Array {
  return fromHex(blobId + linkId);
}
