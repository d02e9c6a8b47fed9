// Deletes up to 1000 keys or versions: in one commit of the bucket's shard, or in several where their keys are long or they
// have too many pieces for one. Each key is authorised, answered and recorded by itself (service 4.2, delete rule 2).
import { assert, must } from '../../../base/assert.ts';
import { xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import type { DeleteItem } from '../../../ports/metadata/versions.ts';
import { AppError, ERRORS, type ErrorCode } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { BucketName, VersionId } from '../../../types/names.ts';
import { deletesByMarker, mayHaveOlderVersions } from '../../../types/versioning.ts';
import { presentBucket } from '../buckets/present-bucket.ts';
import type { OperationContext } from '../context.ts';
import { defineOperation, objectArn } from '../operation.ts';
import { hasBodyDigest } from '../request/checksum-headers.ts';
import { asksBypass, BYPASS_HEADER } from '../request/object-lock.ts';
import { s3Document } from '../request/vendor.ts';
import { NO_CONDITION_VALUES } from '../request/write-conditions.ts';
import { writerOf } from '../sharing/resolve-acl.ts';
import { type DeleteEntry, parseDeleteBody } from '../xml/delete-body.ts';
import { deleteAccess, mayBypassOf } from './delete-object.ts';
import { type Deleted, requireDeleted } from './delete-outcome.ts';

type EntryResult =
  | { kind: 'deleted'; deleted: Deleted }
  | { kind: 'refused'; code: ErrorCode; message?: string };

export const deleteObjects = defineOperation({
  name: 'DeleteObjects',
  match: { method: 'POST', on: 'bucket', query: ['delete'] },
  logName: 'REST.POST.MULTI_OBJECT_DELETE',
  body: 'xml',
  bodyBytesMax: LIMITS.deleteObjectsBodyBytesMax,
  options: [BYPASS_HEADER],
  keyActions: ['s3:DeleteObject', 's3:DeleteObjectVersion'],
  decidesInRun: true,
  errors: ['BadDigest', 'InvalidRequest', 'MalformedXML', 'MissingRequestBodyError'],
  differences:
    'Who may delete nothing in the bucket is refused as a whole, before the list is read. The bypass of GOVERNANCE as for DeleteObject, for each key by itself.',
  parse: ({ bucket, headers }) => ({
    bucket,
    hasDigest: hasBodyDigest(headers),
    asksBypass: asksBypass(headers),
  }),
  // Every key is a decision of its own, made in `run`: a caller may be allowed some of them.
  access: () => [],
  parseDocument: (xmlBody, { hasDigest }) => {
    if (hasDigest) return parseDeleteBody(xmlBody);
    throw new AppError('InvalidRequest', {
      message: 'Missing required header for this request: Content-MD5 OR x-amz-checksum-*',
    });
  },
  async run(context, { bucket, asksBypass }, { isQuiet, entries }) {
    const results = await deleteEntries(context, { bucket, asksBypass }, entries);
    let inner = '';
    let turnEnd = 0;
    let removedBytes = 0;
    for (const [index, entry] of entries.entries()) {
      if (index % KEYS_OF_TURN === 0 || inner.length >= turnEnd) {
        await context.turn();
        turnEnd = inner.length + CHARACTERS_OF_TURN;
      }
      const result = must(results[index], 'a result for each entry');
      recordEntry(context, entry, result);
      if (result.kind === 'deleted') removedBytes += result.deleted.removedBytes ?? 0;
      if (result.kind === 'refused') inner += refusedXml(entry, result);
      else if (!isQuiet) inner += deletedXml(entry, result.deleted);
    }
    context.record.removedBytes = removedBytes;
    return { status: 200, body: { kind: 'xml', text: s3Document('DeleteResult', inner) } };
  },
});

/** Keys that are judged, or written into the answer, in one turn: of the longest ones some ms. */
const KEYS_OF_TURN = 100;
const CHARACTERS_OF_TURN = 256 * 1024;

async function deleteEntries(
  context: OperationContext,
  { bucket, asksBypass }: { bucket: BucketName; asksBypass: boolean },
  entries: readonly DeleteEntry[],
): Promise<EntryResult[]> {
  const items: DeleteItem[] = [];
  const judge = async (entry: DeleteEntry): Promise<EntryResult | undefined> => {
    if (entry.kind === 'refused') return { kind: 'refused', code: entry.code };
    const { kind: _kind, etag, ...item } = entry;
    const resource = objectArn({ bucket, key: item.key });
    const isAllowed = await context.mayAlso(
      deleteAccess(resource, item, etag === undefined ? NO_CONDITION_VALUES : { 's3:if-match': etag }),
      context.bucket(),
    );
    if (!isAllowed) return { kind: 'refused', code: 'AccessDenied' };
    const bypasses = asksBypass && (await mayBypassOf(context, resource, item));
    items.push(bypasses ? { ...item, bypassesGovernance: true } : item);
    return undefined;
  };
  const results: (EntryResult | undefined)[] = [];
  for (const [at, entry] of entries.entries()) {
    results.push(await judge(entry));
    if (at % KEYS_OF_TURN === KEYS_OF_TURN - 1) await context.turn();
  }
  // A cached row refuses nobody: where the bucket has changed, all of them are judged anew (`decidesInRun`).
  if (results.some((result) => result?.kind === 'refused' && result.code === 'AccessDenied'))
    await presentBucket(context);
  const committed = items.length === 0 ? [] : await commit(context, items);
  let next = 0;
  return results.map((result) => result ?? must(committed[next++], 'an outcome for each item'));
}

async function commit(context: OperationContext, items: readonly DeleteItem[]): Promise<EntryResult[]> {
  const results: EntryResult[] = [];
  while (results.length < items.length) {
    const rest = items.slice(results.length);
    try {
      results.push(...(await commitFirst(context, firstOf(context, rest))));
    } catch (error) {
      if (results.length === 0 || !(error instanceof AppError)) throw error;
      // Some are deleted: the client learns which.
      const { code } = error;
      return [...results, ...rest.map((): EntryResult => ({ kind: 'refused', code }))];
    }
  }
  return results;
}

/**
 * As many as have LIMITS.deleteKeysBytesMax of keys, one at least, and no more than LIMITS.deleteVersionedKeysMax of a bucket
 * with versions: what one entry is about keeps the shard's thread.
 */
function firstOf(context: OperationContext, items: DeleteItem[]): DeleteItem[] {
  const isVersioned = mayHaveOlderVersions(context.bucket().record.versioning);
  const countMax = isVersioned ? LIMITS.deleteVersionedKeysMax : LIMITS.deleteObjectsKeysMax;
  let leftBytes: number = LIMITS.deleteKeysBytesMax;
  const end = items.findIndex(({ key }, at) => {
    leftBytes -= Buffer.byteLength(key);
    return leftBytes < 0 || at === countMax;
  });
  return end === -1 ? items : items.slice(0, Math.max(1, end));
}

/** The results of as many as one commit takes. */
async function commitFirst(context: OperationContext, items: DeleteItem[]): Promise<EntryResult[]> {
  const { homeShard, believed, record } = context.bucket();
  const { value } = await context.metadata.execute(
    { shard: homeShard, bucket: believed },
    'delete-versions',
    {
      bucketId: believed.bucketId,
      owner: writerOf(context),
      items,
      mayMark: deletesByMarker(record.versioning),
    },
  );
  assert(value.items.length > 0, 'a commit takes one item at least');
  return value.items.map((outcome) => {
    try {
      return { kind: 'deleted', deleted: requireDeleted(outcome) };
    } catch (error) {
      if (error instanceof AppError) return { kind: 'refused', code: error.code, message: error.message };
      throw error;
    }
  });
}

function recordEntry(context: OperationContext, entry: DeleteEntry, result: EntryResult): void {
  const { key, versionId } = entry;
  const isRefused = result.kind === 'refused';
  context.record.item({
    logName: 'BATCH.DELETE.OBJECT',
    key,
    status: isRefused ? ERRORS[result.code].status : 204,
    ...(versionId !== undefined && { versionId }),
    ...(isRefused && { errorCode: result.code }),
  });
}

function deletedXml(entry: DeleteEntry, deleted: Deleted): string {
  const markerId: VersionId | undefined = deleted.isDeleteMarker ? deleted.versionId : undefined;
  return xmlElement(
    'Deleted',
    xmlText('Key', entry.key),
    xmlText('VersionId', entry.versionId),
    xmlText('DeleteMarker', deleted.isDeleteMarker || undefined),
    xmlText('DeleteMarkerVersionId', markerId),
  );
}

function refusedXml(
  entry: DeleteEntry,
  { code, message = ERRORS[code].message }: Extract<EntryResult, { kind: 'refused' }>,
): string {
  return xmlElement(
    'Error',
    // What is no key may be as long as the document.
    xmlText('Key', entry.key.slice(0, LIMITS.echoedFieldCharactersMax)),
    xmlText('VersionId', entry.versionId?.slice(0, LIMITS.echoedFieldCharactersMax)),
    xmlText('Code', code),
    xmlText('Message', message),
  );
}
