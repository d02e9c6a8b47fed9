import { expect, test } from 'vitest';
import { fromUtf8, utf8 } from '../../base/bytes/bytes.ts';
import type { KvPut } from '../../ports/kv.ts';
import { createOverlayBudget, Overlay } from './overlay.ts';

const put = (key: string, value: string | null, column = 'rows'): KvPut => ({
  column,
  key: utf8(key),
  value: value === null ? null : utf8(value),
});
const all = { column: 'rows', gte: utf8('a'), lt: utf8('z') };

test('the newest pending entry wins, and stays when an older one is removed', () => {
  const overlay = new Overlay(createOverlayBudget());
  const first = [put('k', '1'), put('l', '1')];
  const second = [put('k', '2')];
  overlay.add(1, first);
  overlay.add(2, second);
  expect(overlay.get('rows', utf8('k'))).toMatchObject({ value: utf8('2') });
  overlay.remove(1, first);
  expect(overlay.get('rows', utf8('k'))).toMatchObject({ value: utf8('2') });
  expect(overlay.get('rows', utf8('l'))).toBeUndefined();
  overlay.remove(2, second);
  expect(overlay.get('rows', utf8('k'))).toBeUndefined();
});

test('a pending deletion is not the same as no pending row', () => {
  const overlay = new Overlay(createOverlayBudget());
  overlay.add(1, [put('k', null)]);
  expect(overlay.get('rows', utf8('k'))).toMatchObject({ value: null });
  expect(overlay.get('rows', utf8('l'))).toBeUndefined();
});

test('columns are separate, ranges ascend and include deletions', () => {
  const overlay = new Overlay(createOverlayBudget());
  overlay.add(1, [put('c', '3'), put('a', '1'), put('b', null), put('b', 'body', 'bodies')]);
  const shown = overlay.between(all).map(({ key, value }) => `${fromUtf8(key)}=${value && fromUtf8(value)}`);
  expect(shown).toEqual(['a=1', 'b=null', 'c=3']);
  expect(overlay.between({ ...all, column: 'bodies' })).toHaveLength(1);
});

test('its bytes count together with those of other overlays, and are returned', () => {
  const budget = createOverlayBudget();
  const overlays = [new Overlay(budget), new Overlay(budget)];
  const rows = [put('k', 'x'.repeat(1000)), put('k', 'y'.repeat(1000))];
  for (const overlay of overlays) overlay.add(1, rows);
  expect(budget.usedBytes).toBeGreaterThan(4000);
  for (const overlay of overlays) overlay.remove(1, rows);
  expect(budget.usedBytes).toBe(0);
});
