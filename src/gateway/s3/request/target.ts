// From the request line and the host to what the request is about: service, bucket or object. Paths are taken as they
// stand: empty segments, "." and ".." are parts of keys. Not here: whether the bucket exists.
import { percentDecode } from '../../../base/text/uri.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import { type BucketName, type ObjectKey, parseBucketName, parseObjectKey } from '../../../types/names.ts';
import type { Level } from '../operation.ts';
import { checkedText, invalidUri, parseQuery, type Query } from './query.ts';

export interface Target {
  readonly level: Level;
  /** As named by the path or the host, unchecked; '' on service level. */
  readonly bucket: string;
  /** '' but on object level. */
  readonly key: string;
  /** The host names the bucket, and the whole path is the key. */
  readonly isVirtualHost: boolean;
  /** The path as sent, nothing decoded; every percent sign begins a pair of hex digits. */
  readonly path: string;
  readonly query: Query;
}

/** What is longer names no key, however its bytes are written: it is not decoded. */
const PATH_CHARACTERS_MAX = 3 * (LIMITS.keyBytesMax + LIMITS.bucketNameCharactersMax + 2);
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*(.*)$/i;

/**
 * Reads the target of the request line. `bucketLabel` is the bucket that the host names, if it does (virtual-host
 * style). Throws KeyTooLongError, InvalidURI, InvalidArgument (a parameter twice), InvalidBucketName.
 */
export function parseTarget(requestUri: string, bucketLabel: string | undefined): Target {
  const uri = originForm(requestUri);
  if (uri.includes('#')) throw invalidUri(requestUri);
  const question = uri.indexOf('?');
  const path = question === -1 ? uri : uri.slice(0, question);
  if (path.length > PATH_CHARACTERS_MAX) {
    throw new AppError('KeyTooLongError', { fields: { MaxSizeAllowed: LIMITS.keyBytesMax } });
  }
  const query = parseQuery(question === -1 ? '' : uri.slice(question + 1), requestUri);
  const pathBytes = percentDecode(path);
  if (pathBytes === undefined) throw invalidUri(requestUri);
  if (bucketLabel !== undefined) {
    const key = checkedText(pathBytes.slice(1), requestUri);
    // No bucket at all before the domain: that is no way to ask for the service.
    if (bucketLabel === '') throw new AppError('InvalidBucketName', { fields: { BucketName: '' } });
    const level = levelOf(bucketLabel, key);
    return { level, bucket: bucketLabel, key, isVirtualHost: true, path, query };
  }
  // Split before decoding: an encoded slash does not end the bucket's name.
  const slash = path.indexOf('/', 1);
  const bucketBytes = percentDecode(slash === -1 ? path.slice(1) : path.slice(1, slash)) ?? '';
  const keyBytes = slash === -1 ? '' : (percentDecode(path.slice(slash + 1)) ?? '');
  const bucket = checkedText(bucketBytes, requestUri);
  const key = checkedText(keyBytes, requestUri);
  if (bucket === '' && slash !== -1) throw new AppError('InvalidBucketName', { fields: { BucketName: '' } });
  return { level: levelOf(bucket, key), bucket, key, isVirtualHost: false, path, query };
}

function levelOf(bucket: string, key: string): Level {
  if (bucket === '') return 'service';
  return key === '' ? 'bucket' : 'object';
}

/** Without scheme and host where a proxy wrote them (RFC 9112 3.2.2); "*" of OPTIONS is the service. */
function originForm(requestUri: string): string {
  if (requestUri.startsWith('/')) return requestUri;
  if (requestUri === '*') return '/';
  const rest = ABSOLUTE_FORM.exec(requestUri)?.[1];
  if (rest === undefined) throw invalidUri(requestUri);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** The target's names, checked: InvalidBucketName, KeyTooLongError. Empty strings where the level has none. */
export function checkNames(target: Target): { bucket: BucketName; key: ObjectKey } {
  const bucket = target.level === 'service' ? ('' as BucketName) : parseBucketName(target.bucket);
  if (bucket === undefined)
    throw new AppError('InvalidBucketName', { fields: { BucketName: target.bucket } });
  const key = target.level === 'object' ? parseObjectKey(target.key) : ('' as ObjectKey);
  if (key === undefined || key === 'too-long') {
    throw new AppError('KeyTooLongError', {
      fields: { Size: Buffer.byteLength(target.key), MaxSizeAllowed: LIMITS.keyBytesMax },
    });
  }
  return { bucket, key };
}

/** The bucket that a host names under one of our domains (longest first); undefined: path style. */
export function bucketLabelOf(host: string, domains: readonly string[]): string | undefined {
  const name = hostName(host);
  for (const domain of domains) {
    if (name === domain) return undefined;
    if (name.endsWith(domain) && name[name.length - domain.length - 1] === '.') {
      return name.slice(0, name.length - domain.length - 1);
    }
  }
  return undefined;
}

/** A host without its port and the dot of a fully qualified name, in lower case. */
function hostName(host: string): string {
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}
