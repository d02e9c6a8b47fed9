// The MoveObjectResult (service 2.6; extensions 2.1): what MOVE of an object or a prefix answers. What it does:
// move-object.test.ts, move-versions.test.ts.
import { beforeEach, describe, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';
import { setVersioning, versionOf } from '../support/servers/versions.ts';

const api = useApi();
let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
});

const PREFIX = { 'x-svc-prefix': 'true' };

/** The document, whose root is told by its name. */
async function move(from: string, destination: string, headers: Record<string, string> = {}, status = 200) {
  const path = pathOf(bucket, from);
  const answer = await api.send({ method: 'MOVE', path, headers: { destination, ...headers } });
  expectStatus(answer, status);
  const root = xmlOf(answer);
  expect(root.name).toBe('MoveObjectResult');
  return root;
}

type Document = Awaited<ReturnType<typeof move>>;
const namesIn = ({ children }: Document) => children.map(({ name }) => name);
const entriesOf = (document: Document) => childrenOf(document, 'MoveObject');
/** Names and texts of an element's children, in their order. */
const fieldsOf = ({ children }: Document) => children.map(({ name, text }) => [name, text]);

async function put(...keys: string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const key of keys) {
    const answer = await api.send({ method: 'PUT', path: pathOf(bucket, key), body: Buffer.from(key) });
    expectStatus(answer, 200);
    ids.push(versionOf(answer));
  }
  return ids;
}

describe('service 2.6', () => {
  test('SourcePrefix and DestinationPrefix stand first in prefix mode, as they were asked for, and not else', async () => {
    await put('a&/1', 'single');
    const document = await move('a&/', 'b%2F<', PREFIX);
    expect(namesIn(document)).toEqual(['SourcePrefix', 'DestinationPrefix', 'MoveObject', 'MoveCount']);
    expect(textOf(document, 'SourcePrefix')).toBe('a&/');
    expect(textOf(document, 'DestinationPrefix')).toBe('b/<');
    expect(namesIn(await move('single', 'other'))).toEqual(['MoveObject', 'MoveCount']);
  });

  test('MoveObject: one for each object that was renamed, with its SourceKey and DestinationKey', async () => {
    await put('a/1', 'a/2', 'a&3', 'b');
    const document = await move('a', 'c%20', PREFIX);
    expect(entriesOf(document).map(fieldsOf)).toEqual(
      ['&3', '/1', '/2'].map((name) => [
        ['SourceKey', `a${name}`],
        ['DestinationKey', `c ${name}`],
      ]),
    );
  });

  test('the version ID of each, where the bucket has versions: VersionId, newest first', async () => {
    const [before] = await put('a/1');
    expect(before).toBe('undefined');
    await setVersioning(api, bucket, 'Enabled');
    const [newest, other] = await put('a/1', 'a/2');
    const document = await move('a/', 'b/', PREFIX);
    expect(entriesOf(document).map((entry) => entry.children.map(({ text }) => text))).toEqual([
      ['a/1', 'b/1', newest],
      ['a/1', 'b/1', 'null'],
      ['a/2', 'b/2', other],
    ]);
    expect(entriesOf(document).map((entry) => entry.children[2]?.name)).toEqual(Array(3).fill('VersionId'));
  });

  test('the error of an object that was not: Error with Code and Message, of one and in a prefix', async () => {
    await put('a/1', 'a/2', 'b/1');
    const [refused] = entriesOf(await move('a/1', 'b/1', {}, 409));
    const entries = entriesOf(await move('a/', 'b/', PREFIX));
    expect(entries.map((entry) => childrenOf(entry, 'Error').length)).toEqual([1, 0]);
    for (const entry of [refused, entries[0]]) {
      expect(entry && fieldsOf(entry).slice(0, 2)).toEqual([
        ['SourceKey', 'a/1'],
        ['DestinationKey', 'b/1'],
      ]);
      const [error] = entry === undefined ? [] : childrenOf(entry, 'Error');
      expect(error && fieldsOf(error)).toEqual([
        ['Code', 'ObjectAlreadyExists'],
        ['Message', expect.stringMatching(/\w/)],
      ]);
    }
  });

  test('MoveCount: an integer, of those that moved and not of errors, 0 where nothing did; it stands last', async () => {
    await put('a/1', 'a/2', 'a/3', 'b/1');
    const documents = [
      await move('a/1', 'b/1', {}, 409),
      await move('a/', 'b/', PREFIX),
      await move('a/', 'b/', { ...PREFIX, overwrite: 'true' }),
      await move('a/', 'b/', PREFIX),
    ];
    expect(documents.map((document) => document.children.at(-1)?.text)).toEqual(['0', '2', '1', '0']);
    expect(documents.map((document) => namesIn(document).at(-1))).toEqual(Array(4).fill('MoveCount'));
  });

  test('in quiet mode only entries that had errors are listed, and all that moved is counted', async () => {
    await put('a/1', 'a/2', 'a/3', 'b/2', 'single');
    const document = await move('a/', 'b/', { ...PREFIX, 'x-svc-quiet': 'true' });
    expect(entriesOf(document).map((entry) => textOf(entry, 'SourceKey'))).toEqual(['a/2']);
    expect(textOf(document, 'MoveCount')).toBe('2');
    expect(namesIn(await move('single', 'other', { 'x-svc-quiet': 'true' }))).toEqual(['MoveCount']);
  });
});

test('service 4.2: Destination is required; Overwrite, X-Svc-Quiet and X-Svc-Prefix are false where they are absent', async () => {
  await put('a', 'ab', 'b');
  const path = pathOf(bucket, 'a');
  expectStatus(await api.send({ method: 'MOVE', path }), 400);
  await move('a', 'b', {}, 409);
  expect(await api.keysOf(bucket)).toEqual(['a', 'ab', 'b']);
  const document = await move('a', 'c');
  expect(entriesOf(document).map(fieldsOf)).toEqual([
    [
      ['SourceKey', 'a'],
      ['DestinationKey', 'c'],
    ],
  ]);
  expect(await api.keysOf(bucket)).toEqual(['ab', 'b', 'c']);
});
