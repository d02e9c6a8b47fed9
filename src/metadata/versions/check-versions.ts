// Versions as fsck sees them: where they lie, their order, their index, their manifest, and what they add to counters.

import type { FindingPlace } from '../../types/findings.ts';
import { decodeVersion, decodeVersionSummary } from '../../types/records/version-record.ts';
import type { VersionRecord } from '../../types/version.ts';
import { checkProtection } from '../buckets/check-retention.ts';
import type { CheckScan, RowCheck } from '../checks/scan.ts';
import { readU48 } from '../schema/key-parts.ts';
import {
  currentRow,
  markerRow,
  REGION,
  type Region,
  readVersionIdKey,
  readVersionPosition,
  versionIdRow,
  versionRow,
} from '../schema/keyspace.ts';
import { checkManifest } from './check-manifest.ts';
import type { WalkedVersion } from './version-walk.ts';

type Position = ReturnType<typeof readVersionPosition>;

export async function checkVersion({ position, value, region, isLatest }: WalkedVersion, scan: CheckScan) {
  const at = readVersionPosition(position);
  const { bucketId, key } = at;
  const version = decodeVersion(value);
  const { sizeBytes, manifest } = version;
  const bucket = await scan.bucket(bucketId);
  const place = { bucket: bucket?.name ?? bucketId, key, version: version.versionId };
  // Those of a bucket that was deleted by force go by its job.
  const isExpected = bucket !== undefined && (bucket.state !== 'deleted' || bucket.jobId !== undefined);
  if (!isExpected) scan.found('bucket-missing', place);
  if (isLatest) await checkLatest(scan, { at, version, place, region });
  else await checkOlder(scan, { at, version, place, region });
  scan.checkKey(version.kek, place);
  checkProtection(scan, { protection: version.protection, bucket, place });
  await checkManifest(scan, { sizeBytes, manifest, place });
  const usage = scan.facts.usage.at(-1);
  const objectCount = version.isDeleteMarker ? 0 : 1;
  if (usage?.bucketId !== bucketId) scan.facts.usage.push({ bucketId, objectCount, sizeBytes });
  else {
    usage.objectCount += objectCount;
    usage.sizeBytes += sizeBytes;
  }
}

interface Checked {
  at: Position;
  version: VersionRecord;
  place: FindingPlace;
  region: Region;
}

async function checkLatest(scan: CheckScan, { at, version, place, region }: Checked): Promise<void> {
  const { bucketId, key } = at;
  const isAmongMarkers = region === REGION.marker;
  if (version.isDeleteMarker !== isAmongMarkers) scan.found('version-misplaced', place);
  const other = isAmongMarkers ? currentRow(bucketId, key) : markerRow(bucketId, key);
  if ((await scan.row(other)) !== undefined) scan.found('two-latest', place);
}

async function checkOlder(scan: CheckScan, { at, version, place }: Checked): Promise<void> {
  const { bucketId, key, order } = at;
  if (version.order !== order) {
    scan.found('broken-row', { ...place, table: 'objects', note: `order ${version.order} under ${order}` });
  }
  const rows = [
    currentRow(bucketId, key),
    markerRow(bucketId, key),
    versionIdRow(bucketId, key, version.versionId),
  ];
  const [current, marker, index] = await scan.view.rows(rows);
  const latest = current ?? marker;
  // Where a key is renamed in several entries its latest version goes first.
  const renames = (await scan.bucket(bucketId))?.keyRenames ?? [];
  const isLeaving = renames.some(({ from }) => from === key);
  if (latest === undefined && !isLeaving) scan.found('no-latest', place);
  if (latest !== undefined && decodeVersionSummary(latest).order <= order) scan.found('order-wrong', place);
  if (index === undefined || readU48(index) !== order) scan.found('index-missing', place);
}

export const checkVersionId: RowCheck = async (row, scan) => {
  const { bucketId, key, versionId } = readVersionIdKey(row.key);
  const found = await scan.row(versionRow(bucketId, key, readU48(row.value)));
  if (found !== undefined && decodeVersion(found).versionId === versionId) return;
  const bucket = (await scan.bucket(bucketId))?.name ?? bucketId;
  scan.found('index-orphaned', { bucket, key, version: versionId, table: 'versionIds' });
};
