// The requests of a fuzz: number `index` of a seed is always the same one, but for its dates and what the server had
// given out before. They are made from the registry's rows, signed in each way or badly, with bodies in each framing or
// a broken one. Not here: sending and judging (fuzz-exchanges.ts).
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { ENDPOINTS, OPERATOR_PREFIX } from '../../src/gateway/operator/operator-api.ts';
import type { MatchRow } from '../../src/gateway/s3/matcher.ts';
import { OPERATIONS } from '../../src/gateway/s3/registry.ts';
import { KNOWN_SUB_RESOURCES } from '../../src/gateway/s3/sub-resources.ts';
import { UNSUPPORTED } from '../../src/gateway/s3/unsupported.ts';
import {
  bend,
  bucketPath,
  type Dice,
  documentText,
  type FuzzWorld,
  HEADER_NAMES,
  headerValue,
  keyPath,
  PARAMETER_NAMES,
  parameterValue,
  rollDice,
} from './fuzz-words.ts';
import type { Access } from './raw-s3.ts';
import { chunkedBody, presign, type Signed, sha256Hex, signHeaders } from './s3-client.ts';
import { presignV2, signHeadersV2 } from './sigv2-client.ts';

export interface FuzzRequest {
  method: string;
  /** With the blank line. */
  head: Buffer;
  body: Buffer;
  /** The body follows a 100 only. */
  awaitsContinue: boolean;
  /** What is sent is one message of HTTP, whatever it means; else the connection cannot go on behind it. */
  isWhole: boolean;
}

interface Draft {
  method: string;
  uri: string;
  headers: Record<string, string>;
  body: Buffer;
  isWhole: boolean;
  service: 's3' | 'holdfast';
}

interface Making {
  dice: Dice;
  /** How odd it shall be, 0 to 1: what is refused at once shows little. */
  wildness: number;
  world: FuzzWorld;
  access: Access;
  nowMs: number;
}

type Row = MatchRow & { conditions?: readonly string[] };
const ROWS: readonly Row[] = OPERATIONS;
const METHODS = [
  'GET',
  'PUT',
  'POST',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'COPY',
  'MOVE',
  'PROPFIND',
  'QUERY',
  'FOO',
];
const NOISE = [
  '\r\n',
  '\r',
  '\n',
  '\0',
  ':',
  ' ',
  '\t',
  '\xff',
  'HTTP/1.1',
  '%',
  'x: y\r\n',
  'a'.repeat(40_000),
];
const SIGNED_CHUNKS = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD';
const UNSIGNED_CHUNKS = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';
/** Which document a request takes that has this in its query. */
const ROOTS = [
  ['delete', 'Delete'],
  ['tagging', 'Tagging'],
  ['versioning', 'Versioning'],
  ['partNumber', undefined],
  ['uploadId', 'Complete'],
] as const;
const HOUR_MS = 3_600_000;

export function makeRequest(options: {
  seed: string;
  index: number;
  world: FuzzWorld;
  access: Access;
}): FuzzRequest {
  const { world, access } = options;
  const dice = rollDice(`fuzz:${options.seed}:${options.index}`);
  const skewMs = dice.chance(0.03) ? dice.pick([-1, 1, 24 * 365]) * HOUR_MS : 0;
  const wildness = dice.pick([0, 0.1, 0.3, 1]);
  const making: Making = { dice, wildness, world, access, nowMs: Date.now() + skewMs };
  const draft = dice.chance(0.05) ? draftOperator(making) : draftS3(making);
  addBody(making, draft);
  const headers = sign(making, draft);
  return toWire(making, draft, headers);
}

// ---- what is asked ----

