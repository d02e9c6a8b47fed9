// What people write to name a bucket or an object: `bucket`, `bucket/key`, or either behind `s3://`.
import { Refusal } from '../base/refusal.ts';

export interface Address {
  bucket: string;
  /** Absent: the bucket itself. */
  key?: string;
}

export interface VersionAddress {
  key: string;
  versionId?: string;
}

const SCHEME = 's3://';
const VERSION_SUFFIX = /\?versionId=([A-Za-z0-9_-]{1,64})$/;

/** Throws {@link Refusal} when there is no bucket in it. */
export function parseAddress(text: string): Address {
  const path = text.startsWith(SCHEME) ? text.slice(SCHEME.length) : text;
  const slash = path.indexOf('/');
  const bucket = slash < 0 ? path : path.slice(0, slash);
  if (bucket === '') throw new Refusal(`"${text}" names no bucket: write bucket/key`);
  const key = slash < 0 ? '' : path.slice(slash + 1);
  return key === '' ? { bucket } : { bucket, key };
}

/** Throws {@link Refusal} unless it names a bucket, without a slash behind it: there the key may have been lost. */
export function parseBucketAddress(text: string): string {
  const { bucket, key } = parseAddress(text);
  if (key !== undefined) throw new Refusal(`"${text}" names an object: write the bucket alone`);
  if (text.endsWith('/'))
    throw new Refusal(`"${text}" has no key behind its slash: write ${bucket} for the bucket`);
  return bucket;
}

/** Throws {@link Refusal} when it names no object. */
export function parseObjectAddress(text: string): Required<Address> {
  const { bucket, key } = parseAddress(text);
  if (key === undefined) throw new Refusal(`"${text}" names no object: write bucket/key`);
  return { bucket, key };
}

/** As parseObjectAddress, with `?versionId=...` behind the key of a version. */
export function parseVersionAddress(text: string): Required<Address> & VersionAddress {
  const versionId = VERSION_SUFFIX.exec(text)?.[1];
  const address = parseObjectAddress(text.replace(VERSION_SUFFIX, ''));
  return { ...address, ...(versionId !== undefined && { versionId }) };
}
