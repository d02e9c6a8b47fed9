// Links between versions (or parts) and blobs as rows: they begin with a grant, and end (R25-R29). Ending a link does not
// touch the blob: mark-blobs.ts decides afterwards whether it still has links.
import { assert } from '../../base/assert.ts';
import { finishAtOnce, type Steps } from '../../base/async/steps.ts';
import { toHex } from '../../base/bytes/bytes.ts';
import { decodeOnce } from '../../base/record-codec.ts';
import type { DataGrant, GrantRefusal, LinkGrant, NewBlob } from '../../ports/metadata/blobs.ts';
import type { DecideContext, LockRequest, PrepareContext, RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { type BlobId, type BucketId, homeShardOf, idTimeMs, type LinkId } from '../../types/names.ts';
import {
  type BlobRecord,
  blobCodec,
  type ForeignRecord,
  foreignCodec,
  homeHistoryCodec,
  isLiveBlob,
  type LinkRecord,
  linkCodec,
} from '../../types/records/rows.ts';
import { repairOfNewBlob } from '../../types/repair-entries.ts';
import { chunkCount, isLaidWithin } from '../../types/version.ts';
import { exclusive, LOCK, shared } from '../schema/define-command.ts';
import {
  blobRow,
  bodyRow,
  endedRowOf,
  foreignRow,
  linkRow,
  PRESENT,
  pendingClaimRow,
  put,
  remove,
} from '../schema/keyspace.ts';
import { homeHistoryRow } from './history.ts';
import { changeRepair, findAudit, joinChanges, NO_CHANGE, type RowChange } from './repair-entries.ts';

const NONCE_BYTES = 8;

/** What a link's holder is, where it is a composition (LinkRecord). */
export interface ComposedHolder {
  composedIn?: BucketId | undefined;
  inManifest?: BlobId | undefined;
  isCharged?: true | undefined;
}

/** One blob, one link. */
export interface LinkName {
  blobId: BlobId;
  linkId: LinkId;
}

export function grantLocks({ births, links }: DataGrant): LockRequest[] {
  return [
    ...births.map(({ use }) => exclusive(LOCK.blob(use.blobId))),
    ...(births.some(({ placed }) => placed !== undefined) ? [shared(LOCK.audit)] : []),
    ...homesOf(links).map((homeShard) => shared(LOCK.home(homeShard))),
    ...links.map(({ blobId, claim }) =>
      claim === undefined ? shared(LOCK.blob(blobId)) : exclusive(LOCK.blob(blobId)),
    ),
  ];
}

export function lookAtGrant({ births, links }: DataGrant, view: View): void {
  for (const { use, placed } of births) {
    view.row(blobRow(use.blobId));
    if (placed !== undefined) findAudit(view);
  }
  for (const { blobId, claim } of links) view.row(claim === undefined ? blobRow(blobId) : foreignRow(blobId));
  for (const homeShard of homesOf(links)) view.row(homeHistoryRow(homeShard));
}

function homesOf(links: readonly LinkGrant[]): number[] {
  return [...new Set(links.flatMap(({ claim }) => (claim === undefined ? [] : [claim.homeShard])))];
}

/**
 * R24: a blob of the grant exists already. Checked before any other refusal: after any other, writers drop the chunks that
 * they have stored.
 */
export function existsAlready({ births }: DataGrant, view: View): boolean {
  return births.some(({ use }) => view.row(blobRow(use.blobId)) !== undefined);
}

interface PrepareOptions extends ComposedHolder {
  grant: DataGrant;
  names: readonly LinkName[];
  view: View;
  context: PrepareContext;
}

interface AdmitOptions extends PrepareOptions {
  /** What `prepareLinks` gives for the grant; default: it is done at once. */
  linkPuts?: readonly RowPut[];
  /** For a blob made by compaction (BlobRecord). */
  foldedFrom?: Uint8Array | undefined;
  chargedBytes?: number | undefined;
  context: DecideContext;
}

/** R25, R36: the rows by which data becomes a version's or part's, or why it cannot. `names` are the links of its manifest. */
export function admitGrant(options: AdmitOptions): ({ kind: 'admitted' } & RowChange) | GrantRefusal {
  const { grant, view, context } = options;
  const links = options.linkPuts ?? finishAtOnce(prepareLinks(options));
  if (grant.births.some((newBlob) => isLateBlob(newBlob, context))) return { kind: 'late' };
  if (grant.links.some((link) => isLateClaim(link, context))) return { kind: 'late' };
  const gone = grant.links.filter((link) =>
    link.claim === undefined ? !isLive(link.blobId, view) : isForgotten(link.claim, view),
  );
  if (gone.length > 0) return { kind: 'gone', blobIds: gone.map(({ blobId }) => blobId) };
  const repairs = joinChanges(grant.births.map((newBlob) => newBlobRepair(newBlob, view, context)));
  const puts = [
    ...grant.births.flatMap((newBlob) => newBlobPuts(newBlob, options)),
    ...links,
    ...repairs.puts,
  ];
  return { kind: 'admitted', puts, counters: repairs.counters };
}

/** By it a link is found among others. */
export function linkText({ blobId, linkId }: LinkName): string {
  return `${blobId} ${linkId}`;
}

/** R25 */
export function isLateBlob({ use }: NewBlob, { nowMs, shard }: DecideContext): boolean {
  assert(homeShardOf(use.blobId) === shard, 'a blob is born in its home');
  const ageMs = nowMs - idTimeMs(use.blobId);
  return ageMs > LIMITS.blobIdAgeMaxMs || -ageMs > LIMITS.blobIdAheadMaxMs;
}

/** R28: from here on the home may be answered that this claim will never be used (R30). */
function isLateClaim({ linkId, claim }: LinkGrant, { nowMs }: DecideContext): boolean {
  return claim !== undefined && nowMs - idTimeMs(linkId) > LIMITS.linkIdAgeMaxMs;
}

/** R23: its home goes on with a history in which the claim was never made, or may not have been. */
function isForgotten({ homeShard, incarnation = 1 }: ForeignRecord, view: View): boolean {
  const row = view.row(homeHistoryRow(homeShard));
  return row !== undefined && incarnation < homeHistoryCodec.decode(row).incarnation;
}

const decodeBlob = decodeOnce(blobCodec);

export function findBlob(view: View, blobId: BlobId): Readonly<BlobRecord> | undefined {
  const row = view.row(blobRow(blobId));
  return row && decodeBlob(row);
}

/** R26: a blob that is marked for deletion gets no links any more. */
export function isLive(blobId: BlobId, view: View): boolean {
  return isLiveBlob(findBlob(view, blobId));
}

function newBlobPuts(newBlob: NewBlob, options: AdmitOptions): RowPut[] {
  const { foldedFrom, chargedBytes, context } = options;
  const { use, body, chunkCrc32, chunkCrcs } = newBlob;
  assert((body !== undefined) === (use.storage === 'inline'), 'inline blobs bring their body, others do not');
  const { sizeBytes, storage, chunkSizeBytes } = use;
  const blob: BlobRecord = {
    kind: 'data',
    sizeBytes,
    storage,
    chunkSizeBytes,
    ...(chunkCrc32 && { chunkCrc32 }),
    ...(chunkCrcs && { chunkCrcs }),
    ...(foldedFrom && { foldedFrom }),
    ...(chargedBytes !== undefined && { chargedBytes }),
  };
  const link = ownLinkPut(use, context.shard, options);
  const puts = [put(blobRow(use.blobId), blobCodec.encode(blob)), link];
  if (body !== undefined) puts.push(put(bodyRow(use.blobId), body));
  return puts;
}

/** R36: the repair entry of a new blob, by the placement map of its chunks. */
function newBlobRepair({ use, placed }: NewBlob, view: View, context: DecideContext): RowChange {
  if (placed === undefined) return NO_CHANGE;
  const auditedFrom = findAudit(view)?.mapVersion ?? 0;
  const debt = repairOfNewBlob(placed, { auditedFrom, chunkCount: chunkCount(use) });
  if (debt === undefined) return NO_CHANGE;
  return changeRepair(use.blobId, { before: undefined, after: debt }, context);
}

/** Links of one step. */
const LINKS_OF_STEP = 100;

/** The rows of links to blobs that exist already: of a thousand of them that takes long. */
export function* prepareLinks(options: PrepareOptions): Steps<RowPut[]> {
  const { grant, names, view } = options;
  const granted = [...grant.births.map(({ use }) => use), ...grant.links];
  assert(
    granted.length === names.length && new Set([...granted, ...names].map(linkText)).size === names.length,
    'every link of a manifest is granted once',
  );
  const puts: RowPut[] = [];
  for (let at = 0; at < grant.links.length; at += LINKS_OF_STEP) {
    yield;
    const some = grant.links.slice(at, at + LINKS_OF_STEP);
    for (const link of some) puts.push(...linkPuts(link, options));
    const own = some.filter(({ claim }) => claim === undefined);
    puts.push(...sharePuts(own, view));
  }
  return puts;
}

function linkPuts({ blobId, linkId, claim }: LinkGrant, options: PrepareOptions): RowPut[] {
  const { view, context } = options;
  const { shard } = context;
  const link = ownLinkPut({ blobId, linkId }, shard, options);
  if (claim === undefined) {
    assert(homeShardOf(blobId) === shard, 'a blob of another home needs a claim');
    return [link];
  }
  assert(claim.homeShard === homeShardOf(blobId) && claim.homeShard !== shard, 'a claim is made at the home');
  assert(claim.linkId === linkId, 'a claim bears the link that it is for');
  // Another commit's claim holds the blob already: this link stands on it, and the home drops ours (R28, R30).
  const row = view.row(foreignRow(blobId));
  const stored = row && foreignCodec.decode(row);
  if (stored === undefined) return [link, put(foreignRow(blobId), foreignCodec.encode(claim))];
  // The blob may have grown since that one was made; what is another history's is not for here (R23).
  const hasGrown = claim.layout.grown !== undefined && isLaidWithin(stored.layout, claim.layout);
  if (!hasGrown) return [link];
  return [link, put(foreignRow(blobId), foreignCodec.encode({ ...stored, layout: claim.layout }))];
}

/** Notes on blobs of this home that they have more than one link now. */
export function sharePuts(names: readonly Pick<LinkName, 'blobId'>[], view: View): RowPut[] {
  return names.flatMap(({ blobId }) => {
    const blob = findBlob(view, blobId);
    if (blob === undefined || blob.isShared) return [];
    return [put(blobRow(blobId), blobCodec.encode({ ...blob, isShared: true }))];
  });
}

/** The row of a link that this shard's own versions, parts or manifests hold. */
export function ownLinkPut({ blobId, linkId }: LinkName, shard: number, holder: ComposedHolder = {}): RowPut {
  const { composedIn, inManifest, isCharged } = holder;
  const link: LinkRecord = {
    state: 'own',
    shard,
    ...(composedIn !== undefined && { composedIn }),
    ...(inManifest !== undefined && { inManifest }),
    ...(isCharged && { isCharged }),
  };
  return put(linkRow(blobId, linkId), linkCodec.encode(link));
}

/** Marks what one command makes pending: shard time may stand still, so it tells two claims of an id apart by chance alone. */
export function newNonce({ random }: DecideContext): string {
  return toHex(random(NONCE_BYTES));
}

/** R27: a link that another shard has claimed, and is not known to use. It will be asked about it (R30). */
export function pendingLinkPuts(
  { blobId, linkId }: LinkName,
  { shard, nonce }: { shard: number; nonce: string },
): RowPut[] {
  const link: LinkRecord = { state: 'pending', shard, nonce };
  return [
    put(linkRow(blobId, linkId), linkCodec.encode(link)),
    put(pendingClaimRow(blobId, linkId), PRESENT),
  ];
}

/** Ends links, and queues their blobs for mark-blobs.ts. */
export function endLinks(names: readonly LinkName[], nowMs: number): RowPut[] {
  return endRemoved(removeLinks(names), nowMs);
}

/** For {@link endRemoved}: of thousands of links the time at which they end is known late. */
export function removeLinks(names: readonly LinkName[]): RowPut[] {
  return names.map(({ blobId, linkId }) => remove(linkRow(blobId, linkId)));
}

export function endRemoved(links: readonly RowPut[], nowMs: number): RowPut[] {
  return [...links, ...links.map((link) => put(endedRowOf(link, nowMs), PRESENT))];
}

/** The links that `before` has and `after` has not: those that both have go on without a moment's gap (R26). */
export function linksOnlyIn(before: readonly LinkName[], after: readonly LinkName[]): LinkName[] {
  if (after.length === 0) return [...before];
  // Most are passed on as they were read, as those of an object that is appended to, which has many.
  const passedOn = new Set(after);
  const others = before.filter((name) => !passedOn.has(name));
  if (others.length === 0) return [];
  const kept = new Set(after.map(linkText));
  return others.filter((name) => !kept.has(linkText(name)));
}
