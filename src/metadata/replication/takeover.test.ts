import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import type { FencedMessage, LogPosition } from '../../ports/replication.ts';
import { encodeEntry } from '../engine/entry-codec.ts';
import { LOG_COLUMN } from '../engine/row-keys.ts';
import { answerFetch } from './answer-fetch.ts';
import { LogStore } from './log-store.ts';
import type { MessageBody } from './message-envelope.ts';
import { Takeover, type TakeoverParts } from './takeover.ts';

const SELF = { replicaId: 'p', nodeId: 'p' };
const OTHER = { replicaId: 'f', nodeId: 'f' };
const HEAD = { shard: 0, incarnation: 1, epoch: 3, from: 'f', to: 'p' };
const FETCHES_MAX = 50;

async function openLog(base: LogPosition, epochs: readonly number[]): Promise<LogStore> {
  const kv = createMemoryKv(['rows', LOG_COLUMN]);
  const log = new LogStore(0, kv, { base, markBytes: 1024, budget: { waitingBytes: 0, tailBytes: 0 } });
  const entries = epochs.map((epoch, at) =>
    encodeEntry({ seq: base.seq + at + 1, epoch, timeMs: 1, rows: [] }),
  );
  await log.append(log.last, entries);
  return log;
}

/** Of a candidate with `own`, when the other voter has `best`, and `later` once it has been fenced. */
async function takeOver(own: LogStore, best: LogStore, { later = best, committed = own.base } = {}) {
  const said: MessageBody[] = [];
  const adoptedBehind: number[] = [];
  const parts = {
    shard: 0,
    self: SELF,
    log: own,
    clock: createManualClock(0),
    promise: async () => {},
    silentUntilMs: () => 0,
    committed: () => committed,
    async adopt(after: LogPosition, entries: readonly Uint8Array[]) {
      adoptedBehind.push(after.seq);
      await own.append(after, entries);
      return true;
    },
    send: () => (_to: unknown, body: MessageBody) => {
      said.push(body);
      if (said.length > FETCHES_MAX) takeover.abandon('it asks for ever');
      queueMicrotask(() => void answer(body));
    },
  };
  const takeover = new Takeover(parts as unknown as TakeoverParts);
  const answer = async (body: MessageBody) => {
    if (body.kind === 'fence') {
      const fenced: FencedMessage = {
        ...HEAD,
        kind: 'fenced',
        wallMs: 0,
        counts: true,
        last: best.last,
        base: best.base,
      };
      takeover.onFenced(fenced);
    } else if (body.kind === 'fetch') {
      const fetched = await answerFetch(later, body.after);
      takeover.onFetched({ ...HEAD, kind: 'fetched', last: later.last, ...fetched });
    }
  };
  const record = { incarnation: 1, epoch: 3, primary: SELF, voters: [SELF, OTHER], learners: [], nonce: '' };
  const registered = { record: { ...record, prevVoters: null }, revision: 1, registryRevision: 1 };
  const end = await takeover.finish(registered, SELF);
  return { end, said, adoptedBehind, takeover };
}

test('a candidate whose tail is of an older epoch takes what the better log has in its place', async () => {
  const own = await openLog({ seq: 4, epoch: 1 }, [1, 1, 1, 1]);
  const best = await openLog({ seq: 4, epoch: 1 }, [1, 2, 2]);
  const { end } = await takeOver(own, best);
  expect(end.kind).toBe('won');
  expect(own.last).toEqual({ seq: 7, epoch: 2 });
});

test('an epoch that was won in vain is lost to a higher one, or to what ended it meanwhile', async () => {
  const { takeover } = await takeOver(
    await openLog({ seq: 4, epoch: 1 }, []),
    await openLog({ seq: 4, epoch: 1 }, []),
  );
  expect(takeover.wonInVain).toBe('a higher epoch');
  takeover.abandon('stopping');
  expect(takeover.wonInVain).toBe('stopping');
});

test('a log that goes on from a place where another epoch stands in ours is found by its common beginning', async () => {
  const own = await openLog({ seq: 6, epoch: 1 }, [2, 2]);
  const best = await openLog({ seq: 3, epoch: 1 }, [1, 1, 1, 1, 1, 3]);
  const { end } = await takeOver(own, best);
  expect(end.kind).toBe('won');
  expect(own.last).toEqual({ seq: 9, epoch: 3 });
});

test('who ends behind the base of the better log, but has parted from it below that, lets it lead', async () => {
  const own = await openLog({ seq: 4, epoch: 1 }, [1, 1, 1, 1, 1, 1]);
  const best = await openLog({ seq: 8, epoch: 2 }, [2]);
  const { end, said } = await takeOver(own, best);
  expect(end).toEqual({ kind: 'given-up', why: 'the best log could not be had' });
  expect(said.at(-1)).toEqual({ kind: 'release', heir: 'f' });
});

test('a log that has become shorter since it was fenced is not waited for', async () => {
  const own = await openLog({ seq: 4, epoch: 1 }, [1]);
  const best = await openLog({ seq: 4, epoch: 1 }, [1, 1, 2]);
  const { end, said } = await takeOver(own, best, {
    later: await openLog({ seq: 4, epoch: 1 }, [1]),
  });
  expect(end).toEqual({ kind: 'given-up', why: 'the best log could not be had' });
  expect(said.map(({ kind }) => kind)).toEqual(['fence', 'fetch']);
});

test('a tail of the epoch in which the rest was committed goes, and what is committed is not asked for', async () => {
  const own = await openLog({ seq: 4, epoch: 1 }, [1, 1, 1, 1]);
  const best = await openLog({ seq: 4, epoch: 1 }, [1, 1, 2]);
  const { end, adoptedBehind } = await takeOver(own, best, { committed: { seq: 6, epoch: 1 } });
  expect(end.kind).toBe('won');
  expect(adoptedBehind).toEqual([6]);
  expect(own.last).toEqual({ seq: 7, epoch: 2 });
});

test('who lacks what is committed here is not asked for ever', async () => {
  const own = await openLog({ seq: 4, epoch: 1 }, [1, 1, 1, 1]);
  const best = await openLog({ seq: 4, epoch: 1 }, [2, 2, 2]);
  const { end, said } = await takeOver(own, best, { committed: { seq: 7, epoch: 1 } });
  expect(end).toEqual({ kind: 'given-up', why: 'the best log could not be had' });
  expect(said.length).toBeLessThan(5);
});
