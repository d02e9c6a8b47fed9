import { expect, test } from 'vitest';
import type { ChangeableKeyring } from '../../ports/keyring.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import type { WrappedKek } from '../../types/version.ts';
import { createKeyRotation } from './rotate-keys.ts';

const SHARDS = 2;

/** Wrapping by name only: what matters here is which key is where. */
function plainKeyring(): ChangeableKeyring {
  const keys = ['k1'];
  return {
    get activeKeyId() {
      return keys.at(-1) ?? '';
    },
    keyIds: () => [...keys],
    wrap: (kek) => ({ by: 'master', keyId: keys.at(-1) ?? '', wrapped: kek }),
    unwrap({ keyId, wrapped }) {
      if (!keys.includes(keyId)) throw new AppError('InternalError');
      return wrapped;
    },
    async addKey() {
      keys.push(`k${Number(keys.at(-1)?.slice(1)) + 1}`);
      return keys.at(-1) ?? '';
    },
    async removeKey(keyId) {
      keys.splice(keys.indexOf(keyId), 1);
    },
  };
}

/** Rows of wrapped keys by shard and row id, with the two messages that the rotation sends. */
function rowsOf(rows: Map<number, WrappedKek>[]) {
  const state = { limit: 2, moveCount: 0, onPage: (_shard: number, _isFirst: boolean) => {} };
  const port = {
    shardCount: SHARDS,
    async query(envelope: { shard: number }, _name: string, query: { notKeyId: string; after?: Uint8Array }) {
      const before = state.moveCount;
      state.onPage(envelope.shard, query.after === undefined);
      // Of shard 0 alone.
      const moveCounts = envelope.shard === 0 ? [before, state.moveCount] : [0, 0];
      const after = query.after?.[0] ?? -1;
      const ids = [...(rows[envelope.shard]?.keys() ?? [])].sort((a, b) => a - b).filter((id) => id > after);
      const page = ids.slice(0, state.limit);
      const items = page.flatMap((id) => {
        const wrapped = rows[envelope.shard]?.get(id);
        return wrapped === undefined || wrapped.keyId === query.notKeyId
          ? []
          : [{ row: Uint8Array.of(id), wrapped }];
      });
      const last = page.at(-1);
      const next = ids.length > page.length && last !== undefined ? { next: Uint8Array.of(last) } : {};
      return { kind: 'done', timeMs: 0, value: { items, scannedCount: page.length, moveCounts, ...next } };
    },
    async execute(
      envelope: { shard: number },
      _name: string,
      command: { items: { row: Uint8Array; replacement: WrappedKek }[] },
    ) {
      for (const { row, replacement } of command.items) rows[envelope.shard]?.set(row[0] ?? 0, replacement);
      return { kind: 'done', timeMs: 0, value: { kind: 'rewrapped', count: command.items.length } };
    },
  };
  return { state, metadata: port as unknown as MetadataPort };
}

function setUp() {
  const keyring = plainKeyring();
  const under = () => keyring.wrap(Uint8Array.of(7));
  const rows = [new Map([0, 1, 2, 3, 4].map((id) => [id, under()])), new Map([[9, under()]])] satisfies Map<
    number,
    WrappedKek
  >[];
  const { state, metadata } = rowsOf(rows);
  const time = { nowMs: 100, oldestRequestMs: undefined as number | undefined };
  const nothing = () => {};
  const rotation = createKeyRotation({
    metadata,
    keyring,
    clock: { wallMs: () => 0, monotonicMs: () => time.nowMs, sleep: async () => {} },
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    oldestRequestMs: () => time.oldestRequestMs,
  });
  const run = async () => {
    for (let unit = 0; unit < 100; unit++) {
      time.nowMs++;
      const outcome = await rotation.work(new AbortController().signal);
      if (outcome.state === 'idle') return outcome.idleMs;
    }
    throw new Error('no end in 100 units');
  };
  return { keyring, rows, state, time, rotation, run, under };
}

