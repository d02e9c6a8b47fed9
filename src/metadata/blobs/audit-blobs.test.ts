import { beforeEach, describe, expect, test } from 'vitest';
import { chunkIds, DAY, type HomeWorld, openHomeWorld } from '../../../tests/support/disks/home-world.ts';
import { nameOf } from '../../../tests/support/disks/order-disks.ts';

let home: HomeWorld;
beforeEach(async () => {
  home = await openHomeWorld();
});
const audit = async () => (await home.world.query('get-audit', {})).audit;
const work = () => home.workers.audit.work(new AbortController().signal);
function lose(disk: string, data: Awaited<ReturnType<HomeWorld['newBlob']>>, index = 0): void {
  home.disk(disk).stored.delete(nameOf(chunkIds(data)[index] as never));
}

describe('an audit', () => {
  test('makes a repair entry for each blob that lacks a copy', async () => {
    const lacking = await home.newBlob('k1', 'abc', { chunks: 3 });
    const whole = await home.newBlob('k2', 'abc');
    lose('b', lacking, 1);
    await home.run('audit');
    const { debts } = await home.world.query('list-debts', { limit: 9 });
    expect(debts.map(({ debt }) => debt)).toMatchObject([
      { copies: 2, ranges: [{ from: 1, to: 2, holders: ['a', 'c'] }] },
    ]);
    await home.run('repair');
    expect([home.where(lacking), home.where(whole), await home.debts()]).toEqual([
      ['abc', 'abc', 'abc'],
      ['abc'],
      [],
    ]);
  });

  test('runs after a change of owners, and each so many days', async () => {
    await home.run('audit');
    expect(await audit()).toMatchObject({ isUnderWay: false, ended: { mapVersion: 1 } });
    const beganAtMs = (await audit())?.beganAtMs;
    home.world.clock.advance(6 * DAY);
    await home.world.execute('tick', {});
    await home.run('audit');
    expect((await audit())?.beganAtMs).toBe(beganAtMs);
    home.changeOwners('abd');
    await home.run('audit');
    expect((await audit())?.ended?.mapVersion).toBe(2);
    home.world.clock.advance(7 * DAY);
    await home.world.execute('tick', {});
    await home.run('audit');
    expect(home.world.clock.wallMs() - ((await audit())?.beganAtMs ?? 0)).toBe(0);
  });

  test('begins again when owners change during it', async () => {
    for (let at = 0; at < 3; at++) await home.newBlob(`k${at}`, 'abc');
    await work();
    expect(await audit()).toMatchObject({ isUnderWay: true, mapVersion: 1 });
    home.changeOwners('abd');
    await home.run('audit');
    expect(await home.debts()).toEqual([3, 3, 3]);
    await home.run('repair');
    expect(await home.debts()).toEqual([]);
  });

  test('continues after a restart where it was', async () => {
    for (let at = 0; at < 450; at++) {
      await home.newBlob(`k${at}`, 'abc');
      home.world.clock.advance(1);
    }
    await work();
    await work();
    const { after } = (await audit()) ?? {};
    expect(after).toBeDefined();
    home.disk('a').asked.length = 0;
    home.reopen();
    await home.run('audit');
    expect(await audit()).toMatchObject({ isUnderWay: false });
    expect(home.disk('a').asked.length).toBe(2);
  });

  test('does not continue by a map from before its beginning', async () => {
    await home.newBlob('k', 'abc');
    await home.world.execute('note-audit', { step: 'begin', mapVersion: 5 });
    await home.run('audit');
    expect(await audit()).toMatchObject({ isUnderWay: true, mapVersion: 5 });
    expect(home.disk('a').asked).toEqual([]);
  });

  test('ends even if a disk is silent; that disk is inspected when it returns', async () => {
    await home.run('audit');
    const data = await home.newBlob('k', 'abc');
    lose('c', data);
    home.world.clock.advance(7 * DAY);
    await home.world.execute('tick', {});
    home.disk('c').mood = 'dead';
    await home.run('audit');
    expect([await home.debts(), (await audit())?.isUnderWay]).toEqual([[], false]);
    home.disk('c').mood = 'well';
    home.world.clock.advance(60_000);
    await home.disks.listQuarantined('c', { homes: [0], limit: 1 });
    await home.run('audit');
    expect(await home.debts()).toEqual([2]);
    await home.run('repair');
    expect(home.where(data)).toEqual(['abc']);
  });
});

