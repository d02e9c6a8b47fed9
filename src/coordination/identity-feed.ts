// A gateway's knowledge of changes of accounts and access keys (R46), asked of the system shard each second. It is current
// for a bounded time after the sending of the last answered question. A revocation waits until this gateway has asked with
// a later position, or must have stopped to trust its cache (revocation-wait.ts). With the same questions it says which master
// keys it has, and hears which ones the cluster uses.
import { type Moment, momentNow, passedMs } from '../base/moment.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { IdentityFeed, IdentityPosition } from '../ports/identity-feed.ts';
import type { ClusterKeyring } from '../ports/keyring.ts';
import { type MetadataPort, type ResultOf, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import type { Logger } from '../ports/telemetry.ts';
import { LIMITS } from '../types/limits.ts';
import { awaitRevocations } from './delay-revocations.ts';
import { watchIdentityCommands } from './watch-identity-commands.ts';

/** Questions that may be under way: the answer to an older one would no longer count. */
const ASKS_MAX = Math.ceil(LIMITS.identityServeMs / LIMITS.identityAskMs);

export interface ClusterIdentityFeed extends IdentityFeed {
  /** The port by which this process changes identities: its own changes are reported at once. */
  readonly metadata: MetadataPort;
  /** Asks until `signal` aborts. */
  follow(signal: AbortSignal): Promise<void>;
}

export function createIdentityFeed(deps: {
  metadata: MetadataPort;
  clock: ClockPort;
  log: Logger;
  /** A random name of this process. */
  gateway: string;
  masterKeys?: Pick<ClusterKeyring, 'held' | 'learn'> | undefined;
}): ClusterIdentityFeed {
  const { metadata, clock, log, gateway, masterKeys } = deps;
  const listeners: Parameters<IdentityFeed['listen']>[0][] = [];
  const notify: (typeof listeners)[number] = (changes) => {
    for (const listener of listeners) listener(changes);
  };
  let position: IdentityPosition | undefined;
  /** When the last answered question was sent. */
  let goodSent: Moment | undefined;
  let askCount = 0;
  let wasCurrent = false;

  function isCurrent(): boolean {
    return goodSent !== undefined && passedMs(goodSent, momentNow(clock)) < LIMITS.identityServeMs;
  }

  async function ask(signal: AbortSignal): Promise<void> {
    const sent = momentNow(clock);
    const query = {
      gateway,
      ...(position && { since: position }),
      ...(masterKeys && { held: masterKeys.held() }),
    };
    askCount++;
    try {
      const reply = await metadata.query({ shard: SYSTEM_SHARD }, 'identity-changes', query);
      if (reply.kind === 'done' && !signal.aborted) take(reply.value, sent);
    } catch (error) {
      log.debug({ err: error }, 'identity-ask-failed');
    } finally {
      askCount--;
    }
  }

  function take(answer: ResultOf<'identity-changes'>, sent: Moment): void {
    // Listeners are called first: from then on the answer counts.
    if (answer.kind === 'reset') notify('all');
    else if (answer.changes.length > 0) notify(answer.changes);
    // An answer that was overtaken by a later one does not move the position.
    if (goodSent !== undefined && sent.monotonicMs < goodSent.monotonicMs) return;
    if (answer.masterKeys !== undefined) masterKeys?.learn(answer.masterKeys);
    position = answer.upTo;
    goodSent = sent;
    note();
  }

  /** Logs whether the feed is current, when that changes. */
  function note(): void {
    const isNow = isCurrent();
    if (isNow === wasCurrent) return;
    wasCurrent = isNow;
    if (isNow) log.info({}, 'identity-feed-current');
    else log.warn({}, 'identity-feed-behind');
  }

  return {
    metadata: awaitRevocations(watchIdentityCommands(metadata, notify), clock),
    isCurrent,
    listen: (onChange) => void listeners.push(onChange),
    async follow(signal) {
      while (!signal.aborted) {
        note();
        if (askCount < ASKS_MAX) void ask(signal);
        await clock.sleep(LIMITS.identityAskMs, signal);
      }
    },
  };
}