test('without a second key there is nothing to do', async () => {
  const { rotation, run } = setUp();
  expect(await run()).toBe(60_000);
  expect(rotation.progress()).toMatchObject({ activeKeyId: 'k1', olderKeyIds: [], rewrappedCount: 0 });
});

test('a rotation wraps every row by the new key and removes the old one', async () => {
  const { keyring, rows, rotation, run } = setUp();
  await rotation.begin();
  await expect(rotation.begin()).rejects.toMatchObject({ code: 'OperationAborted' });
  expect(rotation.progress()).toMatchObject({ activeKeyId: 'k2', olderKeyIds: ['k1'] });
  await run();
  expect(keyring.keyIds()).toEqual(['k2']);
  const keyIds = rows.flatMap((shard) => [...shard.values()].map(({ keyId }) => keyId));
  expect(new Set(keyIds)).toEqual(new Set(['k2']));
  expect(rotation.progress().rewrappedCount).toBe(6);
  await rotation.begin();
  await run();
  expect(keyring.keyIds()).toEqual(['k3']);
});

test('an older request may still commit under the old key, which therefore stays until it has ended', async () => {
  const { keyring, rows, time, rotation, run, under } = setUp();
  time.oldestRequestMs = 50;
  const old = under();
  await rotation.begin();
  expect(await run()).toBe(1000);
  expect(await run()).toBe(1000);
  expect(rotation.progress().isWaitingForRequests).toBe(true);
  rows[0]?.set(1, old);
  time.oldestRequestMs = undefined;
  expect(await run()).toBe(60_000);
  expect(rows[0]?.get(1)?.keyId).toBe('k2');
  expect(keyring.keyIds()).toEqual(['k2']);
});

test('a key that moves to a row behind the scan is found by the second pass', async () => {
  const { keyring, rows, state, rotation, run, under } = setUp();
  const old = under();
  await rotation.begin();
  let pages = 0;
  // Pass 1 has 4 pages and wraps all anew; while pass 2 is in shard 1, an old key appears in shard 0.
  state.onPage = () => {
    if (++pages === 8) rows[0]?.set(0, old);
  };
  await run();
  expect(rows[0]?.get(0)?.keyId).toBe('k2');
  expect(keyring.keyIds()).toEqual(['k2']);
});

test('readers from before the end of the last pass keep the old key as long as they run', async () => {
  const { keyring, state, time, rotation, run } = setUp();
  await rotation.begin();
  let pages = 0;
  state.onPage = () => {
    if (++pages === 5) time.oldestRequestMs = time.nowMs;
  };
  expect(await run()).toBe(1000);
  expect(keyring.keyIds()).toEqual(['k1', 'k2']);
  time.oldestRequestMs = undefined;
  await run();
  expect(keyring.keyIds()).toEqual(['k2']);
});

test('a version that is moved back and forth, always past the scan, keeps its key until it is found', async () => {
  const { keyring, rows, state, time, rotation, under } = setUp();
  const old = under();
  await rotation.begin();
  rows[0]?.delete(0);
  rows[0]?.set(4, old);
  let isMoving = true;
  // Ahead while shard 1 is scanned, and behind once the scan of shard 0 has begun.
  const carry = (from: number, to: number) => {
    if (!isMoving || !rows[0]?.has(from)) return;
    rows[0].delete(from);
    rows[0].set(to, old);
    state.moveCount++;
  };
  state.onPage = (shard, isFirst) => {
    if (shard === 1) carry(0, 4);
    else if (!isFirst) carry(4, 0);
  };
  for (let unit = 0; unit < 200; unit++) {
    time.nowMs++;
    await rotation.work(new AbortController().signal);
  }
  expect(keyring.keyIds()).toEqual(['k1', 'k2']);
  isMoving = false;
  for (let unit = 0; unit < 200; unit++) {
    time.nowMs++;
    await rotation.work(new AbortController().signal);
  }
  expect(keyring.keyIds()).toEqual(['k2']);
  expect(new Set([...(rows[0]?.values() ?? [])].map(({ keyId }) => keyId))).toEqual(new Set(['k2']));
});
