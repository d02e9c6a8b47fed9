// When decisions let others have their turn.
import { expect, test } from 'vitest';
import type { TurnOf } from '../base/async/fair-turns.ts';
import { spend } from '../policy/match-work.ts';
import { turnOfDecision } from './decision-turns.ts';

test('others have their turn when much has been compared, and not before', async () => {
  const owners: string[] = [];
  const turns = {
    async take({ owner, work }: TurnOf) {
      owners.push(`${work} of ${owner}`);
    },
  };
  // Other tests may have compared something in this process.
  spend(1_000_001);
  await turnOfDecision(turns, 'a');
  owners.length = 0;
  expect(turnOfDecision(turns, 'a')).toBeUndefined();
  spend(1_000_000);
  expect(turnOfDecision(turns, 'a')).toBeUndefined();
  spend(1);
  await turnOfDecision(turns, 'a');
  expect(turnOfDecision(turns, undefined)).toBeUndefined();
  spend(1_000_001);
  await turnOfDecision(turns, undefined);
  expect(owners).toEqual(['decisions of a', 'decisions of undefined']);
});
