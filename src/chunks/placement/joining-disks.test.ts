import { describe, expect, test } from 'vitest';
import { LOOKED_MS, openPlacer } from '../../../tests/support/disks/disk-placer.ts';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { must } from '../../base/assert.ts';
import { holdings } from './placement-changes.ts';

test('disks that do not answer get no share, and are logged once', async () => {
  const disks = placedDisks({ zones: 5 });
  const [first, , , , last] = disks.map(({ id }) => id);
  const placer = openPlacer();
  placer.unreached.add(must(first, 'a disk'));
  placer.serve(disks.slice(0, 3));
  await placer.pass(LOOKED_MS);
  expect(await placer.read()).toBeUndefined();
  expect(placer.events('new-disk-not-reached')).toBe(1);
  placer.unreached.clear();
  await placer.after(disks.slice(0, 3));
  placer.unreached.add(must(last, 'a disk'));
  const next = await placer.after(disks);
  expect(next).toMatchObject({ version: 2, disks: disks.slice(0, 4) });
  expect(placer.events('new-disk-not-reached')).toBe(2);
  placer.hasAudited(2);
  placer.unreached.clear();
  const all = await placer.after(disks);
  expect(holdings(all).get(last ?? '')?.ownedCount).toBeGreaterThan(2000);
});

describe('the first map, while disks are being asked', () => {
  const disks = placedDisks({ zones: 5 });
  const ids = disks.map(({ id }) => id);

  test('waits for their answers and contains all of them', async () => {
    const placer = openPlacer();
    for (const id of ids.slice(3)) placer.answersAfterMs.set(id, 3500);
    expect(await placer.after(disks)).toMatchObject({ version: 1, disks });
  });

  test('does not wait for a disk that has failed', async () => {
    const placer = openPlacer();
    placer.unreached.add(must(ids[4], 'a disk'));
    placer.answersAfterMs.set(must(ids[4], 'a disk'), 1500);
    const first = await placer.after(disks, 5000);
    expect(first).toMatchObject({ version: 1, disks: disks.slice(0, 4) });
  });

  test('does not wait for ever, though more silent disks keep coming', async () => {
    const placer = openPlacer();
    for (const id of ids.slice(3)) placer.answersAfterMs.set(id, 3_600_000);
    placer.serve(disks.slice(0, 4));
    await placer.pass(4000);
    expect(await placer.read()).toBeUndefined();
    const first = await placer.after(disks, 5000);
    expect(first).toMatchObject({ version: 1, disks: disks.slice(0, 3) });
  });
});

test('a silent disk does not delay disks that join later', async () => {
  const disks = placedDisks({ zones: 7 });
  const placer = openPlacer();
  const unreached = must(disks[6], 'a disk');
  placer.unreached.add(unreached.id);
  await placer.after(disks.slice(0, 3));
  await placer.after([...disks.slice(0, 3), unreached], 120_000);
  for (const count of [4, 5]) await placer.after([...disks.slice(0, count), unreached], 4000);
  const next = await placer.after([...disks.slice(0, 6), unreached]);
  expect(next).toMatchObject({ version: 2, disks: disks.slice(0, 6) });
});
