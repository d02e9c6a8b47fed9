// CompleteMultipartUpload: the listed parts become a version, the others go afterwards; what was answered is kept, so that asking
// again gets the same answer for seven days, whatever has become of the object (s3-behaviour 29).

import type { Steps } from '../../base/async/steps.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { CompleteRefusal } from '../../ports/metadata/uploads.ts';
import type { NewVersion } from '../../ports/metadata/versions.ts';
import type { CounterDelta, RowPut, View } from '../../ports/state-machine.ts';
import { type ETag, multipartETag } from '../../types/etag.ts';
import { packOriginals } from '../../types/originals.ts';
import { checkWriteConditions } from '../../types/preconditions.ts';
import {
  type CompletedUploadRecord,
  completedUploadCodec,
  type UploadRecord,
} from '../../types/records/rows.ts';
import type { Manifest } from '../../types/version.ts';
import { endRemoved } from '../blobs/links.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { noteCreated } from '../events/note-events.ts';
import { ofAccount, ofBucket, partDeltas } from '../quotas/held.ts';
import { defineCommand, exclusive, LOCK, LOOK_AGAIN, shared } from '../schema/define-command.ts';
import { completedTimeRow, completedUploadRow, PRESENT, partRow, put, remove } from '../schema/keyspace.ts';
import { loadHistory, lookAtHistory } from '../versions/key-history.ts';
import { putHistories } from '../versions/put-histories.ts';
import { refuse, writeScope, writeVersion } from '../versions/write-version.ts';
import { type JoinedParts, joinParts, layJoined } from './join-parts.ts';
import { checkPartList, digestPartList, type FitParts } from './part-list.ts';
import { endUpload, findParts, findUpload, mayHaveOtherParts } from './uploads.ts';

type Command = CommandOf<'complete-upload'>;
type Outcome = OutcomeOf<'complete-upload'>;
type Completed = Extract<Outcome, { kind: 'committed' }>;

/** Most uploads have no more; eight Completes of so many have read 16 MB at most. */
const PARTS_FEW_MAX = 8;

/** What the rows of an upload and its parts come to: all that takes long of thousands of parts. */
interface Assembled {
  kind: 'assembled';
  upload: UploadRecord;
  fit: FitParts;
  etag: ETag;
  joined: JoinedParts;
  partRemovals: RowPut[];
  partDeltas: CounterDelta[];
  partListDigest: string;
}

export const completeUpload = defineCommand<Command, Outcome, Assembled | CompleteRefusal | NoUpload>({
  // A part that was copied may have 250 KB.
  mayReadMuch: () => true,
  readsFew: ({ parts }) => parts.length <= PARTS_FEW_MAX,

  locks: ({ bucketId, key, uploadId }) => [
    shared(LOCK.bucket(bucketId)),
    exclusive(LOCK.key(bucketId, key)),
    exclusive(LOCK.upload(uploadId)),
  ],

  look(command, view) {
    const { bucketId, key, uploadId, parts } = command;
    view.row(completedUploadRow(uploadId));
    lookAtHistory(view, writeScope(bucketId, key, findBucket(view, bucketId)?.versioning));
    // Parts are not read before it has begun, nor of an upload that is not there.
    if (findUpload(view, command) === undefined) return undefined;
    mayHaveOtherParts(view, uploadId, parts);
    const isJudged = findParts(view, uploadId, parts).next().done === true;
    return isJudged ? undefined : LOOK_AGAIN;
  },

  counters: ({ bucketId }, view) => {
    const bucket = findBucket(view, bucketId);
    return bucket === undefined ? [] : [...ofBucket(bucketId).bytes, ...ofAccount(bucket.owner).bytes];
  },

  prepare: assemble,

  decide(command, view, context, assembled) {
    if (assembled.kind === 'no-upload')
      return refuse(repeatAnswer(command, view) ?? { kind: 'no-such-upload' });
    if (assembled.kind !== 'assembled') return refuse(assembled);
    const { bucketId, key, uploadId, conditions, parts: listed } = command;
    const { nowMs } = context;
    const bucket = openBucket(view, bucketId);
    const history = loadHistory(view, bucket, writeScope(bucketId, key, bucket.versioning));
    const refusal = checkWriteConditions(history.currentObject, conditions);
    if (refusal !== undefined) return refuse(refusal);
    const laid = layJoined(assembled.joined, context);
    const version = versionOf(assembled, laid.manifest);
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
        ...laid.puts,
        ...placed.puts,
        ...noted.puts,
        ...endUpload(command, { mayBe: mayHaveOtherParts(view, uploadId, listed), nowMs }),
        ...assembled.partRemovals,
        ...endRemoved(assembled.joined.spareLinks, nowMs),
        ...rememberPuts(command, outcome, assembled.partListDigest),
      ],
      counters: [...placed.counters, ...noted.counters, ...assembled.partDeltas],
    };
  },
});

interface NoUpload {
  kind: 'no-upload';
}

/** Some hundred parts in each step. */
function* assemble(command: Command, view: View): Steps<Assembled | CompleteRefusal | NoUpload> {
  const { uploadId, parts: listed, expected } = command;
  const upload = findUpload(view, command);
  if (upload === undefined) return { kind: 'no-upload' };
  const found = yield* findParts(view, uploadId, listed);
  if (found.kind !== 'found') return found;
  const fit = yield* checkPartList({ upload, parts: found.parts, listed, expected });
  if (fit.kind !== 'fit') return fit;
  const joined = yield* joinParts(fit.parts);
  const partRemovals = fit.parts.map(({ partNumber }) => remove(partRow(uploadId, partNumber)));
  yield;
  const etag = multipartETag(fit.parts.map((part) => part.etag));
  const deltas = partDeltas({ removed: fit.parts });
  yield;
  const partListDigest = digestPartList(listed);
  return { kind: 'assembled', upload, fit, etag, joined, partRemovals, partDeltas: deltas, partListDigest };
}

function versionOf({ upload, fit, etag }: Assembled, manifest: Manifest): NewVersion {
  const { sizeBytes, checksum } = fit;
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

function rememberPuts(
  { bucketId, key, uploadId }: Command,
  outcome: Completed,
  partListDigest: string,
): RowPut[] {
  const { versionId, versioning, etag, checksum, modifiedAtMs } = outcome;
  const record: CompletedUploadRecord = {
    bucketId,
    key,
    versionId,
    versioning,
    etag,
    ...(checksum && { checksum }),
    partListDigest,
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
