import { expect, test } from 'vitest';
import { nextTurn } from '../../../base/async/next-turn.ts';
import { AppError } from '../../../types/errors.ts';
import { MultipartReader } from './multipart-reader.ts';

const MALFORMED = { code: 'MalformedPOSTRequest' };
const ALL = { bytesMax: 1_000_000, refuse: () => new AppError('MaxPostPreDataLengthExceeded') };

/** Gives the body in pieces that end at the given places. */
function readerOf(
  body: string | Buffer,
  options: { boundary?: string; cuts?: number[]; bytesMax?: number } = {},
) {
  const { boundary = 'B', cuts = [], bytesMax = ALL.bytesMax } = options;
  const bytes = Buffer.from(body);
  const ends = [...cuts, bytes.length];
  let from = 0;
  const read = async () => {
    const end = ends.shift();
    if (end === undefined) return undefined;
    const piece = bytes.subarray(from, end);
    from = end;
    return piece;
  };
  return new MultipartReader({ read, turn: nextTurn }, boundary, { ...ALL, bytesMax });
}

async function partsOf(reader: MultipartReader): Promise<[string, string | undefined, string][]> {
  const parts: [string, string | undefined, string][] = [];
  for (let head = await reader.next(); head !== undefined; head = await reader.next()) {
    parts.push([head.name, head.fileName, await reader.text()]);
  }
  await reader.finish();
  return parts;
}

const part = (name: string, content: string, rest = '') =>
  `--B\r\nContent-Disposition: form-data; name="${name}"${rest}\r\n\r\n${content}\r\n`;
/** Contents that look like the delimiter, or like its beginning. */
const CONTENTS = [
  '',
  '\r',
  '\r\n',
  '\r\n-',
  '\r\n--',
  '\r\n--Bx',
  '\r\r\n--C\r\n',
  '--B',
  '\r\n--B-x',
  '\r\n--B\rx',
  'é\0',
];
const BODY = `${CONTENTS.map((content, at) => part(`f${at}`, content)).join('')}${part('file', 'x', '; filename="n"')}--B--\r\nbehind`;
const PARTS = [
  ...CONTENTS.map((content, at) => [`f${at}`, undefined, Buffer.from(content).toString('latin1')]),
  ['file', 'n', 'x'],
];

test('thousands of parts that one read gives let others have their turns', async () => {
  const reader = readerOf(`${part('a', '').repeat(4000)}--B--`);
  let turns = 0;
  let hasEnded = false;
  const countTurns = () => {
    turns++;
    if (!hasEnded) setImmediate(countTurns);
  };
  setImmediate(countTurns);
  expect(await partsOf(reader)).toHaveLength(4000);
  hasEnded = true;
  // Of each part there are its head, an empty line, and the end of the delimiter before it.
  expect(turns).toBeGreaterThanOrEqual((3 * 4000) / 200 - 1);
});

test('a body is the same wherever it is cut in two', async () => {
  const length = Buffer.byteLength(BODY);
  for (let cut = 0; cut <= length; cut++) {
    expect(await partsOf(readerOf(BODY, { cuts: [cut] })), `cut at ${cut}`).toEqual(PARTS);
  }
});

test('a body is the same byte by byte, and in pieces of each small size', async () => {
  const length = Buffer.byteLength(BODY);
  for (const size of [1, 2, 3, 5, 7, 11]) {
    const cuts = Array.from({ length: Math.floor(length / size) }, (_, at) => at * size);
    expect(await partsOf(readerOf(BODY, { cuts })), `pieces of ${size}`).toEqual(PARTS);
  }
});

test('a body that ends anywhere before its last boundary is malformed', async () => {
  const length = BODY.indexOf('--B--\r\n') + '--B-'.length;
  for (let end = 0; end <= length; end++) {
    const cutShort = BODY.slice(0, end);
    await expect(partsOf(readerOf(cutShort)), `ends at ${end}`).rejects.toMatchObject(MALFORMED);
  }
});

test('what stands before the first boundary is passed over, and blanks behind a boundary are, too', async () => {
  const body = `preamble\r\n${part('a', '1').replace('--B\r\n', '--B \t\r\n')}--B--`;
  expect(await partsOf(readerOf(body))).toEqual([['a', undefined, '1']]);
});

