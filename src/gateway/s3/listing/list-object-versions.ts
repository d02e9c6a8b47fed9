// ListObjectVersions: all versions and delete markers in one order, by key and newest first. The shard walks them; here
// are only parameters and XML.

import { isoSeconds } from '../../../base/text/http-dates.ts';
import type { ListedVersion } from '../../../ports/metadata/versions.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { AccountId, VersionId } from '../../../types/names.ts';
import type { OperationContext } from '../context.ts';
import { defineOperation, type QueryParameters } from '../operation.ts';
import { invalidArgument, isVersionId } from '../request/arguments.ts';
import { s3Document } from '../request/vendor.ts';
import { commonPrefixesXml, ownersXml, summaryXml, type WriteName, writeInTurns } from '../xml/list-xml.ts';
import { echoXml, parseList } from './list-objects-page.ts';

export const listObjectVersions = defineOperation({
  name: 'ListObjectVersions',
  match: { method: 'GET', on: 'bucket', query: ['versions'] },
  logName: 'REST.GET.BUCKETVERSIONS',
  body: 'none',
  errors: ['InvalidArgument'],
  parse: (request) => ({ ...parseList(request), ...parseMarkers(request.query) }),
  access: ({ resource }) => [['s3:ListBucketVersions', resource]],
  memoryBytes: ({ maxKeys }) => maxKeys * LIMITS.listedKeyMemoryBytes,
  async run(context, input) {
    const { homeShard, believed } = context.bucket();
    const { prefix, delimiter, keyMarker, versionIdMarker, maxKeys, writeName } = input;
    const { value: page } = await context.metadata.query(
      { shard: homeShard, bucket: believed },
      'list-versions',
      {
        bucketId: believed.bucketId,
        prefix,
        max: maxKeys,
        ...(delimiter !== undefined && { delimiter }),
        ...(keyMarker && { keyMarker }),
        ...(versionIdMarker && { versionIdMarker }),
      },
    );
    await context.turn();
    const { nextKeyMarker, nextVersionIdMarker } = page;
    const owners = await ownersXml(context, page.versions);
    const text = s3Document(
      'ListVersionsResult',
      `<Name>${input.bucketName}</Name><Prefix>${writeName(prefix)}</Prefix><KeyMarker>${writeName(keyMarker)}</KeyMarker>` +
        `<VersionIdMarker>${versionIdMarker}</VersionIdMarker>` +
        (nextKeyMarker === undefined ? '' : `<NextKeyMarker>${writeName(nextKeyMarker)}</NextKeyMarker>`) +
        (nextVersionIdMarker === undefined
          ? ''
          : `<NextVersionIdMarker>${nextVersionIdMarker}</NextVersionIdMarker>`) +
        `<MaxKeys>${maxKeys}</MaxKeys>${echoXml(input)}<IsTruncated>${page.isTruncated}</IsTruncated>` +
        (await versionsXml(context, page.versions, { writeName, owners })) +
        (await commonPrefixesXml(context, page.commonPrefixes, writeName)),
    );
    return { status: 200, body: { kind: 'xml', text } };
  },
});

/** A version says where to go on within a key, so it is refused without one (AWS ListObjectVersions). */
function parseMarkers(query: QueryParameters): { keyMarker: string; versionIdMarker: VersionId | '' } {
  const keyMarker = query.get('key-marker') ?? '';
  const versionIdMarker = query.get('version-id-marker') ?? '';
  if (versionIdMarker === '') return { keyMarker, versionIdMarker };
  if (keyMarker !== '' && isVersionId(versionIdMarker)) return { keyMarker, versionIdMarker };
  throw invalidArgument({
    name: 'version-id-marker',
    value: versionIdMarker,
    message:
      keyMarker === ''
        ? 'A version-id marker cannot be specified without a key marker.'
        : 'Invalid version id specified',
  });
}

function versionsXml(
  context: OperationContext,
  versions: readonly ListedVersion[],
  { writeName, owners }: { writeName: WriteName; owners: ReadonlyMap<AccountId, string> },
): Promise<string> {
  return writeInTurns(context, versions, ({ key, versionId, isLatest, summary }) => {
    const names = `<Key>${writeName(key)}</Key><VersionId>${versionId}</VersionId><IsLatest>${isLatest}</IsLatest>`;
    const owner = owners.get(summary.owner) ?? '';
    return summary.isDeleteMarker
      ? `<DeleteMarker>${names}<LastModified>${isoSeconds(summary.modifiedAtMs)}</LastModified>${owner}</DeleteMarker>`
      : `<Version>${names}${summaryXml(summary)}${owner}<StorageClass>STANDARD</StorageClass></Version>`;
  });
}
