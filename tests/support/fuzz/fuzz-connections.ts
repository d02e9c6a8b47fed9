// The connections of a fuzz of framing: what a client means as requests, in order, and the bytes in which it sends them.
// Number `index` of a seed is always the same one, but for its dates. Bodies hold whole requests that are signed and valid:
// a server that takes a part of a body for a request executes one of them. Not here: sending and judging
// (judge-connections.ts).
import { createHash } from 'node:crypto';
import type { Access } from '../servers/raw-s3.ts';
import { headOf } from '../servers/raw-socket.ts';
import { presign } from '../servers/s3-client.ts';
import { type Dice, rollDice } from './fuzz-words.ts';

export const FUZZ_BUCKET = 'conn';
/** Objects that are there: one that is read, and one that only bodies name. */
export const THERE = 'there';
export const CANARY = 'canary';
/** A bucket that only bodies name. */
export const TRAP_BUCKET = 'trap-bucket';

export interface FuzzMessage {
  /** Its User-Agent, by which the log distinguishes it from all others. */
  id: string;
  isHead: boolean;
  head: Buffer;
  /** With its framing. */
  body: Buffer;
  awaitsContinue: boolean;
  /** Its end is unknown, or given in two ways: nothing behind it may be executed. */
  isFaulty: boolean;
  /** Of its answer; undefined: any. */
  status?: number;
  etag?: string;
}

export interface FuzzConnection {
  messages: FuzzMessage[];
  /** All messages are sent at once, whatever is answered. Else each waits for the answer to the one before it. */
  isBurst: boolean;
  /** What was refused before it was sent is sent all the same. */
  isStubborn: boolean;
  /** The client goes away behind so many answers; undefined: it hears all of them. */
  abortsBehind?: number;
  /** Its half is closed when everything is sent, and may be taken for going away. */
  closesHalf: boolean;
  /** Sizes of the pieces in which bytes are written. */
  pieceBytes: number;
}

interface Making {
  dice: Dice;
  access: Access;
  /** Of the service, as the client signs it. */
  host: string;
  /** A proxy reads the messages first, and may see requests where a server sees a fault. */
  isProxied?: boolean;
}

/** What is meant, by kind: a request line and what it is answered. */
interface Draft {
  method: string;
  path: string;
  status?: number;
  headers?: Record<string, string>;
  takesBody: boolean;
  isSigned?: boolean;
  /** Its body is stored, and recognized by its ETag. */
  isStored?: boolean;
}

export function planConnection(options: {
  seed: string;
  index: number;
  access: Access;
  host: string;
  isProxied: boolean;
}): FuzzConnection {
  const { seed, index, access, host, isProxied } = options;
  const dice = rollDice(`connection:${seed}:${index}`);
  const making = { dice, access, host, isProxied };
  const messages: FuzzMessage[] = [];
  const count = 1 + dice.below(6);
  for (let at = 0; at < count; at++) {
    messages.push(makeMessage(making, `meant-${index}-${at}`));
    // What follows is the proxy's reading, not ours.
    if (isProxied && messages.at(-1)?.isFaulty === true) break;
  }
  return {
    messages,
    isBurst: dice.chance(0.5),
    isStubborn: dice.chance(0.7),
    closesHalf: dice.chance(0.15),
    ...(dice.chance(0.1) && { abortsBehind: dice.below(count) }),
    pieceBytes: dice.pick([7, 100, 1460, 1_000_000]),
  };
}

/** What bodies are made of, to be tried by itself: it is executed where it is sent as a request. */
export function trap({ dice, access, host }: Making): string {
  const fields = { host, 'user-agent': 'trap' };
  const path = `/${FUZZ_BUCKET}/${CANARY}`;
  if (dice.chance(0.3)) {
    const method = dice.pick(['GET', 'DELETE']);
    const signing = { credentials: access, nowMs: Date.now(), expiresSeconds: 600 };
    const uri = presign({ method, uri: path, headers: { host }, ...signing });
    return `${method} ${uri} HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: trap\r\n\r\n`;
  }
  return dice.pick([
    () => headOf(access, { method: 'GET', path, headers: fields }),
    () => headOf(access, { method: 'DELETE', path, headers: fields }),
    () => headOf(access, { method: 'PUT', path, headers: { ...fields, 'content-length': '0' } }),
    () => headOf(access, { method: 'PUT', path: `/${TRAP_BUCKET}`, headers: fields }),
  ])();
}