test.each([
  ['a part without a head', '--B\r\n\r\nx\r\n--B--'],
  ['a line of a head without a colon', '--B\r\nx\r\n\r\nx\r\n--B--'],
  ['a disposition that is no form’s', '--B\r\nContent-Disposition: file; name="a"\r\n\r\nx\r\n--B--'],
  ['a part without a name', '--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--'],
  ['something behind a boundary', '--B x\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--B--'],
  ['lines that end in LF alone', '--B\nContent-Disposition: form-data; name="a"\n\nx\n--B--'],
  ['nothing', ''],
])('%s is malformed', async (_what, body) => {
  await expect(partsOf(readerOf(body))).rejects.toMatchObject(MALFORMED);
});

test.each([
  ['a field', part('a', 'x'.repeat(2000))],
  ['a name', part('x'.repeat(2000), 'a')],
  ['a line without an end', '--B\r\nContent-Disposition: form-data; name="a'.padEnd(2000, 'x')],
  ['what stands before the first boundary', 'x'.repeat(2000)],
  ['blanks behind a boundary', '--B'.padEnd(2000, ' ')],
  ['many empty fields', part('a', '').repeat(40)],
])('%s beyond the allowance is refused', async (_what, body) => {
  const cuts = Array.from({ length: Math.floor(body.length / 100) }, (_, at) => at * 100);
  const refused = expect(partsOf(readerOf(body, { bytesMax: 1000, cuts }))).rejects;
  await refused.toMatchObject({ code: 'MaxPostPreDataLengthExceeded' });
});

test('the content of a file is bounded by nobody here, and comes as it was read', async () => {
  const reader = readerOf(`${part('file', 'x'.repeat(5000))}--B--`, { bytesMax: 100, cuts: [1000, 2000] });
  await reader.next();
  const pieces: string[] = [];
  for await (const piece of reader.content()) pieces.push(piece.toString());
  expect(pieces.length).toBe(3);
  expect(pieces.join('')).toBe('x'.repeat(5000));
  expect(await reader.next()).toBeUndefined();
});

test('a head behind the file has the bound of those before it, and no more of it is read', async () => {
  const start = `${part('file', '', '; filename="n"')}--B\r\n`;
  const head = 'a: b\r\n'.repeat(100).concat('x'.repeat(10_000));
  for (const tail of [head, 'x'.repeat(10_000), ' '.repeat(10_000)]) {
    const body = Buffer.from(`${start}${tail}`);
    let readBytes = 0;
    const read = async () => (readBytes < body.length ? body.subarray(readBytes, ++readBytes) : undefined);
    const reader = new MultipartReader({ read, turn: nextTurn }, 'B', { ...ALL, bytesMax: 1000 });
    await reader.next();
    reader.allow({ bytesMax: 1_000_000, refuse: () => new AppError('MalformedPOSTRequest') });
    await expect(reader.next()).rejects.toMatchObject({ code: 'MaxPostPreDataLengthExceeded' });
    expect(readBytes).toBeLessThanOrEqual(start.length + 1001);
  }
});

test('a line that comes byte by byte is read in time that grows with its length', async () => {
  const name = 'x'.repeat(200_000);
  const body = Buffer.from(`${part(name, '')}--B--`);
  let readBytes = 0;
  const read = async () => {
    const from = readBytes;
    readBytes = from === 0 ? 150_000 : from + 1;
    return from < body.length ? body.subarray(from, readBytes) : undefined;
  };
  const reader = new MultipartReader({ read, turn: nextTurn }, 'B', ALL);
  const before = process.cpuUsage();
  expect((await reader.next())?.name).toBe(name);
  // About 50 ms; by copying or searching all that has come at each byte it would be a hundred times as much.
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(1000);
});

test.each([
  ['CRs alone', '\r'],
  ['beginnings of the delimiter', '\r\n--aaaaaaaa'],
  ['all of it but its last character', `\r\n--${'a'.repeat(69)}`],
  ['the boundary without a line before it', 'a'],
])('a file of %s is read in time that grows with its length', async (_what, unit) => {
  const content = unit.repeat(Math.ceil(4_000_000 / unit.length));
  const head = `--${'a'.repeat(70)}\r\nContent-Disposition: form-data; name="file"\r\n\r\n`;
  const body = Buffer.from(`${head}${content}\r\n--${'a'.repeat(70)}--`);
  const cuts = Array.from({ length: Math.floor(body.length / 65_536) }, (_, at) => at * 65_536);
  const reader = readerOf(body, { boundary: 'a'.repeat(70), cuts });
  await reader.next();
  let sizeBytes = 0;
  const before = process.cpuUsage();
  for await (const piece of reader.content()) sizeBytes += piece.length;
  const { user } = process.cpuUsage(before);
  expect(sizeBytes).toBe(content.length);
  // About 50 ms; by looking at each byte again for each of the boundary it would be 70 times as much.
  expect(user / 1000).toBeLessThan(1500);
});
