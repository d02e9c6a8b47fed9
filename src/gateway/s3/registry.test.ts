import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { POLICY_ACTIONS } from '../../types/policy/actions.ts';
import { createMatcher, type MatchRow } from './matcher.ts';
import { OPERATIONS } from './registry.ts';
import { KNOWN_SUB_RESOURCES } from './request/sub-resources.ts';
import { UNSUPPORTED } from './unsupported.ts';

const rows: readonly MatchRow[] = [...OPERATIONS, ...UNSUPPORTED];

test('no two rows tie, and every name occurs once', () => {
  expect(() => createMatcher(rows)).not.toThrow();
  const names = rows.map((row) => row.name);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});

test('operations with a document say how they use it, and no others', () => {
  const takers = OPERATIONS.filter(({ body }) => body === 'xml').map(({ name }) => name);
  const readers = OPERATIONS.filter(({ parseDocument }) => parseDocument !== undefined).map(
    ({ name }) => name,
  );
  expect(readers).toEqual(takers);
});

test('requirements from a document are only of operations that read one', () => {
  const askers = OPERATIONS.filter(({ documentAccess }) => documentAccess !== undefined);
  expect(askers.filter(({ parseDocument }) => parseDocument === undefined)).toEqual([]);
  expect(askers.map(({ name }) => name)).toContain('ComposeObject');
});

test('every sub-resource of a row is on the closed list', () => {
  const parameters = new Set(['list-type', 'id']);
  const terms = rows.flatMap((row) => row.match.query ?? []).map((term) => term.replace(/=.*/, ''));
  expect(terms.filter((term) => !KNOWN_SUB_RESOURCES.has(term) && !parameters.has(term))).toEqual([]);
});

test('the operations use exactly the listed actions', () => {
  const used = new Set<string>();
  for (const file of sources(import.meta.dirname)) {
    for (const [, action] of readFileSync(file, 'utf8').matchAll(/'(s3:[A-Z][A-Za-z]+)'/g))
      used.add(action ?? '');
  }
  expect([...used].sort()).toEqual([...POLICY_ACTIONS].sort());
});

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => join(folder, name));
}
