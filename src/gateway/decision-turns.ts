// Decisions that have much to compare, in turns: one may take some 20 ms, and a request may ask for a thousand of them.
import type { FairTurns } from '../base/async/fair-turns.ts';
import { matchWork } from '../policy/match-work.ts';

/** Steps of comparing after which others have their turn: some ms. */
const WORK_OF_TURN = 1_000_000;

/** Work that had been done at the last turn, of whatever request. */
let workAtTurn = 0;

/** To be awaited before a decision, where it is a promise: much has been compared since others had their turn. */
export function turnOfDecision(
  turns: Pick<FairTurns, 'take'>,
  accountId: string | undefined,
  signer?: () => string,
): Promise<void> | undefined {
  if (matchWork() - workAtTurn <= WORK_OF_TURN) return undefined;
  return turns.take({ owner: accountId, signer: signer?.(), work: 'decisions' }).then(() => {
    workAtTurn = matchWork();
  });
}
