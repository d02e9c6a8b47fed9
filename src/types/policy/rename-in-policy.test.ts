// Bucket policies after a rename: resources follow, nothing else does.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { withinOneTurn } from '../../../tests/support/run/loop-watch.ts';
import { renameInPolicy, renamePattern } from './rename-in-policy.ts';

const OLD = { from: 'old', to: 'new-name' };
const arn = (rest: string) => `arn:aws:s3:::${rest}`;

test.each([
  ['old', ['new-name']],
  ['old/*', ['new-name/*']],
  ['old/a?c/${aws:username}/*', ['new-name/a?c/${aws:username}/*']],
  ['old*', ['new-name*']],
  ['old?x', ['new-name?x']],
  ['o?d/x', ['new-name/x']],
  ['ol*', ['new-name*']],
  ['*d/x', ['new-name*d/x', 'new-name/x']],
  // These fit the new name as they fit the old one.
  ['*', ['*']],
  ['*/x', ['*/x']],
  ['???*', ['???*']],
  // These are of other buckets, or of whichever a variable says.
  ['older/*', ['older/*']],
  ['${aws:username}/*', ['${aws:username}/*']],
])('%s', (given, wanted) => {
  expect(renamePattern(arn(given), OLD)).toEqual(wanted.map(arn));
});

test('a lone asterisk stays', () => {
  expect(renamePattern('*', OLD)).toEqual(['*']);
});

const fits = (pattern: string, text: string) => {
  const source = pattern
    .replace(/[.+^${}()|[\]\\/]/g, '\\$&')
    .replace(/\*/g, '.*')
    .replace(/\?/g, '.');
  return new RegExp(`^${source}$`, 's').test(text);
};

test('what fitted below the old name fits below the new one, and nothing else does', () => {
  const piece = fc.constantFrom('o', 'l', 'd', '*', '?', '/', 'x', 'old', 'old/', 'new');
  const pattern = fc.array(piece, { maxLength: 6 }).map((pieces) => arn(pieces.join('')));
  const rest = fc.array(fc.constantFrom('o', 'l', 'd', '/', 'x'), { maxLength: 5 });
  const behind = fc.oneof(
    fc.constant(''),
    rest.map((parts) => `/${parts.join('')}`),
  );
  fc.assert(
    fc.property(pattern, behind, fc.constantFrom('new', 'lo', 'olds'), (given, key, to) => {
      const patterns = renamePattern(given, { from: 'old', to });
      // A pattern that says nothing of the old bucket may happen to name the new one: policies cannot hold it.
      fc.pre(
        fits(given, arn('old')) || fits(given, arn('old/')) || patterns.length > 1 || patterns[0] !== given,
      );
      expect(patterns.some((each) => fits(each, arn(to + key)))).toBe(fits(given, arn(`old${key}`)));
    }),
    { numRuns: amountOf({ short: 400, long: 2000 }) },
  );
});

test('only resources of statements change, and every other byte stays', () => {
  const text = `{ "Version":"2012-10-17",\t"Id" : "arn:aws:s3:::old",
    "Statement":[{"Sid":"arn:aws:s3:::old","Effect":"Allow","Principal":"*","Action":"s3:*",
      "Re\\u0073ource": [ "arn:aws:s3:::old" , "arn:aws:s3:::old\\/\\u00e9*","arn:aws:s3:::*d/x" ],
      "Condition":{"StringEquals":{"Resource":"arn:aws:s3:::old","aws:SourceArn":["arn:aws:s3:::old"]}}},
     {"NotResource":"arn:aws:s3:::old/\\"quoted\\" }","Effect":"Deny"}] }`;
  const wanted = text
    .replace(
      '[ "arn:aws:s3:::old" , "arn:aws:s3:::old\\/\\u00e9*","arn:aws:s3:::*d/x" ]',
      () =>
        '[ "arn:aws:s3:::new-name" , "arn:aws:s3:::new-name/é*","arn:aws:s3:::new-name*d/x","arn:aws:s3:::new-name/x" ]',
    )
    .replace('"NotResource":"arn:aws:s3:::old/', '"NotResource":"arn:aws:s3:::new-name/');
  expect(renameInPolicy(text, OLD)).toBe(wanted);
  expect(JSON.parse(wanted)).toBeTruthy();
});

test('a single statement, and a single pattern that becomes several', () => {
  const text = '{"Statement":{"Resource":"arn:aws:s3:::*d/x"}}';
  expect(renameInPolicy(text, OLD)).toBe(
    '{"Statement":{"Resource":["arn:aws:s3:::new-name*d/x","arn:aws:s3:::new-name/x"]}}',
  );
});

test('a policy that names its bucket by asterisks alone stays byte for byte', () => {
  const text = '{ "Statement" : [ { "Resource" : [ "*" , "arn:aws:s3:::*/x" ] } ] }\n';
  expect(renameInPolicy(text, OLD)).toBe(text);
});

test.each(['*', '*?', '?*', '*a', '?', 'a*'])(
  'a policy of thousands of %s does not keep the thread',
  (piece) => {
    const text = JSON.stringify({ Statement: [{ Resource: arn(piece.repeat(18_000 / piece.length)) }] });
    const names = { from: 'a'.repeat(63), to: `${'a'.repeat(62)}b` };
    expect(withinOneTurn(() => renameInPolicy(text, names))?.length).toBeGreaterThan(20);
  },
);

const LONG = 'a'.repeat(63);
const listOf = (count: number, pattern: (at: number) => string) =>
  JSON.stringify({ Statement: [{ Resource: Array.from({ length: count }, (_, at) => pattern(at)) }] });

test.each([
  ['one pattern becomes many', 195, (at: number) => `*${'?'.repeat(95)}${at}`, 'short'],
  ['one long pattern becomes many', 1, () => arn(`*${'?a'.repeat(9000)}`), 'a'.repeat(9)],
  ['its new name is longer', 200, (at: number) => arn(`aaa/${at}${'x'.repeat(60)}`), LONG],
  ['many places are to be looked at', 250, () => `arn:*${'?'.repeat(74)}`, `${LONG.slice(1)}b`],
  ['many letters are to be looked at', 3000, () => 'a*b', `${LONG.slice(1)}b`],
])('a policy that would become too long is not rewritten, and does not keep the thread: %s', (...row) => {
  const [, count, pattern, to] = row;
  const from = to === LONG ? 'aaa' : LONG;
  const text = listOf(count, pattern);
  expect(text.length).toBeLessThan(21_000);
  expect(withinOneTurn(() => renameInPolicy(text, { from, to })) ?? 'too long').toBe('too long');
});

test('a policy of any length that a rename leaves as long is rewritten', () => {
  const [from, to] = [LONG, `${LONG.slice(1)}b`];
  const text = listOf(200, (at) => arn(`${from}/${at}`)).replaceAll(',', ' , ');
  expect(renameInPolicy(text, { from, to })).toBe(text.replaceAll(from, to));
  // White space does not count.
  const wide = text.replaceAll(',', `,${' '.repeat(200)}`);
  expect(renameInPolicy(wide, { from, to })).toBe(wide.replaceAll(from, to));
});

test('several asterisks are as one', () => {
  expect(renamePattern(arn('o**ld***'), OLD)).toEqual(renamePattern(arn('o*ld*'), OLD));
});