function draftS3(making: Making): Draft {
  const { dice, wildness, world, access } = making;
  const row = dice.chance(0.1) ? dice.pick(UNSUPPORTED) : dice.pick(ROWS);
  const { match } = row;
  const path = {
    service: () => (dice.chance(wildness * 0.2) ? keyPath(dice, world) : '/'),
    bucket: () => `/${bucketOf(making)}${dice.chance(0.2) ? '/' : ''}`,
    object: () => `/${bucketOf(making)}/${keyOf(making)}`,
  }[match.on]();
  const headers: Record<string, string> = { host: new URL(access.endpoint).host };
  if (match.header !== undefined && dice.chance(0.95)) headers[match.header] = headerValue(dice, world);
  const { conditions = [] }: Row = row;
  while (dice.chance(0.05 + wildness * 0.6)) {
    const name = conditions.length > 0 && dice.chance(0.4) ? dice.pick(conditions) : dice.pick(HEADER_NAMES);
    headers[name] = headerValue(dice, world);
  }
  if (headers['x-amz-copy-source'] !== undefined && dice.chance(0.6)) {
    headers['x-amz-copy-source'] = `/${dice.pick(world.buckets)}/${dice.pick(world.keys)}`;
  }
  return {
    method: dice.chance(wildness * 0.15) ? dice.pick(METHODS) : match.method,
    uri: `${path.startsWith('/') ? '' : '/'}${path}${queryOf(making, row)}`,
    headers,
    body: Buffer.alloc(0),
    isWhole: true,
    service: 's3',
  };
}

function bucketOf({ dice, wildness, world }: Making): string {
  return dice.chance(wildness * 0.3) ? bucketPath(dice, world) : dice.pick(world.buckets);
}

function keyOf({ dice, wildness, world }: Making): string {
  return dice.chance(wildness * 0.7) ? keyPath(dice, world) : dice.pick(world.keys);
}

