import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { AccountId } from '../../types/names.ts';
import { createKeyUses } from './key-uses.ts';

test('uses of roles are sent beside those of keys, each role once a minute', async () => {
  const sent: unknown[] = [];
  const metadata = {
    execute: async (_envelope: unknown, _name: unknown, command: unknown) => sent.push(command),
  } as unknown as MetadataPort;
  const clock = createManualClock(1000);
  const uses = createKeyUses({ metadata, clock });
  const role = { accountId: '111111111111' as AccountId, id: 'AROAX' };
  const session = { ...role, secretKey: 'never sent' };
  const use = { region: 'us-east', service: 's3' };
  for (const times of [1, 2]) {
    uses.noteRole(session, { region: 'us-east' });
    uses.note(`k${times}`, use);
  }
  clock.advance(1000);
  const atMs = clock.wallMs() - 1000;
  await expect
    .poll(() => sent)
    .toEqual([
      {
        uses: [1, 2].map((times) => ({ accessKey: `k${times}`, atMs, ...use })),
        roles: [{ ...role, atMs, region: 'us-east' }],
      },
    ]);
  uses.noteRole(session, { region: 'us-east' });
  clock.advance(60_000);
  uses.noteRole(session, { region: 'us-west' });
  clock.advance(1000);
  await expect.poll(() => sent.length).toBe(2);
  expect(sent[1]).toMatchObject({ uses: [], roles: [{ id: 'AROAX', region: 'us-west' }] });
});

test('uses of keys are sent together, each key once a minute', async () => {
  const sent: unknown[] = [];
  const metadata = {
    async execute(_envelope: unknown, _name: unknown, command: { uses: { accessKey: string }[] }) {
      sent.push(command.uses.map(({ accessKey }) => accessKey));
      throw new Error('nobody answers');
    },
  } as unknown as MetadataPort;
  const clock = createManualClock(1000);
  const uses = createKeyUses({ metadata, clock });
  const note = (accessKey: string) => uses.note(accessKey, { region: 'us-east', service: 's3' });
  for (const key of ['a', 'b', 'a']) note(key);
  clock.advance(1000);
  await expect.poll(() => sent).toEqual([['a', 'b']]);
  note('a');
  clock.advance(60_000);
  note('a');
  clock.advance(1000);
  await expect.poll(() => sent).toEqual([['a', 'b'], ['a']]);
});
