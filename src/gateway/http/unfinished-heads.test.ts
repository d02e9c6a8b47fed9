import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { LIMITS } from '../../types/limits.ts';
import type { Connection } from './connections.ts';
import { excessiveHeads, noteRequestEnd } from './unfinished-heads.ts';

const KiB = 1024;

/** A connection on which `bytesRead` have come, with a parser that says how many lines there are, or does not. */
function connect(address: string, bytesRead: number, lineCount?: number): Connection {
  const parser = lineCount === undefined ? undefined : { _headers: new Array(2 * lineCount) };
  return {
    socket: { bytesRead, parser } as unknown as Socket,
    tenant: { account: undefined, address },
    underWay: 0,
    yielding: 0,
    waiting: [],
    parsedBytes: 0,
    excessOf: undefined,
    isBroken: false,
  };
}

const many = (count: number, make: () => Connection) => Array.from({ length: count }, make);
const COUNT = LIMITS.unfinishedHeadsBytesMax / LIMITS.headerBytesMax;

test('the oldest connections of an address that holds too much end, and no others', () => {
  const greedy = many(COUNT, () => connect('192.0.2.1', 32 * KiB, 0));
  const other = connect('192.0.2.2', 32 * KiB, 0);
  const excessive = excessiveHeads([other, ...greedy]);
  expect(excessive).toEqual(greedy.slice(0, excessive.length));
  // It keeps four fifths of all.
  expect(COUNT - excessive.length).toBeGreaterThan(0.78 * COUNT);
  expect(COUNT - excessive.length).toBeLessThanOrEqual(0.8 * COUNT);
});

test('anonymous clients of many addresses leave room for an account', () => {
  const strangers = Array.from({ length: COUNT }, (_, at) => connect(`192.0.2.${at % 200}`, 32 * KiB, 0));
  const proved = connect('198.51.100.1', 32 * KiB, 0);
  proved.tenant = { account: 'account', address: '198.51.100.1' };
  const excessive = excessiveHeads([proved, ...strangers]);
  expect(excessive).not.toContain(proved);
  expect(excessive.length).toBeGreaterThan(COUNT / 10);
});

test('header lines count beside bytes', () => {
  const short = () => connect('192.0.2.1', 4 * KiB, 0);
  expect(excessiveHeads(many(COUNT, short))).toEqual([]);
  const ofLines = () => connect('192.0.2.1', 4 * KiB, LIMITS.headerLinesMax);
  expect(excessiveHeads(many(COUNT, ofLines)).length).toBeGreaterThan(0);
  // Where the parser does not report lines, as many as fit are assumed.
  const untold = () => connect('192.0.2.1', 4 * KiB);
  expect(excessiveHeads(many(COUNT, untold)).length).toBeGreaterThan(0);
});

test('requests under way and idle connections hold no head', () => {
  const busy = many(COUNT, () => ({ ...connect('192.0.2.1', 32 * KiB, 0), underWay: 1 }));
  const idle = many(COUNT, () => ({ ...connect('192.0.2.1', 32 * KiB, 0), parsedBytes: 32 * KiB }));
  expect(excessiveHeads([...busy, ...idle])).toEqual([]);
});

test('bytes behind the end of a request in the same read belong to the next head', () => {
  const rawHeaders = ['Host', 'x', 'Content-Length', '8192'];
  const request = { rawHeaders, headers: { 'content-length': '8192' } } as unknown as IncomingMessage;
  const behind = (bytesRead: number, wanted = request, receivedBytes = 0) => {
    const connection = connect('192.0.2.1', bytesRead, 0);
    noteRequestEnd(connection, { request: wanted, body: { receivedBytes } });
    return bytesRead - connection.parsedBytes;
  };
  expect(behind(300)).toBe(0);
  expect(behind(8192 + 23)).toBeLessThan(100);
  expect(behind(8192 + 23 + 20 * KiB)).toBeGreaterThan(20 * KiB - 100);
  // A length that nobody has sent hides nothing for longer than the next head may have.
  expect(behind(1024 * KiB)).toBe(LIMITS.headerBytesMax);
  const chunked = { rawHeaders, headers: { 'transfer-encoding': 'chunked' } } as unknown as IncomingMessage;
  expect(behind(20 * KiB, chunked)).toBeGreaterThan(20 * KiB - 100);
  // The body that has come is not the next head's.
  expect(behind(900 * KiB, chunked, 899 * KiB)).toBeLessThan(KiB);
});
