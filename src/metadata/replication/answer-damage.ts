// What a replica does when something that it has cannot be read (R17): it leads no more, and says nothing of what it has
// read; another one answers, and gives it everything anew. What is here stays until then.

import { LOG_COLUMN } from '../engine/row-keys.ts';
import type { DamageWatch } from './damage-watch.ts';
import type { Promises } from './promises.ts';
import type { ReplicaDeps } from './replica-parts.ts';

export interface DamageParts {
  promises: Promises;
  isStopped(): boolean;
  /** Nobody else has the shard: what can be read here is all there is. */
  isAlone(): boolean;
  stepDown(why: string): void;
}

export function answerDamage(
  damage: DamageWatch,
  { shard, logger, onEvent, onUnreadable }: ReplicaDeps,
  parts: DamageParts,
): void {
  const { promises } = parts;
  let wasDamaged = false;
  damage.setHandler((error, column) => {
    const { state, isDamaged } = promises.record;
    const isLogSound = column !== LOG_COLUMN;
    const isKnown = isDamaged && (isLogSound || state === 'quarantined');
    if (parts.isStopped() || state === 'removed' || isKnown) return;
    logger.error({ shard, column, err: error }, 'replica-damaged');
    if (parts.isAlone()) return;
    onEvent?.('quarantined');
    // Its word changes at once. A store that does not take it ends the process (R20).
    void promises.noteDamage({ isLogSound }).catch(() => {});
    parts.stepDown('what it has cannot be read');
    if (wasDamaged) onUnreadable(error);
    wasDamaged = true;
  });
}
