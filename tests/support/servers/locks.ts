// Buckets with an object lock, and requests about the locks of versions, for the API tests.
import { randomBytes } from 'node:crypto';
import type { Access, RawAnswer } from './raw-s3.ts';
import { pathOf } from './raw-s3.ts';
import { type Api, expectStatus } from './s3-api.ts';
import { versionOf } from './versions.ts';

export const CREATES_LOCK = { 'x-amz-bucket-object-lock-enabled': 'true' };
export const BYPASS = { 'x-amz-bypass-governance-retention': 'true' };
const DAY_MS = 24 * 3600 * 1000;
/** Of the run: the same days are the same dates. */
const NOW_MS = Date.now();

/** ISO 8601, days from the beginning of the run, in whole seconds. */
export const inDays = (days: number) => `${new Date(NOW_MS + days * DAY_MS).toISOString().slice(0, 19)}Z`;

/** A new bucket that has versions and an object lock. */
export async function makeLockBucket(api: Api, as?: Access): Promise<string> {
  const name = `lock-${randomBytes(6).toString('hex')}`;
  expectStatus(await api.send({ method: 'PUT', path: `/${name}`, headers: CREATES_LOCK }, as), 200);
  return name;
}

/** A version of a key, or the current one. */
export interface LockedAddress {
  bucket: string;
  key: string;
  versionId?: string;
}

const lockPath = ({ bucket, key, versionId }: LockedAddress, query: 'retention' | 'legal-hold') =>
  `${pathOf(bucket, key)}?${query}${versionId === undefined ? '' : `&versionId=${versionId}`}`;

/** Puts an object; the id of its version. */
export async function putVersion(
  api: Api,
  { bucket, key }: LockedAddress,
  headers: Record<string, string> = {},
): Promise<string> {
  const answer = await api.send({
    method: 'PUT',
    path: pathOf(bucket, key),
    headers,
    body: Buffer.from('x'),
  });
  expectStatus(answer, 200);
  return versionOf(answer);
}

export const retentionXml = (mode: string, until: string) =>
  `<Retention><Mode>${mode}</Mode><RetainUntilDate>${until}</RetainUntilDate></Retention>`;

export function sendRetention(
  api: Api,
  address: LockedAddress,
  body: string,
  more: { headers?: Record<string, string>; as?: Access } = {},
): Promise<RawAnswer> {
  const { headers = {}, as } = more;
  const path = lockPath(address, 'retention');
  return api.send({ method: 'PUT', path, headers, body: Buffer.from(body) }, as);
}

export function getRetention(api: Api, address: LockedAddress, as?: Access): Promise<RawAnswer> {
  return api.send({ method: 'GET', path: lockPath(address, 'retention') }, as);
}

export const legalHoldXml = (status: string) => `<LegalHold><Status>${status}</Status></LegalHold>`;

export function sendLegalHold(
  api: Api,
  address: LockedAddress,
  body: string,
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  const path = lockPath(address, 'legal-hold');
  return api.send({ method: 'PUT', path, headers, body: Buffer.from(body) });
}

export function getLegalHold(api: Api, address: LockedAddress): Promise<RawAnswer> {
  return api.send({ method: 'GET', path: lockPath(address, 'legal-hold') });
}

/** DELETE of a version, or of what is current. */
export function deleteVersion(
  api: Api,
  { bucket, key, versionId }: LockedAddress,
  more: { headers?: Record<string, string>; as?: Access } = {},
): Promise<RawAnswer> {
  const { headers = {}, as } = more;
  const query = versionId === undefined ? '' : `?versionId=${versionId}`;
  return api.send({ method: 'DELETE', path: pathOf(bucket, key) + query, headers }, as);
}