function draftOf({ dice }: Making, id: string): Draft {
  const own = `/${FUZZ_BUCKET}/own-${id}`;
  const there = `/${FUZZ_BUCKET}/${THERE}`;
  const body = { takesBody: true };
  const none = { takesBody: dice.chance(0.2) };
  return dice.pick<() => Draft>([
    () => ({ method: 'GET', path: there, status: 200, ...none }),
    () => ({ method: 'HEAD', path: there, status: 200, ...none }),
    () => ({ method: 'GET', path: `/${FUZZ_BUCKET}?list-type=2`, status: 200, ...none }),
    () => ({ method: 'GET', path: `${own}-missing`, status: 404, ...none }),
    () => ({ method: 'DELETE', path: own, status: 204, ...none }),
    () => ({ method: 'OPTIONS', path: there, ...none }),
    () => ({ method: 'GET', path: there, status: 403, isSigned: false, ...none }),
    () => ({ method: 'PUT', path: own, status: 200, isStored: true, ...body }),
    () => ({ method: 'PUT', path: own, status: 200, isStored: true, ...body }),
    () => ({ method: 'PUT', path: own, status: 403, isSigned: false, ...body }),
    () => ({ method: 'PUT', path: '/no-such-bucket/key', status: 404, ...body }),
    () => ({ method: 'PUT', path: there, status: 412, headers: { 'if-none-match': '*' }, ...body }),
    () => ({
      method: 'PUT',
      path: own,
      status: 400,
      ...body,
      headers: { 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' },
    }),
    () => ({ method: 'POST', path: `/${FUZZ_BUCKET}?delete`, ...body }),
  ])();
}

function makeMessage(making: Making, id: string): FuzzMessage {
  const { dice, access, host, isProxied } = making;
  const draft = draftOf(making, id);
  const isFaulty = dice.chance(0.1);
  // HAProxy refuses some of HTTP/1.0 by itself, and passes none of it on.
  const isOld = !isFaulty && isProxied !== true && dice.chance(0.04);
  const payload = draft.takesBody ? payloadOf(making) : Buffer.alloc(0);
  const isChunked = draft.takesBody && !isOld && dice.chance(0.4);
  const awaitsContinue = draft.takesBody && !isOld && dice.chance(0.35);
  const headers: Record<string, string> = { host, 'user-agent': id, ...draft.headers };
  if (awaitsContinue) headers.expect = '100-continue';
  else if (dice.chance(0.05)) headers.expect = '200-ok';
  const { method, path } = draft;
  const signed =
    draft.isSigned === false ? bareHead(method, path, headers) : headOf(access, { method, path, headers });
  const framing = framingOf(dice, { draft, isChunked, sizeBytes: payload.length });
  let head = `${signed.slice(0, -2)}${connectionOf(dice)}${framing}\r\n`;
  if (isOld) head = head.replace('HTTP/1.1', 'HTTP/1.0');
  if (dice.chance(0.05)) head = `\r\n${head}`;
  const body = isChunked ? chunksOf(dice, payload) : payload;
  const message: FuzzMessage = {
    id,
    isHead: method === 'HEAD',
    head: Buffer.from(head, 'latin1'),
    body,
    awaitsContinue,
    isFaulty,
    ...(draft.status !== undefined && { status: draft.status }),
    ...(draft.isStored === true && { etag: `"${createHash('md5').update(payload).digest('hex')}"` }),
  };
  return isFaulty ? spoil(making, message) : message;
}

function bareHead(method: string, path: string, headers: Record<string, string>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** Not signed: these are for the next hop. */
function connectionOf(dice: Dice): string {
  if (dice.chance(0.07)) return `Connection: upgrade\r\nUpgrade: ${dice.pick(['h2c', 'other'])}\r\n`;
  return dice.chance(0.06) ? `Connection: ${dice.pick(['close', 'keep-alive'])}\r\n` : '';
}

function framingOf(
  dice: Dice,
  { draft, isChunked, sizeBytes }: { draft: Draft; isChunked: boolean; sizeBytes: number },
): string {
  if (isChunked)
    return `${dice.pick(['transfer-encoding', 'Transfer-Encoding'])}: ${dice.pick(['chunked', 'Chunked'])}\r\n`;
  if (draft.takesBody || draft.method === 'PUT') {
    return `${dice.pick(['content-length: ', 'Content-Length:', 'Content-Length: \t'])}${sizeBytes}\r\n`;
  }
  return '';
}

/** Whole requests, and bytes that put them anywhere. */
function payloadOf(making: Making): Buffer {
  const { dice } = making;
  if (dice.chance(0.05)) return Buffer.alloc(0);
  const parts = [dice.pick(['', '', '\r\n', '0\r\n\r\n', '\r\n0\r\n\r\n', 'x'.repeat(dice.below(2000))])];
  for (let count = 1 + dice.below(3); count > 0; count--) parts.push(trap(making));
  if (dice.chance(0.1)) parts.push('x'.repeat(dice.below(300_000)));
  return Buffer.from(parts.join(''), 'latin1');
}

/** In chunks of HTTP, with extensions and trailers that look like something else. */
function chunksOf(dice: Dice, payload: Buffer): Buffer {
  const parts: Buffer[] = [];
  const chunkBytes = Math.max(1 + dice.below(4000), payload.length >> 6);
  for (let at = 0; at < payload.length; at += chunkBytes) {
    const chunk = payload.subarray(at, at + chunkBytes);
    const size = chunk.length.toString(16);
    const extension = dice.pick(['', '', '', ';a=b', ';a="GET / HTTP/1.1"', ';0']);
    const line = `${dice.chance(0.2) ? '000' : ''}${dice.chance(0.5) ? size.toUpperCase() : size}${extension}\r\n`;
    parts.push(Buffer.from(line), chunk, Buffer.from('\r\n'));
  }
  const trailers = dice.pick(['', '', '', 'X-Trailer: 1\r\n', 'X-Trailer: GET / HTTP/1.1\r\nHost: x\r\n']);
  parts.push(Buffer.from(`0\r\n${trailers}\r\n`));
  return Buffer.concat(parts);
}

/** Behind a faulty message to a proxy: what it may read as a request of this client, which does no harm. */
function tail({ access, host }: Making, id: string): string {
  const headers = { host, 'user-agent': id.replace('meant', 'tail') };
  return headOf(access, { method: 'GET', path: `/${FUZZ_BUCKET}/${THERE}`, headers });
}

/** The message with a fault in its framing; whole requests follow it. */
function spoil(making: Making, message: FuzzMessage): FuzzMessage {
  const { dice, isProxied } = making;
  const next = () => (isProxied === true ? tail(making, message.id) : trap(making));
  const traps = Buffer.from(next() + next());
  const head = message.head.toString('latin1');
  const start = `${head.slice(0, -2).replace(/^(?:content-length|transfer-encoding):[^\n]*\n/gim, '')}`;
  const length = traps.length;
  const chunked = `${length.toString(16)}\r\n${traps}\r\n0\r\n\r\n`;
  const cl = `Content-Length: ${length}\r\n`;
  const te = 'Transfer-Encoding: chunked\r\n';
  const [lines, body] = dice.pick<readonly [string, string]>([
    [`Content-Length: 4\r\n${te}`, chunked],
    [`${te}Content-Length: 4\r\n`, chunked],
    [`Content-Length: 0\r\n${te}`, `0\r\n\r\n${traps}`],
    [`${cl}Content-Length: 0\r\n`, `${traps}`],
    [`Content-Length: 0\r\n${cl}`, `${traps}`],
    [`Content-Length: 0, ${length}\r\n`, `${traps}`],
    [`Content-Length: +${length}\r\n`, `${traps}`],
    [`Content-Length: 0x${length.toString(16)}\r\n`, `${traps}`],
    [`Content-Length: -1\r\n`, `${traps}`],
    [`Content-Length: ${2n ** 64n}\r\n`, `${traps}`],
    [`Content-Length : ${length}\r\n`, `${traps}`],
    [`Content-Length\r\n : ${length}\r\n`, `${traps}`],
    [`X-Fold: a\r\n ${cl}`, `${traps}`],
    [`Content-Length:\r\n ${length}\r\n`, `${traps}`],
    [`X-Bare: a\n${cl}`, `${traps}`],
    [`X-Bare: a\r${cl}`, `${traps}`],
    [`X-Nul: a\0b\r\n${cl}`, `${traps}`],
    [`Transfer-Encoding: xchunked\r\n`, chunked],
    [`Transfer-Encoding: identity\r\n`, `${traps}`],
    [`Transfer-Encoding: chunked, identity\r\n`, chunked],
    [`${te}Transfer-Encoding: identity\r\n`, chunked],
    [`Transfer-Encoding : chunked\r\n`, chunked],
    [`Transfer-Encoding:\vchunked\r\n`, chunked],
    [te, `zz\r\n${traps}`],
    [te, `-1\r\n${traps}`],
    [te, `0x5\r\nhello\r\n0\r\n\r\n${traps}`],
    [te, `5\r\nhelloX0\r\n\r\n${traps}`],
    [te, `10000000000000005\r\nhello\r\n0\r\n\r\n${traps}`],
    [te, `5;a\nhello\r\n0\r\n\r\n${traps}`],
    [te, `5\nhello\n0\n\n${traps}`],
    [te, `5 \r\nhello\r\n0\r\n\r\n${traps}`],
    [te, `5\r\nhello\r\n0\r\nContent-Length : 5\r\n\r\n${traps}`],
  ]);
  const isTunnel = dice.chance(0.05);
  const text = isTunnel
    ? `${start.replace(/^(\r\n)?\S+ \S+/, 'CONNECT elsewhere:443')}\r\n`
    : `${start}${lines}\r\n`;
  const { status: _, etag: __, ...rest } = message;
  const sent = isTunnel ? `${traps}` : body;
  return { ...rest, head: Buffer.from(text, 'latin1'), body: Buffer.from(sent, 'latin1'), isFaulty: true };
}
