// The requests of a fuzz: number `index` of a seed is always the same one, but for its dates and what the server had
// given out before. They are made from the registry's rows, signed in each way or badly, with bodies in each framing or
// a broken one. Not here: sending and judging (fuzz-exchanges.ts).
import { createHash } from 'node:crypto';
import { createOperatorApi } from '../../../src/gateway/operator-api/operator-api.ts';
import type { OperatorContext } from '../../../src/gateway/operator-api/operator-context.ts';
import type { MatchRow } from '../../../src/gateway/s3/matcher.ts';
import { OPERATIONS } from '../../../src/gateway/s3/registry.ts';
import { UNSUPPORTED } from '../../../src/gateway/s3/unsupported.ts';
import { keyHeaders } from '../servers/customer-keys.ts';
import { BOUNDARY, FORM_TYPE, type Form, formBody } from '../servers/forms.ts';
import type { Access } from '../servers/raw-s3.ts';
import { type Draft, type Making, signDraft } from './fuzz-signing.ts';
import {
  bend,
  bucketPath,
  type Dice,
  documentText,
  type FuzzWorld,
  HEADER_NAMES,
  headerValue,
  keyPath,
  NEW_BUCKETS,
  PARAMETER_NAMES,
  parameterValue,
  rollDice,
} from './fuzz-words.ts';

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

type Row = MatchRow & { conditions?: readonly string[] };
const ROWS: readonly Row[] = OPERATIONS;
const OPERATOR_ROUTES = await createOperatorApi({} as OperatorContext).routes();
const FORM_PIECES = [
  '\r\n',
  '\r',
  '--',
  `\r\n--${BOUNDARY}`,
  `--${BOUNDARY}--`,
  ';',
  '"',
  '=',
  ':',
  '\0',
  '\xff',
  'file',
  'key',
];
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
/** Which document a request takes that has this in its query. */
const ROOTS = [
  ['delete', 'Delete'],
  ['tagging', 'Tagging'],
  ['versioning', 'Versioning'],
  ['partNumber', undefined],
  ['uploadId', 'Complete'],
  ['compose', 'ComposeRequest'],
] as const;
/** So few that they come again. */
const TOKENS = ['one', 'two', 'three'];
/** Of the uploads that are open, in the first bucket. */
export const UPLOAD_KEY = 'parts';
/** Of objects that are encrypted by their customer. */
export const CUSTOMER_KEY = Buffer.alloc(32, 7);
/** Of virtual-host style. */
export const DOMAIN = 's3.test';
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
  const headers = signDraft(making, draft);
  return toWire(making, draft, headers);
}

// ---- what is asked ----

