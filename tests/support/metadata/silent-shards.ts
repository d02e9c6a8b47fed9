// Shards that keep their answers to themselves, or say that they have none, between work that asks and real ones.
import type { MetadataPort } from '../../../src/ports/metadata/port.ts';

export interface SilentShards {
  port: MetadataPort;
  /** Calls so far, as "name shard". */
  asked: string[];
  /** What is asked of it gets no answer before `answerAgain`. */
  silence(shard: number): void;
  /** Answers also what it was asked meanwhile. */
  answerAgain(shard: number): void;
  /** What is asked of it is answered `unknown` at once, until `answerAgain`. */
  refuse(shard: number): void;
  /** Resolves once there have been so many calls of this name and shard. */
  wasAsked(call: string, count?: number): Promise<void>;
  /** Likewise of answers to them. */
  hasAnswered(call: string, count?: number): Promise<void>;
}

export function createSilentShards(real: MetadataPort): SilentShards {
  const silent = new Map<number, PromiseWithResolvers<void>>();
  const refusing = new Set<number>();
  const asked: string[] = [];
  const answered: string[] = [];
  let watchers: { isMet(): boolean; resolve(): void }[] = [];

  function note(calls: string[], call: string): void {
    calls.push(call);
    for (const { isMet, resolve } of watchers) if (isMet()) resolve();
    watchers = watchers.filter(({ isMet }) => !isMet());
  }

  async function pass<T>(
    { shard, name }: { shard: number; name: string },
    act: () => Promise<T>,
  ): Promise<T> {
    note(asked, `${name} ${shard}`);
    await silent.get(shard)?.promise;
    if (refusing.has(shard)) return { kind: 'unknown' } as T;
    const reply = await act();
    note(answered, `${name} ${shard}`);
    return reply;
  }

  function until(calls: string[], call: string, count: number): Promise<void> {
    const isMet = () => calls.filter((one) => one === call).length >= count;
    if (isMet()) return Promise.resolve();
    return new Promise((resolve) => watchers.push({ isMet, resolve }));
  }

  return {
    asked,
    port: {
      shardCount: real.shardCount,
      execute: (envelope, name, command) =>
        pass({ shard: envelope.shard, name }, () => real.execute(envelope, name, command)),
      query: (envelope, name, query) =>
        pass({ shard: envelope.shard, name }, () => real.query(envelope, name, query)),
    },
    silence: (shard) => void silent.set(shard, Promise.withResolvers()),
    answerAgain(shard) {
      silent.get(shard)?.resolve();
      silent.delete(shard);
      refusing.delete(shard);
    },
    refuse: (shard) => void refusing.add(shard),
    wasAsked: (call, count = 1) => until(asked, call, count),
    hasAnswered: (call, count = 1) => until(answered, call, count),
  };
}
