// CompleteMultipartUpload: the listed parts become a version, the others go afterwards; what was answered is kept, so that asking
// again gets the same answer for seven days, whatever has become of the object (s3-behaviour 29).

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { NewVersion } from '../../ports/metadata/versions.ts';
import type { RowPut, View } from '../../ports/state-machine.ts';
import { multipartETag } from '../../types/etag.ts';
import { packOriginals } from '../../types/originals.ts';
import { checkWriteConditions } from '../../types/preconditions.ts';
import {
  type CompletedUploadRecord,
  completedUploadCodec,
  type UploadRecord,
} from '../../types/records/rows.ts';
import type { Manifest } from '../../types/version.ts';
import { endLinks } from '../blobs/links.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { noteCreated } from '../events/note-events.ts';
import { partDeltas } from '../quotas/held.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { completedTimeRow, completedUploadRow, PRESENT, put } from '../schema/keyspace.ts';
import { loadHistory, lookAtHistory } from '../versions/key-history.ts';
import { putHistories } from '../versions/put-histories.ts';
import { refuse, writeScope, writeVersion } from '../versions/write-version.ts';
import { joinParts } from './join-parts.ts';
import { checkPartList, digestPartList, type FitParts } from './part-list.ts';
import { endUpload, findParts, findUpload, mayHaveOtherParts } from './uploads.ts';

type Command = CommandOf<'complete-upload'>;
type Outcome = OutcomeOf<'complete-upload'>;
type Completed = Extract<Outcome, { kind: 'committed' }>;

export const completeUpload = defineCommand<Command, Outcome>({
  locks: ({ bucketId, key, uploadId }) => [
    shared(LOCK.bucket(bucketId)),
    exclusive(LOCK.key(bucketId, key)),
    exclusive(LOCK.upload(uploadId)),
  ],

  look(command, view) {
    const { bucketId, key, uploadId, parts } = command;
    findUpload(view, command);
    findParts(view, uploadId, parts);
    mayHaveOtherParts(view, uploadId, parts);
    view.row(completedUploadRow(uploadId));
    lookAtHistory(view, writeScope(bucketId, key, findBucket(view, bucketId)?.versioning));
  },

  decide(command, view, context) {
    const { bucketId, key, uploadId, conditions } = command;
    const { nowMs } = context;
    const upload = findUpload(view, command);
    if (upload === undefined) return refuse(repeatAnswer(command, view) ?? { kind: 'no-such-upload' });
    const { parts: listed, expected } = command;
    const found = findParts(view, uploadId, listed);
    if (found.kind !== 'found') return refuse(found);
    const fit = checkPartList({ upload, parts: found.parts, listed, expected });
    if (fit.kind !== 'fit') return refuse(fit);
    const bucket = openBucket(view, bucketId);
    const history = loadHistory(view, bucket, writeScope(bucketId, key, bucket.versioning));
    const refusal = checkWriteConditions(history.currentObject, conditions);
    if (refusal !== undefined) return refuse(refusal);
    const joined = joinParts(fit.parts, context);
    const version = versionOf(upload, fit, joined.manifest);
    const written = writeVersion({ bucket, history, version, context, mayHaveEnded: true });
    if (written.kind === 'blocked') return refuse(written);
    const { etag, checksum } = version;
    const outcome: Completed = { ...written, etag, ...(checksum && { checksum }), repeated: false };
    const placed = putHistories({ bucket, histories: [history], context });
    const noted = noteCreated(bucket, context, {
      type: 's3:ObjectCreated:CompleteMultipartUpload',
      key,
      version,
      written,
    });
    return {
      outcome,
      puts: [
        ...joined.puts,
        ...placed.puts,
        ...noted.puts,
        ...endUpload(command, fit.parts, { mayBe: mayHaveOtherParts(view, uploadId, listed), nowMs }),
        ...endLinks(joined.spareLinks, nowMs),
        ...rememberPuts(command, outcome),
      ],
      counters: [...placed.counters, ...noted.counters, ...partDeltas({ removed: fit.parts })],
    };
  },
});

function versionOf(
  upload: UploadRecord,
  { parts, sizeBytes, checksum }: FitParts,
  manifest: Manifest,
): NewVersion {
  const etag = multipartETag(parts.map((part) => part.etag));
  return {
    sizeBytes,
    etag,
    owner: upload.owner,
    ...(checksum && { checksum }),
    kek: upload.kek,
    sealedHeaders: upload.sealedHeaders,
    ...(upload.tags && { tags: upload.tags }),
    ...(upload.acl && { acl: upload.acl }),
    ...(upload.protection && { protection: upload.protection }),
    // However many parts it has, an object of a multipart upload counts as one (design "Data model").
    originals: packOriginals({ sizeBytes, md5: etag.slice(0, 32) }),
    manifest,
  };
}

function rememberPuts({ bucketId, key, uploadId, parts }: Command, outcome: Completed): RowPut[] {
  const { versionId, versioning, etag, checksum, modifiedAtMs } = outcome;
  const record: CompletedUploadRecord = {
    bucketId,
    key,
    versionId,
    versioning,
    etag,
    ...(checksum && { checksum }),
    partListDigest: digestPartList(parts),
    completedAtMs: modifiedAtMs,
  };
  return [
    put(completedUploadRow(uploadId), completedUploadCodec.encode(record)),
    put(completedTimeRow(modifiedAtMs, uploadId), PRESENT),
  ];
}

function repeatAnswer({ bucketId, key, uploadId, parts }: Command, view: View): Completed | undefined {
  const row = view.row(completedUploadRow(uploadId));
  const before = row && completedUploadCodec.decode(row);
  if (before === undefined || before.bucketId !== bucketId || before.key !== key) return undefined;
  if (before.partListDigest !== digestPartList(parts)) return undefined;
  const { versionId, versioning, etag, checksum, completedAtMs } = before;
  return {
    kind: 'committed',
    versionId,
    versioning,
    modifiedAtMs: completedAtMs,
    etag,
    ...(checksum && { checksum }),
    repeated: true,
  };
}
