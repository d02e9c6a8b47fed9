// Buckets and objects under compliance (extensions 2.6), for the API tests: the documents that are put, and what is shown.
import { pathOf, type RawAnswer } from './raw-s3.ts';
import { type Api, expectStatus, fieldsOf } from './s3-api.ts';

type Elements = Readonly<Record<string, string | number | boolean>>;

const elements = (its: Elements) =>
  Object.entries(its)
    .map(([name, value]) => `<${name}>${value}</${name}>`)
    .join('');

export const bucketComplianceXml = (its: Elements) =>
  `<BucketComplianceConfiguration>${elements(its)}</BucketComplianceConfiguration>`;
export const objectComplianceXml = (its: Elements) =>
  `<ObjectComplianceConfiguration>${elements(its)}</ObjectComplianceConfiguration>`;

export interface ComplianceAddress {
  bucket: string;
  key: string;
  versionId?: string;
}

export function compliancePath({ bucket, key, versionId }: ComplianceAddress): string {
  return `${pathOf(bucket, key)}?compliance${versionId === undefined ? '' : `&versionId=${versionId}`}`;
}

export function sendBucketCompliance(api: Api, bucket: string, its: Elements): Promise<RawAnswer> {
  const body = Buffer.from(bucketComplianceXml(its));
  return api.send({ method: 'PUT', path: `/${bucket}?compliance`, body });
}

/** Status enabled and one day, unless `its` says otherwise. */
export async function enableCompliance(api: Api, bucket: string, its: Elements = {}): Promise<void> {
  const answer = await sendBucketCompliance(api, bucket, { Status: 'enabled', RetentionDays: 1, ...its });
  expectStatus(answer, 200);
}

/** In order, as text. */
export async function complianceOfBucket(api: Api, bucket: string): Promise<Record<string, string>> {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?compliance` });
  expectStatus(answer, 200);
  return fieldsOf(answer);
}

export function sendObjectCompliance(
  api: Api,
  address: ComplianceAddress,
  its: Elements,
): Promise<RawAnswer> {
  const body = Buffer.from(objectComplianceXml(its));
  return api.send({ method: 'PUT', path: compliancePath(address), body });
}

export function getObjectCompliance(
  api: Api,
  address: ComplianceAddress,
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  return api.send({ method: 'GET', path: compliancePath(address), headers });
}

/** In order, as text. */
export async function complianceOfObject(
  api: Api,
  address: ComplianceAddress,
): Promise<Record<string, string>> {
  const answer = await getObjectCompliance(api, address);
  expectStatus(answer, 200);
  return fieldsOf(answer);
}