test('inspects a disk that comes and goes now and then, and at the end', async () => {
  await home.newBlob('k', 'abc');
  await home.run('audit');
  const comeBack = async () => {
    home.disk('c').mood = 'dead';
    await home.disks.listQuarantined('c', { homes: [0], limit: 1 });
    home.disk('c').mood = 'well';
    home.world.clock.advance(10_000);
    await home.disks.listQuarantined('c', { homes: [0], limit: 1 });
    await home.run('audit');
  };
  for (let count = 0; count < 6; count++) await comeBack();
  const looks = () => home.disk('c').asked.filter((what) => what === 'inspect').length;
  expect(looks()).toBe(2);
  home.world.clock.advance(2 * 60_000);
  await home.run('audit');
  expect(looks()).toBe(3);
});

describe('when owners have changed', () => {
  test('data moves: previous owners hold what new ones lack, and drop it afterwards', async () => {
    const data = await home.newBlob('k', 'abc', { chunks: 2 });
    home.changeOwners('abd');
    await home.run('audit', 'repair');
    expect([home.where(data), await home.debts()]).toEqual([['abd', 'abd'], []]);
  });

  test('nothing is lost and nothing left behind when all owners change at once', async () => {
    const data = await home.newBlob('k', 'abc');
    home.changeOwners('de');
    await home.run('audit', 'repair');
    expect(home.where(data)).toEqual(['de']);
  });

  test('a silent owner counts as lacking its copies, so that previous owners may be forgotten', async () => {
    const data = await home.newBlob('k', 'abc');
    home.disk('d').mood = 'dead';
    home.changeOwners('abd');
    await home.run('audit');
    expect((await audit())?.ended?.mapVersion).toBe(2);
    home.changeOwners('abd', { previous: '' });
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['abc'], [3]]);
    home.disk('d').mood = 'well';
    home.world.clock.advance(120_000);
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['abd'], []]);
  });

  test('a disk that joined and fell silent is inspected later', async () => {
    home.changeOwners('a', { previous: '' });
    const data = await home.newBlob('k', 'a', { chunks: 2 });
    await home.run('audit', 'repair');
    // Nobody leaves for it: there are no owners before.
    home.changeOwners('ab');
    home.disk('b').mood = 'dead';
    await home.run('audit', 'repair');
    expect([(await audit())?.isUnderWay, await home.debts()]).toEqual([false, [1]]);
    home.reopen();
    home.disk('b').mood = 'well';
    await home.run('repair');
    expect([home.where(data), await home.debts()]).toEqual([['ab', 'ab'], []]);
  });

  test('a chunk that neither the previous nor the new owner reports gets a repair entry', async () => {
    await home.newBlob('k', 'abc');
    for (const disk of 'cd') home.disk(disk).mood = 'dead';
    home.changeOwners('abd');
    await home.run('audit');
    expect([await home.debts(), (await audit())?.isUnderWay]).toEqual([[2], false]);
  });

  test('a new blob written by the previous map is inspected again, even behind the audit', async () => {
    await home.run('audit');
    home.changeOwners('abd');
    await home.run('audit');
    const late = await home.newBlob('late', 'abc', { mapVersion: 1 });
    await home.run('repair');
    expect([home.where(late), await home.debts()]).toEqual([['abd'], []]);
  });

  test('chunks of a disk that is gone for good are copied', async () => {
    const data = await home.newBlob('k', 'abc');
    home.disk('a').mood = 'dead';
    home.changeOwners('bcd', { without: 'a' });
    await home.run('audit', 'repair');
    expect([home.where(data), await home.debts()]).toEqual([['abcd'], []]);
  });
});
