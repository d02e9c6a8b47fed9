import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { move, readResult } from './move-command.ts';

const HEAD =
  '<?xml version="1.0" encoding="UTF-8"?>\n<MoveObjectResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">';

async function* inPieces(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const entry = (key: string, error = '') =>
  `<MoveObject><SourceKey>${key}</SourceKey><DestinationKey>new-${key}</DestinationKey>${error}</MoveObject>`;

// White space comes while nothing else does, and a piece may end within a character.
test.each([1, 7, 4096])('errors are kept and the others counted, in pieces of %i bytes', async (size) => {
  const refused = entry('a&amp;b', '<Error><Code>ObjectAlreadyExists</Code><Message>there</Message></Error>');
  const text = `${HEAD} ${entry('ä')}\n ${refused}${entry('c')} <MoveCount>2</MoveCount></MoveObjectResult>`;
  expect(await readResult(inPieces(text, size), 200)).toEqual({
    movedCount: 2,
    errors: [{ source: 'a&b', destination: 'new-a&b', code: 'ObjectAlreadyExists', message: 'there' }],
  });
});

test('errors that the server does not name any more are told by their number, and are no success', async () => {
  const text = `${HEAD}<UnlistedErrorCount>7</UnlistedErrorCount><MoveCount>2</MoveCount></MoveObjectResult>`;
  const server = createServer((_, response) => void response.end(text)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const printed: string[] = [];
  const told = { ...context, print: (line: string) => void printed.push(line) };
  try {
    const objects = { source: 'b/a/', destination: 'b/c/' };
    expect(await move(told, objects, { endpoint, prefix: true })).toBe(1);
    expect(await move(told, objects, { endpoint, prefix: true, json: true })).toBe(1);
  } finally {
    server.close();
  }
  const [words = '', json = ''] = printed;
  expect(words).toMatch(/^not renamed.*: 7 more;.*\n2 renamed$/);
  expect(JSON.parse(json)).toEqual({ movedCount: 2, errors: [], unlistedErrorCount: 7 });
});

test('an error in place of a result, behind its beginning, and what is neither', async () => {
  const error = '<Error><Code>NoSuchKey</Code><Message>not there</Message></Error>';
  await expect(readResult(inPieces(error, 9), 404)).rejects.toThrow('not there (NoSuchKey)');
  const broken = `${HEAD}${entry('a')}${error}</MoveObjectResult>`;
  await expect(readResult(inPieces(broken, 9), 200)).rejects.toThrow('not there (NoSuchKey)');
  await expect(readResult(inPieces(HEAD + entry('a'), 9), 200)).rejects.toThrow('did not answer as');
});

const context = {
  env: { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' },
  print: () => {},
  nowMs: () => 0,
  sleep: async () => {},
};

test.each([
  [409, 'ObjectAlreadyExists'],
  [403, 'AccessDenied'],
])('one key that is not renamed is told with its reason: %i', async (status, code) => {
  const printed: string[] = [];
  const server = createServer((_, response) => {
    const error = `<Error><Code>${code}</Code><Message>no</Message></Error>`;
    response.writeHead(status).end(`${HEAD}${entry('a', error)}<MoveCount>0</MoveCount></MoveObjectResult>`);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const told = { ...context, print: (line: string) => void printed.push(line) };
  try {
    const objects = { source: 'b/a', destination: 'b/new-a' };
    expect(await move(told, objects, { endpoint, json: true })).toBe(1);
  } finally {
    server.close();
  }
  expect(JSON.parse(printed.join(''))).toMatchObject({ movedCount: 0, errors: [{ source: 'a', code }] });
});

// A server reads a Destination that begins with a slash as one that begins with its bucket.
test.each([
  ['b/c', '/b/c'],
  ['b//c', '/b//c'],
  ['b//b/c', '/b//b/c'],
  ['b/50%2f ä', '/b/50%252f%20%C3%A4'],
])('the key of %s is the one that the server is told', async (destination, told) => {
  const heard: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    heard.push(request.headers.destination as string | undefined);
    response.end(`${HEAD}<MoveCount>1</MoveCount></MoveObjectResult>`);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await move(context, { source: 'b/a', destination }, { endpoint });
  } finally {
    server.close();
  }
  expect(heard).toEqual([told]);
});

test('what is said of objects is not passed over for a bucket', async () => {
  const wanted = { source: 'one', destination: 'other' };
  await expect(move(context, wanted, { prefix: true })).rejects.toThrow('--prefix');
  await expect(move(context, wanted, { overwrite: true })).rejects.toThrow('--overwrite');
});
