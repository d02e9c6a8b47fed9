import { setImmediate } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { createManualClock } from '../../tests/support/run/simulated.ts';
import { createMailQueue, MAILS_WAITING_MAX, type MailTry } from './mail-queue.ts';

function open() {
  const clock = createManualClock(0);
  const queue = createMailQueue(clock);
  const tries: string[] = [];
  const mail = (name: string, outcomes: MailTry[] = []) => ({
    attempt: async (isLast: boolean) => {
      tries.push(isLast ? `${name} for the last time` : name);
      return outcomes.shift() ?? 'done';
    },
  });
  return { clock, queue, tries, mail };
}

test('a mail that is not taken delays those of its own control account alone', async () => {
  const { clock, queue, tries, mail } = open();
  queue.add(1, mail('bad', ['later', 'later']).attempt);
  queue.add(1, mail('behind it').attempt);
  queue.add(2, mail("another's").attempt);
  await setImmediate();
  expect(tries).toEqual(['bad', "another's"]);
  clock.advance(5000);
  await setImmediate();
  expect(tries).toEqual(['bad', "another's", 'bad']);
  clock.advance(60_000);
  await setImmediate();
  expect(tries.slice(3)).toEqual(['bad for the last time', 'behind it']);
});

test('tries are made one at a time, and one that throws ends with its mail', async () => {
  const { queue, tries, mail } = open();
  const held = Promise.withResolvers<MailTry>();
  queue.add(1, () => held.promise);
  queue.add(2, mail('second').attempt);
  await setImmediate();
  expect(tries).toEqual([]);
  held.reject(new Error('broken'));
  queue.add(1, mail('third').attempt);
  await setImmediate();
  expect(tries).toEqual(['second', 'third']);
});

test('so many of a control account wait, and no more, until some are gone', async () => {
  const { queue, tries, mail } = open();
  for (let at = 0; at < MAILS_WAITING_MAX; at++) queue.add(1, mail(`${at}`).attempt);
  await queue.add(1, mail('too many').attempt);
  await queue.add(2, mail("another's").attempt);
  await vi.waitUntil(() => tries.includes(`${MAILS_WAITING_MAX - 1}`));
  await setImmediate();
  expect(tries).toHaveLength(MAILS_WAITING_MAX + 1);
  await queue.add(1, mail('later').attempt);
  expect(tries.at(-1)).toBe('later');
});
