// What every JobLocksPort promises (src/ports/coordination.ts).
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { COORDINATORS, SHORT_LEASE_MS, useCluster } from '../support/coordination/coordinators.ts';

describe.each(COORDINATORS)('%s', (_name, openAll) => {
  const cluster = useCluster(openAll);
  let ending: AbortController;

  beforeEach(() => {
    ending = new AbortController();
  });
  afterEach(() => {
    ending.abort();
  });

  const locksOf = (holder: string) => cluster.connect(holder).jobLocks;

  test('one process holds it, the others wait their turn, and tokens rise', async () => {
    const first = await locksOf('a').acquire('scrub', ending.signal);
    expect(await locksOf('x').holder('scrub')).toEqual({ holder: 'a', token: first.token });
    const order: string[] = [];
    const tokens = [first.token];
    const turns = ['b', 'c', 'd'].map(async (name) => {
      const lock = await locksOf(name).acquire('scrub', ending.signal);
      // Nobody else may be in here meanwhile.
      order.push(`${name} in`);
      tokens.push(lock.token);
      await locksOf('x').holder('scrub');
      order.push(`${name} out`);
      await lock.release();
    });
    const other = await locksOf('b').acquire('balance', ending.signal);
    expect(order).toEqual([]);
    await other.release();
    await first.release();
    await Promise.all(turns);
    const names = order.filter((_, index) => index % 2 === 0).map((entry) => entry.split(' ')[0] ?? '');
    expect(order).toEqual(names.flatMap((name) => [`${name} in`, `${name} out`]));
    expect(names.sort()).toEqual(['b', 'c', 'd']);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(await locksOf('x').holder('scrub')).toBeUndefined();
  });

  test('a lock is held beyond its lease, and not lost', async () => {
    const lock = await locksOf('a').acquire('scrub', ending.signal);
    await new Promise((resolve) => setTimeout(resolve, 2 * SHORT_LEASE_MS));
    expect(lock.lost.aborted).toBe(false);
    expect(await locksOf('x').holder('scrub')).toEqual({ holder: 'a', token: lock.token });
    await lock.release();
    await lock.release();
    expect(lock.lost.aborted).toBe(false);
  });

  test('a cancelled wait rejects with its reason, and delays nobody', async () => {
    const first = await locksOf('a').acquire('scrub', ending.signal);
    const leaving = new AbortController();
    const left = locksOf('b').acquire('scrub', leaving.signal);
    const stays = locksOf('c').acquire('scrub', ending.signal);
    leaving.abort(new Error('no time'));
    await expect(left).rejects.toThrow('no time');
    await first.release();
    const next = await stays;
    expect((await locksOf('x').holder('scrub'))?.holder).toBe('c');
    await next.release();
  });

  test('a name that would match other keys is refused', async () => {
    for (const name of ['', 'a/b', '..', 'A'])
      await expect(locksOf('a').acquire(name, ending.signal)).rejects.toThrow('no name of a job');
  });

  test('a lock that was abandoned before its turn never begins', async () => {
    const aborted = AbortSignal.abort(new Error('too late'));
    await expect(locksOf('a').acquire('scrub', aborted)).rejects.toThrow('too late');
    expect(await locksOf('x').holder('scrub')).toBeUndefined();
  });

  test('one process may hold several', async () => {
    const locks = locksOf('a');
    const [one, two] = await Promise.all([
      locks.acquire('one', ending.signal),
      locks.acquire('two', ending.signal),
    ]);
    const lost = once(two.lost, 'abort');
    await one.release();
    expect(await Promise.race([lost, locks.holder('two')])).toMatchObject({ holder: 'a' });
    await two.release();
  });
});
