// The wait for a killed node until its lease has ended; a running node is reported at once.
import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import type { Member } from '../../ports/members.ts';
import { LEASE_WAIT_MAX_MS, takesConnections, waitUntilGone } from './wait-until-gone.ts';

const memberOf = (letter: string): Member => ({
  nodeId: letter.repeat(32),
  role: 'metadata',
  address: `${letter}:1`,
  zone: '',
  version: '0',
  disks: [{ diskId: letter.toUpperCase().repeat(32), capacityBytes: 0 }],
});
const ALL = ['a', 'b'].map(memberOf);

/** `goneAtMs`: when the lease of `b` ends. */
async function wait(names: string[], { goneAtMs = 0, reached = [] as string[] }) {
  const clock = createManualClock(0);
  const printed: string[] = [];
  let members: readonly Member[] | undefined;
  void waitUntilGone(
    {
      clock,
      print: (line) => void printed.push(line),
      readMembers: async () => (clock.monotonicMs() < goneAtMs ? ALL : ALL.slice(0, 1)),
      isReached: async (address) => reached.includes(address),
    },
    names,
  ).then((found) => {
    members = found;
  });
  while (members === undefined) {
    await new Promise(setImmediate);
    if (members === undefined) clock.advance(100);
  }
  return { members, printed, tookMs: clock.monotonicMs() };
}

test('a killed node is gone when its lease has ended', async () => {
  const { members, printed, tookMs } = await wait(['bbbb'], { goneAtMs: 8000 });
  expect(members).toEqual(ALL.slice(0, 1));
  expect(tookMs).toBeLessThan(9000);
  expect(printed).toEqual([
    'bbbbbbbb at b:1 does not answer: waiting until its lease in etcd has ended, some seconds.',
  ]);
});

test('a killed node is also known by the ids of its disks', async () => {
  expect((await wait(['BBBB'], { goneAtMs: 8000 })).members).toHaveLength(1);
});

test('a node that runs is not waited for', async () => {
  const { members, printed, tookMs } = await wait(['bbbb'], { goneAtMs: 1e9, reached: ['b:1'] });
  expect([members, printed, tookMs < 500]).toEqual([ALL, [], true]);
});

test('a listed node that does not answer is waited for no longer than its lease', async () => {
  const { members, tookMs } = await wait(['bbbb'], { goneAtMs: 1e9 });
  expect(members).toEqual(ALL);
  expect(tookMs).toBeLessThan(LEASE_WAIT_MAX_MS + 1000);
});

test('a closed port does not accept connections', async () => {
  expect(await takesConnections('127.0.0.1:1')).toBe(false);
});
