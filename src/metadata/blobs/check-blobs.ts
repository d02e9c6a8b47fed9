// Checks of blobs, links and claims for fsck, and of their queues. A link's row does not name its user: the caller compares
// that, from the facts.
import { toHex } from '../../base/bytes/bytes.ts';
import { unpackRanges } from '../../types/compacted-from.ts';
import { type BlobId, homeShardOf, type LinkId } from '../../types/names.ts';
import { blobCodec, foreignCodec, linkCodec, manifestPageCodec } from '../../types/records/rows.ts';
import { layoutOf } from '../../types/version.ts';
import type { RowCheck } from '../checks/scan.ts';
import { readU16, readU48 } from '../schema/key-parts.ts';
import { blobRow, deletionRow, foreignRow, linkRange, linkRow, pendingClaimRow } from '../schema/keyspace.ts';
import { checkBody, readPages } from '../versions/check-manifest.ts';

const blobIdAt = (bytes: Uint8Array, at = 0) => toHex(bytes.subarray(at, at + 16)) as BlobId;
const linkIdAt = (bytes: Uint8Array, at = 0) => toHex(bytes.subarray(at, at + 16)) as LinkId;

export const checkBlob: RowCheck = async (row, scan) => {
  const blobId = blobIdAt(row.key);
  const blob = blobCodec.decode(row.value);
  const { kind, sizeBytes, condemnedAtMs } = blob;
  const place = { blob: blobId };
  const isMarked = condemnedAtMs !== undefined;
  scan.facts.blobs.push({
    blobId,
    blob: { kind, ...layoutOf(blob), ...(isMarked && { condemnedAtMs }) },
  });
  if (homeShardOf(blobId) !== scan.shard) {
    scan.found('broken-row', { ...place, table: 'blobs', note: 'not in its home' });
  }
  if (unpackRanges(blob.foldedFrom).some((range) => range.offsetBytes + range.sizeBytes > sizeBytes)) {
    scan.found('broken-row', { ...place, table: 'blobs', note: 'folded from more than it has' });
  }
  const isLinked = (await scan.view.range(linkRange(blobId, 1))).length > 0;
  if (isMarked) {
    await scan.expectRow(deletionRow(condemnedAtMs, blobId), 'queue-missing', place);
    if (isLinked) scan.found('blob-condemned', place);
    return;
  }
  if (!isLinked) scan.facts.unlinked.push(blobId);
  if (kind === 'data') return;
  const pages = await readPages(scan, blobId);
  if (pages.sizeBytes !== sizeBytes) {
    const note = `pages of ${pages.sizeBytes} bytes, not ${sizeBytes}`;
    scan.found('manifest-wrong', { manifest: blobId, note });
  }
};

export const checkLink: RowCheck = async (row, scan) => {
  const name = { blobId: blobIdAt(row.key), linkId: linkIdAt(row.key, 16) };
  const link = linkCodec.decode(row.value);
  const place = { blob: name.blobId, link: name.linkId };
  const isHome = homeShardOf(name.blobId) === scan.shard;
  if (link.state === 'own') scan.addOwnLink(name);
  else scan.facts.claims.push({ ...name, ...link });
  const address = isHome ? blobRow(name.blobId) : foreignRow(name.blobId);
  await scan.expectRow(address, isHome ? 'blob-missing' : 'claim-missing', place);
  if (link.state === 'pending') {
    await scan.expectRow(pendingClaimRow(name.blobId, name.linkId), 'queue-missing', place);
  }
};

export const checkForeign: RowCheck = async (row, scan) => {
  const blobId = blobIdAt(row.key);
  const foreign = foreignCodec.decode(row.value);
  scan.facts.foreign.push({ blobId, ...foreign });
  if (foreign.homeShard !== homeShardOf(blobId)) {
    scan.found('broken-row', { blob: blobId, table: 'foreign', note: `home ${foreign.homeShard}` });
  }
  if ((await scan.view.range(linkRange(blobId, 1))).length === 0) scan.facts.unlinked.push(blobId);
};

export const checkManifestPage: RowCheck = async (row, scan) => {
  const manifestId = blobIdAt(row.key);
  const page = readU16(row.key, 16);
  const body = manifestPageCodec.decode(row.value);
  const place = { manifest: manifestId, page };
  const blob = await scan.row(blobRow(manifestId));
  if (blob === undefined || blobCodec.decode(blob).kind !== 'manifest') scan.found('blob-missing', place);
  // A composition's bytes are in no parts.
  const inWhat = body.parts.length > 0 ? body.parts : body.segments;
  const sizeBytes = inWhat.reduce((sum, some) => sum + some.sizeBytes, 0);
  await checkBody(scan, { body, sizeBytes, place });
};

export const checkEndedLink: RowCheck = async (row, scan) => {
  const name = { blobId: blobIdAt(row.key, 6), linkId: linkIdAt(row.key, 22) };
  const link = await scan.row(linkRow(name.blobId, name.linkId));
  if (link !== undefined)
    scan.found('queue-orphaned', { blob: name.blobId, link: name.linkId, table: 'endedLinks' });
};

export const checkMarkedBlobs: RowCheck = async (row, scan) => {
  const blobId = blobIdAt(row.key, 6);
  const blob = await scan.row(blobRow(blobId));
  const isSame = blob !== undefined && blobCodec.decode(blob).condemnedAtMs === readU48(row.key);
  if (!isSame) scan.found('queue-orphaned', { blob: blobId, table: 'condemned' });
};

export const checkPendingClaim: RowCheck = async (row, scan) => {
  const name = { blobId: blobIdAt(row.key, 16), linkId: linkIdAt(row.key) };
  const link = await scan.row(linkRow(name.blobId, name.linkId));
  const isPending = link !== undefined && linkCodec.decode(link).state === 'pending';
  if (isPending) return;
  scan.found('queue-orphaned', { blob: name.blobId, link: name.linkId, table: 'pendingClaims' });
};