function queryOf({ dice, wildness, world }: Making, row: MatchRow): string {
  const names = [...(row.match.query ?? [])];
  for (const claim of row.claims ?? [])
    if (claim !== '*' && dice.chance(0.05 + wildness * 0.3)) names.push(claim);
  while (dice.chance(0.05 + wildness * 0.5)) names.push(dice.pick(PARAMETER_NAMES));
  if (names.length > 0 && dice.chance(0.05)) names.push(dice.pick(names));
  const pairs = names.map((name) => {
    if (name.includes('=')) return name;
    if (dice.chance(1 - wildness * 0.6)) {
      if (name === 'uploadId') return `uploadId=${world.uploadId}`;
      if (name === 'versionId') return `versionId=${world.versionId}`;
    }
    if (name === 'partNumber' && dice.chance(1 - wildness * 0.6))
      return `partNumber=${dice.pick(['1', '2', '10000'])}`;
    return dice.chance(0.2) ? name : `${name}=${parameterValue(dice, world)}`;
  });
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

function draftOperator(making: Making): Draft {
  const { dice, world, access } = making;
  const { method, path } = dice.pick(ENDPOINTS);
  const fill = () =>
    dice.pick(['root', '000000000001', '0', '1', '%zz', '%00', '__proto__', 'a%2Fb', 'x'.repeat(5000)]);
  const field = () =>
    dice.pick([
      'name',
      'email',
      'accessKey',
      'secretKey',
      'canonicalId',
      'state',
      'bucketsMax',
      '__proto__',
      'x',
    ]);
  const value = () =>
    dice.pick(['a@b.c', 'some name', 'paid', -1, 1e99, true, null, [], {}, headerValue(dice, world)]);
  const fields = Array.from(
    { length: dice.below(5) },
    () => `${JSON.stringify(field())}:${JSON.stringify(value())}`,
  );
  const text = `{${fields.join()}}`;
  const body = dice.chance(0.4)
    ? ''
    : dice.chance(0.7)
      ? text
      : bend(dice, text, ['{', '[', '"', '\xff', ',', '1e999']);
  return {
    method: dice.chance(0.9) ? method : dice.pick(METHODS),
    uri:
      OPERATOR_PREFIX +
      path.replace(/:\w+/g, fill) +
      (dice.chance(0.1) ? queryOf(making, dice.pick(ROWS)) : ''),
    headers: { host: new URL(access.endpoint).host },
    body: Buffer.from(body, 'latin1'),
    isWhole: true,
    service: 'holdfast',
  };
}

// ---- its body ----

function addBody({ dice, wildness, world }: Making, draft: Draft): void {
  const { headers, uri } = draft;
  const takesBody = ['PUT', 'POST', 'PATCH', 'FOO'].includes(draft.method);
  if (draft.service === 's3' && (takesBody || dice.chance(0.05))) {
    const root = ROOTS.find(([mark]) => uri.includes(mark))?.[1];
    const isDocument = dice.chance(root === undefined ? 0.1 : 0.95);
    draft.body = isDocument
      ? Buffer.from(documentText(dice, world, dice.chance(wildness * 0.5) ? undefined : root), 'latin1')
      : Buffer.alloc(dice.pick([0, 1, 10, 1000, dice.chance(0.05) ? 300_000 : 70]), 'fuzz');
    addDigests(dice, draft, isDocument ? 0.8 : 0.2);
  }
  if (draft.service === 's3' && dice.chance(takesBody ? wildness * 0.3 : 0.02)) return;
  if (takesBody || draft.body.length > 0) headers['content-length'] = String(draft.body.length);
}

function addDigests(dice: Dice, { headers, body }: Draft, share: number): void {
  const md5 = createHash('md5').update(body).digest('base64');
  if (dice.chance(share)) headers['content-md5'] = dice.chance(0.9) ? md5 : 'AAAA';
  if (dice.chance(share / 4)) {
    headers['x-amz-checksum-sha256'] = createHash('sha256').update(body).digest('base64');
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

// ---- who asks ----

function sign(making: Making, draft: Draft): Record<string, string> {
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

function signChunked(
  making: Making,
  draft: Draft,
  credentials: { accessKey: string; secretKey: string },
): Record<string, string> {
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
  options: { credentials: { accessKey: string; secretKey: string }; inQuery: boolean },
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

// ---- as bytes ----

function toWire({ dice, wildness }: Making, draft: Draft, signed: Record<string, string>): FuzzRequest {
  const { method, uri } = draft;
  const headers = { ...signed };
  let { body } = draft;
  let isWhole = method !== 'CONNECT';
  const awaitsContinue = body.length > 0 && headers['content-length'] !== undefined && dice.chance(0.05);
  if (awaitsContinue) headers.expect = '100-continue';
  else if (dice.chance(0.02)) headers.expect = 'nothing';
  if (headers['content-length'] === undefined && body.length > 0) {
    if (dice.chance(0.3)) body = Buffer.alloc(0);
    else {
      headers['transfer-encoding'] = 'chunked';
      body = Buffer.concat([
        Buffer.from(`${body.length.toString(16)}\r\n`),
        body,
        Buffer.from('\r\n0\r\n\r\n'),
      ]);
    }
  }
  if (dice.chance(0.03)) headers.connection = dice.pick(['close', 'keep-alive', 'upgrade', 'x']);
  const lines = Object.entries(headers)
    .filter(([name]) => name !== 'host' || !dice.chance(wildness * 0.02))
    .map(([name, value]) => `${dice.chance(0.02) ? name.toUpperCase() : name}: ${value}\r\n`);
  if (dice.chance(0.03))
    lines.push(dice.pick(lines.filter((line) => !/^(?:content-length|transfer-)/i.test(line))) ?? '');
  let head = `${method} ${uri} HTTP/1.${!awaitsContinue && dice.chance(0.03) ? 0 : 1}\r\n${lines.join('')}\r\n`;
  if (!awaitsContinue && dice.chance(wildness * 0.2)) {
    isWhole = false;
    if (dice.chance(0.6)) head = bend(dice, head, NOISE);
    else body = dice.pick([() => body.subarray(1), () => Buffer.concat([body, body, Buffer.from('x')])])();
  }
  return { method, head: Buffer.from(head, 'latin1'), body, awaitsContinue, isWhole };
}
