import { describe, expect, test } from 'vitest';
import { parseAnswerHead } from './answer-head.ts';

const head = (...lines: string[]) => parseAnswerHead(['HTTP/1.1 200 OK', ...lines].join('\r\n'));

test('names in any case, blanks around values, no reason', () => {
  const parsed = parseAnswerHead('HTTP/1.1 404\r\nContent-Length:  12 \t\r\nX-Y:\r\nConnection: Close');
  expect(parsed).toMatchObject({ status: 404, sizeBytes: 12, isLast: true });
  expect([...(parsed?.headers ?? [])]).toEqual([
    ['content-length', '12'],
    ['x-y', ''],
    ['connection', 'Close'],
  ]);
});

describe('the length', () => {
  test.each([
    ['as announced', head('content-length: 7'), 7],
    ['not told', head(), undefined],
    ['of chunks', head('transfer-encoding: chunked'), undefined],
    ['of chunks, and told otherwise', head('transfer-encoding: chunked', 'content-length: 7'), undefined],
    ['of 204', parseAnswerHead('HTTP/1.1 204 No Content'), 0],
    ['of 204 with a body', parseAnswerHead('HTTP/1.1 204 No Content\r\ncontent-length: 7'), undefined],
  ])('%s', (_name, parsed, sizeBytes) => {
    expect(parsed).toBeDefined();
    expect(parsed?.sizeBytes).toBe(sizeBytes);
  });
});

test.each([
  ['nothing', ''],
  ['another protocol', 'HTTP/2 200'],
  ['an older one', 'HTTP/1.0 200 OK'],
  ['a status that is none', 'HTTP/1.1 20 OK'],
  ['one that ends nothing', 'HTTP/1.1 100 Continue'],
  ['a line without a name', 'HTTP/1.1 200 OK\r\n: x'],
  ['a line that goes on', 'HTTP/1.1 200 OK\r\na: b\r\n c'],
  ['a blank behind the name', 'HTTP/1.1 200 OK\r\ncontent-length : 7'],
  ['a name twice', 'HTTP/1.1 200 OK\r\na: b\r\nA: b'],
  ['a lone line feed', 'HTTP/1.1 200 OK\r\na: b\ncontent-length: 7'],
  ['a lone carriage return', 'HTTP/1.1 200 OK\r\na: b\rcontent-length: 7'],
  ['a zero byte', 'HTTP/1.1 200 OK\r\na: \0'],
  ['a sign', 'HTTP/1.1 200 OK\r\ncontent-length: +7'],
  ['two lengths in one', 'HTTP/1.1 200 OK\r\ncontent-length: 7, 7'],
  ['a length of no number', 'HTTP/1.1 200 OK\r\ncontent-length: 0x7'],
  ['an empty length', 'HTTP/1.1 200 OK\r\ncontent-length:'],
  ['a length beyond numbers', 'HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999'],
])('refused: %s', (_name, text) => {
  expect(parseAnswerHead(text)).toBeUndefined();
});
