// Buckets with versions, and the versions that they list, for the API tests.
import { textOf } from '../../../src/base/xml/parse-xml.ts';
import type { RawAnswer } from './raw-s3.ts';
import { type Api, expectStatus, xmlOf } from './s3-api.ts';

export async function setVersioning(
  api: Api,
  bucket: string,
  status: 'Enabled' | 'Suspended',
): Promise<void> {
  const body = Buffer.from(`<VersioningConfiguration><Status>${status}</Status></VersioningConfiguration>`);
  expectStatus(await api.send({ method: 'PUT', path: `/${bucket}?versioning`, body }), 200);
}

/** A new bucket that keeps versions. */
export async function makeVersionedBucket(api: Api): Promise<string> {
  const bucket = await api.makeBucket();
  await setVersioning(api, bucket, 'Enabled');
  return bucket;
}

/** Of an answer: the version that it is about. */
export function versionOf(answer: Pick<RawAnswer, 'headers'>): string {
  return String(answer.headers['x-amz-version-id']);
}

export interface ShownVersion {
  kind: 'Version' | 'DeleteMarker';
  key: string;
  versionId: string;
  isLatest: boolean;
}

/** Versions and markers of a ListObjectVersions answer, in its order. */
export function versionsIn(answer: RawAnswer): ShownVersion[] {
  return xmlOf(answer).children.flatMap((element) => {
    const kind = element.name;
    if (kind !== 'Version' && kind !== 'DeleteMarker') return [];
    const of = (name: string) => textOf(element, name) ?? '';
    return [{ kind, key: of('Key'), versionId: of('VersionId'), isLatest: of('IsLatest') === 'true' }];
  });
}

/** What a bucket lists. */
export async function listVersions(api: Api, bucket: string, query = ''): Promise<RawAnswer> {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?versions${query && `&${query}`}` });
  expectStatus(answer, 200);
  return answer;
}
