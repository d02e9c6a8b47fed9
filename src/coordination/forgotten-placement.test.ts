// What becomes of the placement map when etcd has lost it, or the last ones of it (place-disks.ts).
import { describe, expect, test } from 'vitest';
import { openPlacer } from '../../tests/support/disk-placer.ts';
import { placedDisks } from '../../tests/support/placed-disks.ts';
import { changePlacement, makePlacement } from '../chunks/placement/placement.ts';
import { withLeave } from '../chunks/placement/placement-changes.ts';

describe('etcd has forgotten', () => {
  const disks = placedDisks({ zones: 4 });
  const old = makePlacement({ disks, copies: 3 });
  const newest = {
    ...changePlacement(old, { disks: withLeave(disks, new Set([disks[0]?.id ?? '']), 'draining') }),
    version: 7,
  };

  test('the map: the newest that is known is written back, and no first one made', async () => {
    const placer = openPlacer({ known: newest });
    const map = await placer.after(disks);
    expect(map).toEqual({ ...newest, version: 8 });
    expect(placer.events('placement-restored')).toBe(1);
    expect(placer.events('placement-made')).toBe(0);
  });

  test('the last ones: the newest that is known is written over an older one', async () => {
    const placer = openPlacer();
    await placer.write(old);
    placer.knows(newest);
    expect(await placer.after(disks)).toEqual({ ...newest, version: 8 });
  });

  test('the map, and nobody knows it but who has only heard of it: a first one waits, and outdoes it', async () => {
    const placer = openPlacer();
    placer.hears(7);
    placer.serve(disks);
    await placer.pass(40_000);
    expect(await placer.read()).toBeUndefined();
    expect(await placer.after(disks, 40_000)).toMatchObject({ version: 8, auditFrom: 8, disks });
  });

  test('the map, and another process knows it: no first one is made before that writes it back', async () => {
    const placer = openPlacer();
    placer.hears(7);
    const waiting = placer.alsoRuns(newest);
    expect(await placer.after(disks, 30_000)).toEqual({ ...newest, version: 8 });
    expect(placer.events('placement-made')).toBe(0);
    waiting.abort();
  });

  test('and others have heard of a newer one than is known here: who knows that writes it back', async () => {
    const placer = openPlacer({ known: { ...old, version: 5 } });
    await placer.write(old);
    placer.hears(7);
    expect((await placer.after(disks, 30_000)).version).toBe(1);
    await placer.write({ ...newest, version: 8 });
    expect(await placer.after(disks)).toEqual({ ...newest, version: 8 });
    expect(placer.events('placement-restored') + placer.events('placement-unknown-outdone')).toBe(0);
  });
});

test('etcd has forgotten, and who does not place disks knows: it writes the map back', async () => {
  const disks = placedDisks({ zones: 4 });
  const placer = openPlacer();
  const first = await placer.after(disks);
  const waiting = placer.alsoRuns({ ...first, version: 5 });
  expect((await placer.after(disks, 25_000)).version).toBe(6);
  waiting.abort();
});

test('a map that others have heard of and nobody knows is outdone after a while, and all audited', async () => {
  const disks = placedDisks({ zones: 4 });
  for (const version of [1, 5]) {
    const placer = openPlacer();
    placer.knows({ ...(await placer.after(disks)), version });
    placer.hears(7);
    expect((await placer.after(disks, 40_000)).version).toBe(1);
    expect(await placer.after(disks, 40_000)).toMatchObject({ version: 8, auditFrom: 8 });
    placer.stop();
  }
});
