// The placement map after etcd has lost it, or its last versions (place-disks.ts).
import { describe, expect, test } from 'vitest';
import { openPlacer } from '../../tests/support/disks/disk-placer.ts';
import { placedDisks } from '../../tests/support/disks/placed-disks.ts';
import { changePlacement, makePlacement } from '../chunks/placement/placement.ts';
import { withLeave } from '../chunks/placement/placement-changes.ts';

describe('etcd has lost', () => {
  const disks = placedDisks({ zones: 4 });
  const old = makePlacement({ disks, copies: 3 });
  const newest = {
    ...changePlacement(old, { disks: withLeave(disks, new Set([disks[0]?.id ?? '']), 'draining') }),
    version: 7,
  };

  test('the map: the newest known one is written back, and no first map is made', async () => {
    const placer = openPlacer({ known: newest });
    const map = await placer.after(disks);
    expect(map).toEqual({ ...newest, version: 8 });
    expect(placer.events('placement-restored')).toBe(1);
    expect(placer.events('placement-made')).toBe(0);
  });

  test('the last versions: the newest known map is written over an older one', async () => {
    const placer = openPlacer();
    await placer.write(old);
    placer.knows(newest);
    expect(await placer.after(disks)).toEqual({ ...newest, version: 8 });
  });

  test('the map, and no process knows it: a first map waits, and gets a version above the announced one', async () => {
    const placer = openPlacer();
    placer.announce(7);
    placer.serve(disks);
    await placer.pass(40_000);
    expect(await placer.read()).toBeUndefined();
    expect(await placer.after(disks, 40_000)).toMatchObject({ version: 8, auditFrom: 8, disks });
  });

  test('the map, and another process knows it: no first map is made before that process writes it back', async () => {
    const placer = openPlacer();
    placer.announce(7);
    const waiting = placer.alsoRuns(newest);
    expect(await placer.after(disks, 30_000)).toEqual({ ...newest, version: 8 });
    expect(placer.events('placement-made')).toBe(0);
    waiting.abort();
  });

  test('the map, and a newer one than is known here was announced: the process that knows it writes it back', async () => {
    const placer = openPlacer({ known: { ...old, version: 5 } });
    await placer.write(old);
    placer.announce(7);
    expect((await placer.after(disks, 30_000)).version).toBe(1);
    await placer.write({ ...newest, version: 8 });
    expect(await placer.after(disks)).toEqual({ ...newest, version: 8 });
    expect(placer.events('placement-restored') + placer.events('placement-unknown-outdone')).toBe(0);
  });
});

test('in an etcd that does not have this cluster, nothing is written', async () => {
  const disks = placedDisks({ zones: 4 });
  const known = { ...makePlacement({ disks, copies: 3 }), version: 7 };
  for (const placer of [openPlacer({ known }), openPlacer()]) {
    placer.meets('unknown');
    placer.serve(disks);
    await placer.pass(40_000);
    expect(await placer.read()).toBeUndefined();
    placer.meets('rebuilt');
    expect(await placer.after(disks, 40_000)).toMatchObject({ disks });
    placer.stop();
  }
});

test('after etcd has lost the map, a process that is not the placer writes it back', async () => {
  const disks = placedDisks({ zones: 4 });
  const placer = openPlacer();
  const first = await placer.after(disks);
  const waiting = placer.alsoRuns({ ...first, version: 5 });
  expect((await placer.after(disks, 25_000)).version).toBe(6);
  waiting.abort();
});

test('an announced map that no process knows is replaced after a while, and everything is audited', async () => {
  const disks = placedDisks({ zones: 4 });
  for (const version of [1, 5]) {
    const placer = openPlacer();
    placer.knows({ ...(await placer.after(disks)), version });
    placer.announce(7);
    expect((await placer.after(disks, 40_000)).version).toBe(1);
    expect(await placer.after(disks, 40_000)).toMatchObject({ version: 8, auditFrom: 8 });
    placer.stop();
  }
});
