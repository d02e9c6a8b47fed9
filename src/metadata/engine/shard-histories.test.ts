// Random interleavings of commands against one shard: every reply and the final state must be explained by the commands
// having happened one after another, each between its call and its reply (I7), also when a crash cuts the log.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type NoteShards, openNoteShards, settle } from '../../../tests/support/metadata/note-shards.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';

type Step =
  | { kind: 'write'; key: string; onlyIfAbsent: boolean }
  | { kind: 'drop' | 'read'; key: string }
  | { kind: 'retry'; which: number }
  | { kind: 'hold' | 'release' | 'settle' | 'restart' | 'crash' };

const key = fc.constantFrom('a', 'b');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('write' as const), key, onlyIfAbsent: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('drop' as const, 'read' as const), key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('retry' as const), which: fc.nat(20) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('hold' as const, 'hold' as const, 'release' as const, 'settle' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('restart' as const, 'crash' as const) }) },
);

/** One call as its client sees it. Times are positions in the history; no reply: it may have happened, or not. */
interface Call {
  op: 'write' | 'write-if-absent' | 'drop' | 'read';
  text: string;
  calledAt: number;
  repliedAt: number;
  /** The text that the key held before, as far as the reply tells it. */
  outcome: { saw?: string | null; isAbsent?: boolean; refused?: boolean } | undefined;
}

test('histories are linearizable per key, counters end exact', { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
      const { histories, world } = await play(steps);
      for (const [name, calls] of histories) {
        const reply = await world.query('read-note', { bucketId: 'b', key: name });
        const final = reply.kind === 'done' ? (reply.value as { text: string | null }).text : undefined;
        const isExplained = linearizes(calls, null, final);
        expect(isExplained, JSON.stringify({ name, calls, final })).toBe(true);
      }
      const listed = await world.query('list-notes', { bucketId: 'b', limit: 100 });
      const { keys, count } = (listed as { value: { keys: string[]; count: number } }).value;
      expect(count).toBe(keys.length);
    }),
    { numRuns: amountOf({ short: 80, long: 400 }) },
  );
});

async function play(steps: readonly Step[]): Promise<{ histories: Map<string, Call[]>; world: NoteShards }> {
  let world = await openNoteShards();
  let moment = 0;
  const histories = new Map<string, Call[]>();
  const writes: { requestId: string; key: string; onlyIfAbsent: boolean; call: Call }[] = [];

  function begin(op: Call['op'], name: string, text: string): Call {
    const call: Call = {
      op,
      text,
      calledAt: moment++,
      repliedAt: Number.POSITIVE_INFINITY,
      outcome: undefined,
    };
    histories.set(name, [...(histories.get(name) ?? []), call]);
    return call;
  }
  function end(call: Call, outcome: Call['outcome']): void {
    if (call.outcome === undefined) Object.assign(call, { repliedAt: moment++, outcome });
    else expect(outcome).toEqual(call.outcome);
  }
  function write(entry: (typeof writes)[number]): void {
    const { key, onlyIfAbsent, requestId, call } = entry;
    world
      .execute('write-note', { bucketId: 'b', key, text: call.text, onlyIfAbsent }, { requestId })
      .then((reply) => {
        if (reply.kind !== 'done') return;
        const value = reply.value as { kind: string; replaced?: string | null };
        end(call, value.kind === 'exists' ? { refused: true } : { saw: value.replaced ?? null });
      });
  }

  for (const next of steps) {
    if (next.kind === 'write') {
      const text = `t${writes.length}`;
      const call = begin(next.onlyIfAbsent ? 'write-if-absent' : 'write', next.key, text);
      const entry = { ...next, requestId: `r${writes.length}`, call };
      writes.push(entry);
      write(entry);
    } else if (next.kind === 'drop') {
      const call = begin('drop', next.key, '');
      world.execute('drop-note', { bucketId: 'b', key: next.key }).then((reply) => {
        if (reply.kind === 'done')
          end(call, { isAbsent: (reply.value as { kind: string }).kind === 'absent' });
      });
    } else if (next.kind === 'read') {
      const call = begin('read', next.key, '');
      const reply = await world.query('read-note', { bucketId: 'b', key: next.key });
      if (reply.kind === 'done') end(call, { saw: (reply.value as { text: string | null }).text });
    } else if (next.kind === 'retry') {
      const entry = writes[next.which % Math.max(1, writes.length)];
      // A refusal leaves nothing under its id, so repeating it is a new command.
      if (entry !== undefined && entry.call.outcome?.refused !== true && !entry.onlyIfAbsent) write(entry);
    } else if (next.kind === 'hold') world.kv.holdCommits();
    else if (next.kind === 'release') world.kv.releaseCommits();
    else if (next.kind === 'settle') await settle();
    else {
      await settle();
      if (next.kind === 'crash') world.kv.loseCommits();
      world.kv.releaseCommits();
      if (next.kind === 'restart') await world.shards.close();
      world = await world.reopen();
    }
  }
  world.kv.releaseCommits();
  await world.shards.close();
  return { histories, world: await world.reopen() };
}

/** Whether some order of the calls, each within its time, explains all replies and the final value. */
function linearizes(calls: readonly Call[], value: string | null, final: string | null | undefined): boolean {
  if (calls.length === 0) return value === final;
  const firstReplyAt = Math.min(...calls.map(({ repliedAt }) => repliedAt));
  return calls.some((call, index) => {
    if (call.calledAt > firstReplyAt) return false;
    const rest = calls.filter((_other, other) => other !== index);
    const after = effect(call, value);
    if (after !== undefined && linearizes(rest, after, final)) return true;
    // No reply: it may never have happened.
    return call.outcome === undefined && linearizes(rest, value, final);
  });
}

/** The value after the call, or undefined when its reply contradicts the value before it. */
function effect({ op, text, outcome }: Call, before: string | null): string | null | undefined {
  if (op === 'read') return outcome === undefined || outcome.saw === before ? before : undefined;
  if (op === 'drop') {
    if (outcome !== undefined && outcome.isAbsent !== (before === null)) return undefined;
    return null;
  }
  const isRefused = op === 'write-if-absent' && before !== null;
  if (outcome !== undefined) {
    if ((outcome.refused ?? false) !== isRefused) return undefined;
    if (!isRefused && outcome.saw !== before) return undefined;
  }
  return isRefused ? before : text;
}
