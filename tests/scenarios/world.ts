// What a scenario runs in: shards over a memory store, a clock that moves when told, chance from a seed; and the
// directives that act on them. One world per file, so a file reads from top to bottom.

import { must } from '../../src/base/assert.ts';
import { unpackPlain } from '../../src/base/record-codec.ts';
import { decodeVector, readVectors } from '../../src/metadata/engine/counters.ts';
import { decodeApplied } from '../../src/metadata/engine/entry-rows.ts';
import { ENGINE_TABLES, keyOfRow, rowKey } from '../../src/metadata/engine/row-keys.ts';
import { createShards, SHARD_COLUMNS, type Shards } from '../../src/metadata/engine/shards.ts';
import { createLocalCoordinator } from '../../src/platform/local-coordinator.ts';
import { createMemoryKv } from '../../src/platform/memory/memory-kv.ts';
import type { Envelope, Reply } from '../../src/ports/metadata/port.ts';
import type { TableRef } from '../../src/ports/state-machine.ts';
import type { Worker } from '../../src/ports/worker.ts';
import { createManualClock, createSeededRandom } from '../support/run/simulated.ts';
import type { ScenarioMachine } from './machines.ts';
import { parseValue, showKey, showStored, showValue } from './show.ts';

const START = '2024-01-01T00:00:00.000Z';
const SHARD_COUNT_DEFAULT = 2;
const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const SHOW_ENGINE: ScenarioMachine['show'] & object = {
  'engine.applied': decodeApplied,
  'engine.counters': (value) => {
    const [first = 0, ...others] = decodeVector(value);
    return others.length === 0 ? first : [first, ...others];
  },
  'engine.requests': unpackPlain,
};

interface Started {
  label: string;
  reply: Promise<string>;
  isFinished: boolean;
}

export interface World {
  /** Lines of output. Throws on a directive that it does not know. */
  run(directive: string): Promise<string[]>;
}