function draftS3(making: Making): Draft {
  const { dice, wildness, world, access } = making;
  const row = dice.chance(0.1) ? dice.pick(UNSUPPORTED) : dice.pick(ROWS);
  const { match } = row;
  const isVirtualHost = match.on !== 'service' && dice.chance(0.1);
  const path = {
    service: () => (dice.chance(wildness * 0.2) ? keyPath(dice, world) : '/'),
    bucket: () => `/${isVirtualHost ? '' : bucketOf(making, row)}${dice.chance(0.2) ? '/' : ''}`,
    object: () => `${isVirtualHost ? '' : `/${bucketOf(making, row)}`}/${keyOf(making, row)}`,
  }[match.on]();
  const host = isVirtualHost ? `${bucketOf(making, row)}.${DOMAIN}` : new URL(access.endpoint).host;
  const headers: Record<string, string> = {
    host: dice.chance(wildness * 0.05) ? headerValue(dice, world) : host,
  };
  if (match.header !== undefined && dice.chance(0.95)) headers[match.header] = headerValue(dice, world);
  const { conditions = [] }: Row = row;
  while (dice.chance(0.05 + wildness * 0.6)) {
    const name = conditions.length > 0 && dice.chance(0.4) ? dice.pick(conditions) : dice.pick(HEADER_NAMES);
    headers[name] = headerValue(dice, world);
  }
  if (headers['x-amz-copy-source'] !== undefined && dice.chance(1 - wildness / 2)) {
    headers['x-amz-copy-source'] = `/${dice.pick(world.buckets)}/${dice.pick(world.keys)}`;
  }
  addMoveHeaders(making, row, headers);
  if (match.on === 'object' && dice.chance(0.05)) headers['x-svc-idempotency-token'] = dice.pick(TOKENS);
  if (match.on === 'object' && dice.chance(0.05)) Object.assign(headers, keyHeaders(CUSTOMER_KEY));
  if (match.on === 'object' && dice.chance(0.02)) Object.assign(headers, keyHeaders(CUSTOMER_KEY, 'source'));
  if (match.method === 'OPTIONS' && dice.chance(0.5)) {
    Object.assign(headers, { origin: 'https://a.b', 'access-control-request-method': 'PUT' });
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

/** A MOVE that fails at its Destination shows nothing of the rest. */
function addMoveHeaders(
  { dice, wildness, world }: Making,
  { match }: MatchRow,
  headers: Record<string, string>,
): void {
  if (match.method !== 'MOVE' || dice.chance(wildness * 0.3)) return;
  if (match.on === 'bucket') {
    headers.destination = dice.pick(['', '/']) + dice.pick(NEW_BUCKETS);
    return;
  }
  const start = dice.chance(0.2) ? `/${dice.pick(world.buckets)}/` : '';
  headers.destination = start + dice.pick([...world.keys, 'moved/', 'moved/%C3%A9']);
  if (dice.chance(0.4)) headers.overwrite = dice.pick(['true', 'false', 'TRUE']);
  if (dice.chance(0.3)) headers['x-svc-prefix'] = 'true';
  if (dice.chance(0.2)) headers['x-svc-quiet'] = 'true';
}

function bucketOf({ dice, wildness, world }: Making, row: MatchRow): string {
  // New ones are made and renamed; of the world's buckets few are: all that comes behind would look for them.
  const isMadeOrMoved = row.match.method === 'MOVE' || (row.match.method === 'PUT' && !row.match.query);
  if (row.match.on === 'bucket' && isMadeOrMoved && dice.chance(0.95)) return dice.pick(NEW_BUCKETS);
  if (row.match.query?.includes('uploadId') && !dice.chance(wildness * 0.3)) return world.buckets[0] ?? '';
  if (row.match.on === 'bucket' && dice.chance(0.1)) return dice.pick(NEW_BUCKETS);
  return dice.chance(wildness * 0.3) ? bucketPath(dice, world) : dice.pick(world.buckets);
}

function keyOf({ dice, wildness, world }: Making, row: MatchRow): string {
  if (row.match.query?.includes('uploadId') && !dice.chance(wildness * 0.3)) return UPLOAD_KEY;
  return dice.chance(wildness * 0.7) ? keyPath(dice, world) : dice.pick(world.keys);
}

function queryOf({ dice, wildness, world }: Making, row: MatchRow): string {
  const names = [...(row.match.query ?? [])];
  for (const name of row.parameters ?? [])
    if (name !== '*' && dice.chance(0.05 + wildness * 0.3)) names.push(name);
  while (dice.chance(0.05 + wildness * 0.5)) names.push(dice.pick(PARAMETER_NAMES));
  if (names.length > 0 && dice.chance(0.05)) names.push(dice.pick(names));
  const pairs = names.map((name) => {
    if (name.includes('=')) return name;
    if (dice.chance(1 - wildness * 0.6)) {
      if (name === 'uploadId') return `uploadId=${dice.pick(world.uploadIds)}`;
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
  const { method, path } = dice.pick(OPERATOR_ROUTES);
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
    uri: path.replace(/:\w+/g, fill) + (dice.chance(0.1) ? queryOf(making, dice.pick(ROWS)) : ''),
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
  const isForm = draft.method === 'POST' && /^\/[^/?]*\/?$/.test(uri) && dice.chance(0.9);
  if (draft.service === 's3' && isForm) {
    headers['content-type'] = FORM_TYPE;
    const text = formBody(draftForm(dice, world)).toString('latin1');
    draft.body = Buffer.from(
      dice.chance(0.3 + wildness / 2) ? bend(dice, text, FORM_PIECES) : text,
      'latin1',
    );
  } else if (draft.service === 's3' && (takesBody || dice.chance(0.05))) {
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

/** Unsigned, because its signer would have to know what is going to be bent; the parser does not care. */
function draftForm(dice: Dice, world: FuzzWorld): Form {
  const names = [
    'acl',
    'tagging',
    'policy',
    'signature',
    'AWSAccessKeyId',
    'x-amz-meta-a',
    'x-amz-signature',
    'success_action_status',
  ];
  const fields = names
    .filter(() => dice.chance(0.3))
    .map((name) => [name, headerValue(dice, world)] as const);
  const key = decodeURIComponent(dice.pick(world.keys));
  const file = Buffer.alloc(
    dice.pick([0, 1, 1000, 70_000]),
    dice.pick(['\r', '\r\n--', `\r\n--${BOUNDARY}`, 'fuzz']),
  );
  return { fields: [['key', dice.chance(0.2) ? '${filename}' : key], ...fields], file };
}

function addDigests(dice: Dice, { headers, body }: Draft, share: number): void {
  const md5 = createHash('md5').update(body).digest('base64');
  if (dice.chance(share)) headers['content-md5'] = dice.chance(0.9) ? md5 : 'AAAA';
  if (dice.chance(share / 4)) {
    headers['x-amz-checksum-sha256'] = createHash('sha256').update(body).digest('base64');
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
