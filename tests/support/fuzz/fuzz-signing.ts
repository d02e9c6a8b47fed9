// How the requests of a fuzz are signed: in each way that the server takes, by somebody else, or badly; chunks of bodies
// too, because signatures are in them. Not here: what is asked (fuzz-requests.ts).
import { crc32 } from 'node:zlib';
import { KNOWN_SUB_RESOURCES } from '../../../src/gateway/s3/request/sub-resources.ts';
import type { Access } from '../servers/raw-s3.ts';
import {
  type Credentials,
  chunkedBody,
  presign,
  type Signed,
  sha256Hex,
  signHeaders,
} from '../servers/s3-client.ts';
import { presignV2, signHeadersV2 } from '../servers/sigv2-client.ts';
import { bend, type Dice, type FuzzWorld, headerValue } from './fuzz-words.ts';

const SIGNED_CHUNKS = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD';
const UNSIGNED_CHUNKS = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';

/** A request before it is signed. */
export interface Draft {
  method: string;
  uri: string;
  headers: Record<string, string>;
  body: Buffer;
  isWhole: boolean;
  service: 's3' | 'holdfast';
}

/** What a request is made from. */
export interface Making {
  dice: Dice;
  /** How odd it shall be, 0 to 1: what is refused at once shows little. */
  wildness: number;
  world: FuzzWorld;
  access: Access;
  nowMs: number;
}

/** The headers to send; the draft's URI and body change where the signature is in them. */
export function signDraft(making: Making, draft: Draft): Record<string, string> {
  const { dice, wildness, world, access, nowMs } = making;
  const { method, headers, service } = draft;
  const credentials = {
    accessKey: dice.chance(wildness * 0.05)
      ? dice.pick(['x', '__proto__', '\xff', 'A'.repeat(5000)])
      : access.accessKey,
    secretKey: dice.chance(wildness * 0.05) ? 'wrong' : access.secretKey,
  };
  const sound = ['v4', 'v4', 'v4', 'v4-query', 'v2', 'v2-query', 'chunked', 'chunked'];
  const kind = dice.chance(wildness * 0.2) ? dice.pick(['none', 'bent']) : dice.pick(sound);
  if (kind === 'none') return headers;
  if (kind === 'v2' || kind === 'v2-query')
    return signV2(making, draft, { credentials, inQuery: kind === 'v2-query' });
  if (kind === 'v4-query') {
    const expiresSeconds = dice.chance(0.9) ? 60 : dice.pick(['0', '-1', 'x', '604801', '1e9', '']);
    draft.uri = presign({ method, uri: draft.uri, headers, credentials, nowMs, service, expiresSeconds });
    return headers;
  }
  if (kind === 'chunked' && service === 's3' && draft.body.length > 0)
    return signChunked(making, draft, credentials);
  headers['x-amz-content-sha256'] ??=
    dice.chance(0.3) && service === 's3' ? 'UNSIGNED-PAYLOAD' : sha256Hex(draft.body);
  const signed = signHeaders({ method, uri: draft.uri, headers, credentials, nowMs, service }).headers;
  if (kind !== 'bent') return signed;
  const pieces = [
    ',',
    '=',
    ';',
    '/',
    ' ',
    'AWS ',
    'Signature=',
    'SignedHeaders=',
    '\xff',
    headerValue(dice, world),
  ];
  return {
    ...signed,
    authorization: bend(dice, signed.authorization ?? '', pieces).replace(/[\r\n\0]/g, ''),
  };
}

function signChunked(making: Making, draft: Draft, credentials: Credentials): Record<string, string> {
  const { dice, nowMs } = making;
  const { method, uri, headers } = draft;
  delete headers['x-amz-checksum-sha256'];
  delete headers['content-md5'];
  const isSigned = dice.chance(0.5);
  const hasTrailer = dice.chance(0.5);
  headers['x-amz-content-sha256'] = isSigned
    ? `${SIGNED_CHUNKS}${hasTrailer ? '-TRAILER' : ''}`
    : UNSIGNED_CHUNKS;
  headers['x-amz-decoded-content-length'] = dice.chance(0.95)
    ? String(draft.body.length)
    : dice.pick(['0', '-1', 'x', '99999999999999999999', String(draft.body.length + 1)]);
  if (hasTrailer) headers['x-amz-trailer'] = dice.chance(0.9) ? 'x-amz-checksum-crc32' : 'x-other';
  delete headers['content-length'];
  const seed = signHeaders({ method, uri, headers, credentials, nowMs });
  frameInChunks(making, draft, isSigned ? seed : undefined);
  // Of aws-chunked bodies the length is not signed, so that it may be told when they are framed.
  return { ...seed.headers, 'content-length': String(draft.body.length) };
}

function signV2(
  { dice, nowMs }: Making,
  draft: Draft,
  options: { credentials: Credentials; inQuery: boolean },
): Record<string, string> {
  const { method, headers } = draft;
  const { credentials } = options;
  const [path = '', query = ''] = draft.uri.split('?', 2);
  const pairs = query.split('&').map((pair) => decodeLoosely(pair.replaceAll('+', ' ')));
  const named = new Map(pairs.map((pair) => [pair.split('=')[0] ?? '', pair]));
  const subResources = [...named.keys()]
    .filter((name) => KNOWN_SUB_RESOURCES.has(name) || name.startsWith('response-'))
    .sort()
    .map((name) => (/^(?:partNumber|uploadId|versionId|response-.*)$/.test(name) ? named.get(name) : name));
  const resource = path + (subResources.length === 0 ? '' : `?${subResources.join('&')}`);
  if (!options.inQuery) return signHeadersV2({ method, resource, headers, credentials, nowMs });
  const expires = dice.chance(0.9)
    ? Math.floor(nowMs / 1000) + 60
    : dice.pick(['0', 'x', '-1', '99999999999']);
  draft.uri += `${draft.uri.includes('?') ? '&' : '?'}${presignV2({ method, resource, headers, credentials, expires })}`;
  return headers;
}

function decodeLoosely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Puts the body into chunks, signed ones if the request is, or broken ones. */
function frameInChunks({ dice, wildness }: Making, draft: Draft, seed: Signed | undefined): void {
  const right = Buffer.alloc(4);
  right.writeUInt32BE(crc32(draft.body));
  const value = dice.chance(wildness) ? dice.pick(['AAAAAA==', 'x', '']) : right.toString('base64');
  const trailer = { name: 'x-amz-checksum-crc32', value };
  const framed = chunkedBody({
    body: draft.body,
    chunkBytes: dice.pick([1, 7, 8192, 65_536]) + (draft.body.length > 2000 ? 8192 : 0),
    ...(seed !== undefined && { seed }),
    ...(draft.headers['x-amz-trailer'] !== undefined && { trailer }),
  });
  if (!dice.chance(wildness)) draft.body = framed;
  else
    draft.body = Buffer.from(
      bend(dice, framed.toString('latin1'), ['\r\n', '0\r\n', ';', 'f', ':', '\n']),
      'latin1',
    );
}