export function createWorld({ machine, tables, show = {}, workers: makeWorkers }: ScenarioMachine): World {
  const kv = createMemoryKv(SHARD_COLUMNS);
  const coordinator = createLocalCoordinator(kv);
  const clock = createManualClock(Date.parse(START));
  const variables = new Map<string, string>();
  const started: Started[] = [];
  const events: string[] = [];
  let random = createSeededRandom(1);
  let shardCount = SHARD_COUNT_DEFAULT;
  let opened: Shards | undefined;
  let workers: readonly Worker[] = [];
  /** Tells the shards of now from those before a crash. */
  let openCount = 0;
  let lastValue: unknown;

  async function shards(): Promise<Shards> {
    if (opened !== undefined) return opened;
    const opening = ++openCount;
    opened = await createShards({
      kv,
      machine,
      shardCount,
      clock,
      random,
      coordinator,
      onFatal: (error) => {
        if (opening === openCount) events.push(`fatal: ${error.message}`);
      },
    });
    const note = (event: string) => void events.push(event);
    workers = [...opened.workers, ...(makeWorkers?.({ shards: opened, clock, note }) ?? [])];
    return opened;
  }

  /** `execute <shard> [request=<id>] [bucket=<id>,<name>,<cfgVersion>] <name> <json>`, likewise `query`. */
  async function call(words: string[]): Promise<string> {
    const [kind = '', shard = '', ...rest] = words;
    const envelope: Envelope = { shard: Number(shard) };
    while (rest[0]?.includes('=')) {
      const [option = '', value = ''] = (rest.shift() ?? '').split('=');
      if (option === 'request') envelope.requestId = value;
      else if (option === 'bucket') {
        const [bucketId, name, cfgVersion] = value.split(',');
        envelope.bucket = { bucketId, name, cfgVersion: Number(cfgVersion) } as never;
      } else throw new Error(`unknown option ${option}`);
    }
    const name = must(rest.shift(), 'a command has a name') as never;
    const value = parseValue(rest[0] ?? '{}') as never;
    const port = await shards();
    try {
      const reply: Reply<unknown> = await (kind === 'query'
        ? port.query(envelope, name, value)
        : port.execute(envelope, name, value));
      if (reply.kind === 'done') lastValue = reply.value;
      return showReply(reply);
    } catch (error) {
      return `throws ${(error as Error).message}`;
    }
  }

  async function rows(shard: number, tableName: string): Promise<string[]> {
    const table: TableRef = must(
      tables[tableName] ?? (ENGINE_TABLES as Record<string, TableRef>)[tableName.replace('engine.', '')],
      `unknown table ${tableName}`,
    );
    const end = rowKey(shard, { ...table, id: table.id + 1 }, new Uint8Array(0));
    const gte = rowKey(shard, table, new Uint8Array(0));
    const found = await kv.range({ column: table.column, gte, lt: end, limit: 1000 });
    const showRow = show[tableName] ?? SHOW_ENGINE[tableName] ?? showStored;
    return found.map(({ key, value }) => `${showKey(keyOfRow(key))} = ${showValue(showRow(value))}`);
  }

  async function work(name: string): Promise<string[]> {
    await shards();
    const worker = must(
      workers.find((found) => found.name === name),
      `no worker ${name}`,
    );
    let unitCount = 1;
    while ((await worker.work(new AbortController().signal)).state === 'busy') unitCount++;
    return [`${unitCount} units`];
  }

  function start(label: string, words: string[]): void {
    const entry: Started = {
      label,
      isFinished: false,
      reply: call(words).then((text) => {
        entry.isFinished = true;
        return `${label}: ${text}`;
      }),
    };
    started.push(entry);
  }

  /** Replies of started calls, in the order of starting; all of them, or those named. */
  async function awaitStarted(labels: string[]): Promise<string[]> {
    const waited = started.filter(({ label }) => labels.length === 0 || labels.includes(label));
    for (const entry of waited) started.splice(started.indexOf(entry), 1);
    return Promise.all(waited.map(({ reply }) => reply));
  }

  const DIRECTIVES: Record<string, (words: string[]) => Promise<string[]> | string[]> = {
    shards: ([count]) =>
      silent(() => {
        shardCount = Number(count);
      }),
    seed: ([seed]) =>
      silent(() => {
        random = createSeededRandom(Number(seed));
      }),
    execute: async (words) => [await call(['execute', ...words])],
    query: async (words) => [await call(['query', ...words])],
    'lose-reply': async (words) => {
      await call(words);
      return ['(lost)'];
    },
    start: ([label = '', ...words]) => silent(() => start(label, words)),
    await: awaitStarted,
    pending: () => [
      started.flatMap(({ label, isFinished }) => (isFinished ? [] : [label])).join(' ') || 'none',
    ],
    'hold-commits': () => silent(() => kv.holdCommits()),
    'release-commits': () => silent(() => kv.releaseCommits()),
    'fail-store': () => silent(() => kv.fail(new Error('the disk failed'))),
    advance: ([duration = '']) => silent(() => clock.advance(parseDuration(duration))),
    'set-wall': ([duration = '']) => silent(() => clock.shiftWall(parseDuration(duration))),
    restart: async () => {
      await opened?.close();
      opened = undefined;
      await shards();
      return [];
    },
    crash: async () => {
      kv.loseCommits();
      started.length = 0;
      opened = undefined;
      await shards();
      return [];
    },
    rows: ([shard, table = '']) => rows(Number(shard), table),
    counters: async ([shard, ...names]) => {
      const values = await readVectors(Number(shard), kv, names);
      return names.map((name, index) => `${name} = ${values[index]?.join(' ') || 0}`);
    },
    time: async ([shard]) => {
      const status = must((await shards()).status().shards[Number(shard)], 'a shard');
      const jump = status.timeJumpMs > 0 ? `, jumped by ${status.timeJumpMs} ms` : '';
      return [`${new Date(status.committedTimeMs).toISOString()}, entry ${status.committedSeq}${jump}`];
    },
    'accept-clock': async () => {
      await (await shards()).timeJumps.accept(Number.POSITIVE_INFINITY);
      return [];
    },
    work: ([name = '']) => work(name),
    let: ([name = '', path = '']) => silent(() => variables.set(name, String(valueAt(lastValue, path)))),
  };

  return {
    async run(directive) {
      const replaced = directive.replace(/\$([a-z]\w*)/gi, (_match, name: string) =>
        must(variables.get(name), `unknown variable $${name}`),
      );
      const [name = '', ...words] = wordsOf(replaced);
      const lines = await must(DIRECTIVES[name], `unknown directive ${name}`)(words);
      // Everything that can go on without time or commits has done so before the next directive.
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      const output = [...lines, ...events.splice(0)].join('\n');
      return output === '' ? [] : nameValues(output, variables).split('\n');
    },
  };
}

function silent(act: () => unknown): string[] {
  act();
  return [];
}

/** Words up to the JSON, which is the last one. */
function wordsOf(directive: string): string[] {
  const jsonAt = directive.indexOf(' {');
  const words = (jsonAt < 0 ? directive : directive.slice(0, jsonAt)).split(/ +/);
  return jsonAt < 0 ? words : [...words, directive.slice(jsonAt + 1)];
}

function showReply(reply: Reply<unknown>): string {
  if (reply.kind === 'done') return `done ${showValue(reply.value)}`;
  return reply.kind === 'stale-bucket' ? `stale-bucket ${showValue(reply.bucket)}` : reply.kind;
}

/** Values that `let` has named are shown by their names. */
function nameValues(output: string, variables: ReadonlyMap<string, string>): string {
  let named = output;
  for (const [name, value] of variables) if (value.length >= 8) named = named.replaceAll(value, `$${name}`);
  return named;
}

function valueAt(value: unknown, path: string): unknown {
  let found = value;
  for (const field of path.split('.')) found = (found as Record<string, unknown> | undefined)?.[field];
  if (found === undefined) throw new Error(`the last reply has no ${path}`);
  return found;
}

function parseDuration(text: string): number {
  const [, sign, amount, unit = ''] = must(
    /^([+-]?)(\d+)(ms|s|m|h|d)$/.exec(text) ?? undefined,
    `duration ${text}`,
  );
  return (sign === '-' ? -1 : 1) * Number(amount) * must(UNIT_MS[unit], unit);
}
