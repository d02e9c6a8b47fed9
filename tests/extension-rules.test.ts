// Each rule of the contract (docs/internals/service.md) for what no other store has (rename, compose, append, forced
// deletion, copies as links) has a test that names it, by its section and words of it, in a file that runs against the
// embedded form and against a cluster. The numbered rules are those of the page; the words stand in its sections.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CHOSEN_FOR_CLUSTERS } from './support/run/chosen-for-clusters.ts';
import { titlesOf } from './tidy/titles.ts';

const page = readFileSync(join(import.meta.dirname, '../docs/internals/service.md'), 'utf8');

/** The text of a section of the page, without those below it. */
function sectionOf(number: string): string {
  const [, text = ''] = page.split(new RegExp(`^###? ${number.replace('.', '[.]')}[. ].*$`, 'm'));
  return text.split(/^###? /m)[0] ?? '';
}

/** `MOVE rule 1` and so on, as section 4.2 has them. */
const numberedRules = [...sectionOf('4.2').matchAll(/^- \*\*((?:MOVE|compose|append) rule \d+)\.\*\*/gm)].map(
  ([, name = '']) => name,
);

const WORDS: Readonly<Record<string, readonly string[]>> = {
  '2.6': [
    ...['SourcePrefix', 'DestinationPrefix', 'MoveObject', 'SourceKey', 'DestinationKey'],
    ...['version ID', 'error', 'MoveCount', 'quiet mode'],
  ],
  '2.7': ['Component', 'Key', 'version ID', 'latest version'],
  '4.1': ['force_delete', 'MOVE', 'Destination'],
  '4.2': ['Destination', 'Overwrite', 'X-Svc-Quiet', 'X-Svc-Prefix', 'text/xml', 'Content-Length', 'copy'],
  '4.5': ['name in use', 's3:CreateBucket'],
  '7.1': ['destination in use'],
  '7.2': ['entries'],
  '7.4': ['name in use'],
  '8': ['32 original data objects', '1023 appends', '5 TB', '5 GB'],
};

/** `service 4.2, 8`: the sections that a title says it is about. */
function sectionsIn(title: string): string[] {
  return [...title.matchAll(/\bservice ((?:[\d.]+\d|\d)(?:, (?:[\d.]+\d|\d))*)/g)].flatMap(([, list = '']) =>
    list.split(', '),
  );
}

const names = (title: string, words: string) => new RegExp(`(?<![\\w-])${words}(?![\\w-])`).test(title);

const titles = CHOSEN_FOR_CLUSTERS.flatMap((name) => {
  const path = join(import.meta.dirname, `${name}.test.ts`);
  return titlesOf(path, readFileSync(path, 'utf8'));
});

describe.each(Object.keys(WORDS))('service %s', (section) => {
  const rules = section === '4.2' ? numberedRules : [];
  test.each([...(WORDS[section] ?? []), ...rules])('%s', (words) => {
    const naming = titles.filter((title) => sectionsIn(title).includes(section) && names(title, words));
    expect(naming).not.toEqual([]);
  });

  test('has these words', () => {
    const text = sectionOf(section).replace(/\s+/g, ' ');
    expect((WORDS[section] ?? []).filter((words) => !names(text, words))).toEqual([]);
  });
});

test('the page has numbered rules', () => {
  expect(numberedRules).toHaveLength(5 + 7 + 4);
});

test('titles are told with their groups; what does not run against a cluster has none', () => {
  const text = `
    describe('service 4.2, 8: a', () => {
      test('b', async () => {});
      describe.each([1])('c %i', () => test.each([['x', 1]] as const)(\`d \${e} f\`, () => {}));
      ownServerTest('g', () => {});
      test.skip('h', () => {});
    });`;
  const group = 'service 4.2, 8: a';
  expect(titlesOf('a.test.ts', text)).toEqual([`${group}: b`, `${group}: c %i: d … f`]);
  expect(sectionsIn(`x, ${group}`)).toEqual(['4.2', '8']);
  expect(names('32 objects, s3:CreateBuckets', 's3:CreateBucket')).toBe(false);
});
