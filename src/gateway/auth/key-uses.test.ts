import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { createKeyUses } from './key-uses.ts';

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
