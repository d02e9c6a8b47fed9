// The memory of bodies: which bodies wait, are refused or are evicted, for one tenant and for several.
import { expect, test } from 'vitest';
import { countedTelemetry } from '../../tests/support/run/counted-telemetry.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import type { Tenant } from '../types/tenant.ts';
import { type BodyLease, createBodyBudget } from './body-budget.ts';

const MiB = 1024 * 1024;
const LIMIT = 32 * MiB;
const ALICE = { account: 'alice', signer: 'own a', address: '192.0.2.1' };
const ALICE_ELSEWHERE = { account: 'alice', signer: 'own a', address: '192.0.2.2' };
const BOB = { account: 'bob', signer: 'own b', address: '192.0.2.1' };
/** What one address may hold of a resource that nobody else uses. */
const shareOf = (limit: number) => Math.floor(limit * 0.72);

/** A clock that stands still until `pass`, which runs every sleeper that is due. */
function manualClock() {
  let nowMs = 0;
  let sleepers: { atMs: number; resolve(): void }[] = [];
  const clock: ClockPort = {
    wallMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: (ms) => new Promise((resolve) => sleepers.push({ atMs: nowMs + ms, resolve })),
  };
  async function pass(ms: number): Promise<void> {
    const endMs = nowMs + ms;
    while (nowMs < endMs) {
      nowMs += 100;
      const due = sleepers.filter(({ atMs }) => atMs <= nowMs);
      sleepers = sleepers.filter(({ atMs }) => atMs > nowMs);
      for (const { resolve } of due) resolve();
      await new Promise(setImmediate);
    }
  }
  return { clock, pass };
}

function setUp() {
  const { clock, pass } = manualClock();
  const shed: unknown[] = [];
  const telemetry = {
    count: (_name: string, labels?: object) => void shed.push(labels),
    observe() {},
    gauge() {},
    gaugeAll() {},
  };
  const budget = createBodyBudget({ limitBytes: LIMIT, clock, telemetry });
  const evicted: string[] = [];
  const open = (name: string, tenant: Tenant = ALICE) =>
    budget.open({
      tenant,
      needBytes: LIMIT / 8,
      onEvicted: (error: AppError) => evicted.push(`${name} ${error.code}`),
    });
  return { budget, open, evicted, shed, pass };
}

test('reports held memory from the start', async () => {
  const { telemetry, linesOf } = countedTelemetry();
  const budget = createBodyBudget({ limitBytes: LIMIT, clock: manualClock().clock, telemetry });
  expect(await linesOf('holdfast_body_buffer_bytes')).toEqual(['0']);
  budget.open({ tenant: ALICE, needBytes: 1, onEvicted() {} }).hold(5);
  expect(await linesOf('holdfast_body_buffer_bytes')).toEqual(['5']);
});

test('bodies take free memory without waiting', () => {
  const { budget, open } = setUp();
  const lease = open('a');
  expect(lease.admit()).toBeUndefined();
  lease.hold(LIMIT / 4);
  expect(lease.hasRoom()).toBe(true);
  lease.hold(LIMIT / 4);
  expect(lease.hasRoom()).toBe(false);
  expect(lease.admit()).toBeUndefined();
  lease.release(LIMIT / 4);
  expect(budget.usedBytes()).toBe(LIMIT / 4);
  lease.close();
  lease.close();
  lease.hold(5);
  expect(budget.usedBytes()).toBe(0);
});

test('beyond their share they wait, and are admitted one after the other', async () => {
  const { budget, open } = setUp();
  const holder = open('holder');
  holder.hold(shareOf(LIMIT));
  const order: string[] = [];
  const waiting = Array.from({ length: 20 }, async (_, at) => {
    const lease = open(String(at));
    await lease.admit();
    order.push(String(at));
    return lease;
  });
  await new Promise(setImmediate);
  expect(order).toEqual([]);
  holder.release(2 * LIMITS.chunkBytesMin);
  await new Promise(setImmediate);
  expect(order).toEqual(['0', '1']);
  expect(budget.usedBytes()).toBe(shareOf(LIMIT));
  const first = await Promise.race(waiting);
  first.hold(10);
  first.release(10);
  await new Promise(setImmediate);
  expect(order).toHaveLength(3);
  holder.close();
  await new Promise(setImmediate);
  expect(order).toHaveLength(20);
});

test('a body that waits too long is refused, and later ones wait on', async () => {
  const { open, pass, evicted } = setUp();
  const holder = open('holder');
  holder.hold(LIMIT);
  holder.idle();
  const first = open('first')
    .admit()
    ?.catch((error: AppError) => error.code);
  await pass(LIMITS.bodyBufferWaitMaxMs - 1000);
  const second = open('second').admit();
  await pass(2000);
  expect(await first).toBe('SlowDown');
  holder.release(LIMIT);
  await second;
  expect(evicted[0]).toBe('holder SlowDown');
});

test('a body whose client stalls or trickles is evicted, but only while others wait', async () => {
  const { open, pass, evicted } = setUp();
  const trickling = open('trickling');
  trickling.hold(LIMIT / 2);
  const onTheWay = open('on the way to the disk');
  onTheWay.hold(LIMIT / 2 - 100);
  await pass(LIMITS.bodyStalledMs);
  trickling.hold(100);
  trickling.idle();
  await pass(LIMITS.bodyStalledMs);
  expect(evicted).toEqual([]);
  const admitted = open('new').admit();
  await pass(1000);
  expect(new Set(evicted)).toEqual(new Set(['trickling SlowDown']));
  trickling.close();
  await admitted;
});

test('as many bodies are evicted as wait, so that a crowd of stalled clients blocks nobody', async () => {
  const { open, pass, evicted } = setUp();
  const share = LIMIT / 16;
  for (let count = 0; count < 16; count++) {
    const stalled = open('stalled');
    stalled.hold(share);
    stalled.idle();
  }
  await pass(LIMITS.bodyStalledMs);
  const waiting = Array.from({ length: 5 }, (_, at) => open(String(at)).admit());
  await pass(600);
  expect(evicted).toHaveLength(waiting.length);
});

test('time spent waiting for memory is not counted against the client', async () => {
  const { open, pass, evicted } = setUp();
  const holder = open('holder');
  holder.hold(shareOf(LIMIT));
  const late = open('let in late');
  const admitted = late.admit();
  await pass(LIMITS.bodyStalledMs + 1000);
  holder.release(LIMITS.chunkBytesMin);
  await admitted;
  late.hold(LIMITS.chunkBytesMin);
  late.idle();
  open('next').admit();
  await pass(1000);
  expect(evicted).toEqual([]);
});

test('a body that releases memory, or whose client reads, stays', async () => {
  const { open, pass, evicted } = setUp();
  const slow = open('slow');
  slow.hold(LIMIT);
  slow.idle();
  const waiting = open('new').admit();
  for (let count = 0; count < 5; count++) {
    await pass(LIMITS.bodyStalledMs / 2);
    slow.hold(1);
    slow.release(1);
  }
  slow.busy();
  await pass(LIMITS.bodyBufferWaitMaxMs - 3 * LIMITS.bodyStalledMs + 1000);
  expect(evicted).toEqual([]);
  slow.close();
  await waiting?.catch(() => {});
});

test('closing a lease ends its wait', async () => {
  const { open } = setUp();
  open('holder').hold(LIMIT);
  const lease = open('waiter');
  const refused = lease.admit()?.catch((error: AppError) => error.code);
  lease.close();
  expect(await refused).toBe('SlowDown');
});

test('when bodies in mid-chunk hold all memory, some are admitted to the end of their chunk', async () => {
  const { budget, open } = setUp();
  const leases = Array.from({ length: 32 }, (_, at) => open(String(at)));
  const held = LIMIT / 32;
  for (const lease of leases) lease.hold(held);
  const letIn: number[] = [];
  leases.forEach((lease, at) => {
    lease.admit()?.then(() => letIn.push(at));
  });
  await new Promise(setImmediate);
  expect(letIn).toEqual([0]);
  // Up to its end, without waiting again.
  leases[0]?.hold(LIMIT / 16);
  expect(leases[0]?.admit()).toBeUndefined();
  leases[0]?.hold(LIMIT / 32);
  expect(budget.usedBytes()).toBe(LIMIT + LIMIT / 8 - held);
  const again = leases[0]?.admit();
  expect(again).toBeDefined();
  await new Promise(setImmediate);
  // While it holds its grant no other body is admitted: the eighth is a bound.
  expect(letIn).toEqual([0]);
  leases[0]?.release(LIMIT / 8);
  await new Promise(setImmediate);
  expect(letIn).toEqual([0, 1]);
  for (const lease of leases) lease.close();
  await again?.catch(() => {});
  expect(budget.usedBytes()).toBe(0);
});

test('a new body is refused at once when too many wait; one that has begun waits on', async () => {
  const { open, shed } = setUp();
  const begun = open('begun');
  expect(begun.admit()).toBeUndefined();
  begun.hold(LIMIT);
  const waiting = Array.from({ length: shareOf(LIMITS.bodiesWaitingMax) }, (_, at) =>
    open(String(at)).admit(),
  );
  await expect(open('new').admit()).rejects.toMatchObject({ code: 'SlowDown' });
  expect(shed).toEqual([{ reason: 'bodies', share: 'tenant' }]);
  // A tenant without waiting bodies has a place.
  const another = open('another', BOB).admit();
  const state = await Promise.race([begun.admit(), another, ...waiting, 'waits']);
  expect(state).toBe('waits');
});

test('bodies that have begun go before new ones, of which a bounded number wait', async () => {
  const { budget, open, evicted, pass } = setUp();
  const begunMax = shareOf(LIMIT / LIMITS.bodyShareBytesMin);
  const begun = Array.from({ length: begunMax }, (_, at) => open(String(at)));
  for (const lease of begun) expect(lease.admit()).toBeUndefined();
  const order: string[] = [];
  const wait = (name: string, lease = open(name)) => lease.admit()?.then(() => order.push(name));
  wait('new');
  // One body too many, though there is memory.
  begun[0]?.hold(LIMITS.chunkBytesMin);
  expect(begun[0]?.admit()).toBeUndefined();
  begun[0]?.hold(LIMITS.chunkBytesMin);
  begun[1]?.hold(LIMIT);
  wait('begun', begun[0]);
  begun[1]?.release(LIMIT);
  await new Promise(setImmediate);
  expect(order).toEqual(['begun']);
  begun[2]?.close();
  await new Promise(setImmediate);
  expect(order).toEqual(['begun', 'new']);
  // A body that was only announced is evicted, too.
  begun[3]?.idle();
  wait('next');
  await pass(LIMITS.bodyStalledMs + 500);
  expect(new Set(evicted)).toEqual(new Set(['3 SlowDown']));
  for (const lease of begun) lease.close();
  expect(budget.usedBytes()).toBe(2 * LIMITS.chunkBytesMin);
});

test('a body that was smaller than its reservation leaves room for the next one', () => {
  const { budget, open } = setUp();
  const lease = open('trickling');
  for (let piece = 0; piece < 10; piece++) {
    expect(lease.admit()).toBeUndefined();
    lease.hold(100);
  }
  expect(budget.usedBytes()).toBe(LIMITS.chunkBytesMin);
});

/** Idle bodies of one address that hold all they may. */
function crowd(open: ReturnType<typeof setUp>['open'], heldBytes: number, tenant: Tenant = ALICE) {
  const leases = [];
  for (let count = 0; ; count++) {
    const lease = open(`${tenant.account} ${count}`, tenant);
    const room = lease.admit(heldBytes);
    if (room !== undefined) return { leases, last: room.then(() => lease) };
    lease.hold(heldBytes);
    lease.idle();
    leases.push(lease);
  }
}

test('slow clients of one account that hold their share leave room for bodies of 1 MiB of another account', async () => {
  const { open, evicted, shed, pass } = setUp();
  const { leases, last } = crowd(open, LIMITS.bodyShareBytesMin);
  last.catch(() => {});
  const waiting = Array.from({ length: 300 }, (_, at) =>
    open(`late ${at}`)
      .admit()
      ?.catch(() => 'refused'),
  );
  for (let count = 0; count < 3; count++) {
    const put = open('put', BOB);
    for (let piece = 0; piece < 16; piece++) {
      expect(put.admit()).toBeUndefined();
      put.hold(64 * 1024);
    }
    put.close();
  }
  expect(new Set(shed.map((labels) => JSON.stringify(labels)))).toEqual(
    new Set([JSON.stringify({ reason: 'bodies', share: 'tenant' })]),
  );
  await pass(LIMITS.bodyBufferWaitMaxMs + 1000);
  // For waiting bodies of the same account.
  expect(evicted.every((name) => name.startsWith('alice'))).toBe(true);
  for (const lease of leases) lease.close();
  await Promise.all(waiting);
});

test('a body keeps its grant while what it was admitted for goes on, so that not all get one after the other', async () => {
  const { open } = setUp();
  const chunk = LIMIT / 8;
  const readers = Array.from({ length: 16 }, (_, at) => open(String(at)));
  for (const reader of readers) reader.hold(LIMIT / 16);
  const letIn: number[] = [];
  for (const [at, reader] of readers.entries()) {
    reader.admit(chunk)?.then(
      () => letIn.push(at),
      () => {},
    );
  }
  await new Promise(setImmediate);
  expect(letIn).toEqual([0]);
  const [first] = readers;
  first?.hold(chunk);
  first?.release(chunk / 2, { endsStep: false });
  await new Promise(setImmediate);
  expect(letIn).toEqual([0]);
  first?.release(chunk / 2);
  await new Promise(setImmediate);
  expect(letIn).toEqual([0, 1]);
  for (const reader of readers) reader.close();
});

test('requests that hold memory and need more of it go on one after the other, and do not all wait for each other', async () => {
  const { budget, open } = setUp();
  const crowd = Array.from({ length: 64 }, (_, at) => open(`copy ${at}`));
  const outer = crowd.filter((lease) => {
    const room = lease.admit(LIMIT / 64);
    room?.catch(() => {});
    if (room === undefined) lease.hold(LIMIT / 64);
    return room === undefined;
  });
  const letIn: number[] = [];
  const inner = outer.map((_, at) => {
    const needs = { tenant: ALICE, needBytes: LIMIT / 16, isWithin: true };
    const lease = budget.open({ ...needs, onEvicted: () => {} });
    lease.admit(LIMIT / 16)?.then(
      () => letIn.push(at),
      () => {},
    );
    return lease;
  });
  await new Promise(setImmediate);
  expect(letIn).toEqual([0]);
  inner[0]?.hold(LIMIT / 16);
  inner[0]?.close();
  await new Promise(setImmediate);
  expect(letIn).toEqual([0, 1]);
  for (const lease of [...crowd, ...inner]) lease.close();
  await new Promise(setImmediate);
  expect(budget.usedBytes()).toBe(0);
});

test('compositions of one account that end late leave room for bodies of another, whether these have begun or not', async () => {
  const { budget, open } = setUp();
  const chunk = LIMIT / 16;
  const piece = LIMITS.chunkBytesMin;
  const begin = (name: string) => {
    const lease = open(name, BOB);
    expect(lease.admit()).toBeUndefined();
    lease.hold(piece);
    return lease;
  };
  const begun = begin('begun');
  const compositions = Array.from({ length: 64 }, (_, at) => {
    const tenant = { ...ALICE, address: `192.0.2.${at % 16}` };
    // As 32 components take.
    const needs = { tenant, needBytes: LIMIT / 8, needsNoPlace: true, isWithin: true };
    const lease = budget.open({ ...needs, onEvicted() {} });
    const take = () => lease.hold(LIMIT / 8);
    const room = lease.admit(LIMIT / 8);
    if (room === undefined) take();
    else room.then(take, () => {});
    return lease;
  });
  await new Promise(setImmediate);
  expect(budget.usedBytes()).toBeGreaterThan(LIMIT);
  const send = async (put: BodyLease) => {
    for (let sentBytes = piece; sentBytes < chunk; sentBytes += piece) {
      const room = put.admit();
      const waits = new Promise((resolve) => setImmediate(resolve, 'waits'));
      expect(await Promise.race([room, waits])).toBe(undefined);
      put.hold(piece);
    }
    put.release(chunk);
  };
  await send(begin('new'));
  // Where others have the rest, it goes on beyond the limit.
  const holder = open('holder', { account: 'carol', signer: 'own c', address: '192.0.2.3' });
  holder.hold(LIMIT);
  await send(begun);
  for (const lease of [holder, begun, ...compositions]) lease.close();
});

test('a body that takes much is let in beside bodies of its account that take little, as soon as there is room', async () => {
  const { budget, open } = setUp();
  const begun: BodyLease[] = [];
  for (let at = 0; ; at++) {
    const lease = open('upload', { ...ALICE, address: `192.0.2.${at % 8}` });
    if (lease.admit() !== undefined) break;
    lease.hold(LIMIT / 64);
    begun.push(lease);
  }
  const reader = budget.open({
    ...{ tenant: { ...ALICE, address: `192.0.2.${begun.length % 8}` }, needBytes: LIMIT / 8 },
    onEvicted() {},
  });
  const room = reader.admit(LIMIT / 8);
  expect(room).toBeDefined();
  begun[0]?.release(LIMIT / 64);
  begun[1]?.release(LIMIT / 64);
  await room;
});

test('beside two greedy accounts another one is let in with a composition that takes an eighth of the memory', () => {
  const { budget } = setUp();
  const piece = LIMITS.chunkBytesMin;
  for (const account of ['a', 'b']) {
    for (let address = 0; address < 8; address++) {
      const tenant = { account, address: `192.0.2.${address}` };
      const lease = budget.open({ tenant, needBytes: piece, onEvicted() {} });
      let room = lease.admit(piece);
      for (; room === undefined; room = lease.admit(piece)) lease.hold(piece);
      room.catch(() => {});
    }
  }
  expect(budget.usedBytes()).toBeGreaterThan(LIMIT * 0.95);
  const needs = { tenant: BOB, needBytes: LIMIT / 8, needsNoPlace: true, isWithin: true };
  expect(budget.open({ ...needs, onEvicted() {} }).admit(LIMIT / 8)).toBeUndefined();
});

test('bodies of one account that are admitted to the end of their chunk leave the room of others as it is', async () => {
  const { budget, open } = setUp();
  const chunk = LIMIT / 64;
  const readers = Array.from({ length: 72 }, (_, at) =>
    open(String(at), { ...ALICE, address: `192.0.2.${at % 16}` }),
  );
  let [holding, waiting] = [0, 0];
  for (const reader of readers) {
    // What is on its way to the client, and the next chunk.
    reader.hold(chunk / 16);
    const take = () => {
      reader.hold(chunk);
      holding++;
    };
    const room = reader.admit(chunk);
    if (room === undefined) take();
    else {
      waiting++;
      room.then(take, () => {});
    }
  }
  await new Promise(setImmediate);
  expect([holding > 45, waiting > 10]).toEqual([true, true]);
  for (let count = 0; count < 16; count++) {
    const put = open('put', BOB);
    expect(put.admit()).toBeUndefined();
    put.hold(64 * 1024);
    readers.push(put);
  }
  for (const lease of readers) lease.close();
  expect(budget.usedBytes()).toBe(0);
});

test('one address of an account leaves room for another address of it', () => {
  const { open } = setUp();
  crowd(open, LIMITS.bodyShareBytesMin).last.catch(() => {});
  const put = open('put', ALICE_ELSEWHERE);
  for (let piece = 0; piece < 16; piece++) {
    expect(put.admit()).toBeUndefined();
    put.hold(64 * 1024);
  }
});

test('bodies beyond their share are evicted for others, as many as wait; bodies within it stay', async () => {
  const { budget, open, evicted, pass } = setUp();
  const ended: BodyLease[] = [];
  for (let heldBytes = 0; heldBytes < shareOf(LIMIT); heldBytes += MiB) {
    const onEvicted = () => {
      lease.close();
      ended.push(lease);
    };
    const lease = budget.open({ tenant: ALICE, needBytes: MiB, onEvicted });
    lease.hold(MiB);
    lease.idle();
  }
  await pass(LIMITS.bodyStalledMs);
  const others = crowd(open, LIMITS.bodyShareBytesMin, BOB);
  expect(others.leases.length).toBeGreaterThan(4);
  await pass(1000);
  await others.last;
  // One body waited and one was evicted: no more than needed.
  expect([ended.length, evicted]).toEqual([1, []]);
});

test('an idle reader releases what it can fetch again before any body is evicted', async () => {
  const { budget, evicted, pass } = setUp();
  const readers = Array.from({ length: 16 }, (_, at) => {
    const lease = budget.open({
      tenant: ALICE,
      needBytes: 1.25 * MiB,
      onShrink: () => lease.release(MiB),
      onEvicted: (error) => evicted.push(`${at} ${error.code}`),
    });
    lease.hold(1.25 * MiB);
    lease.idle();
    return lease;
  });
  readers[0]?.hold(shareOf(LIMIT) - budget.usedBytes());
  const admitted = budget.open({ tenant: ALICE, needBytes: MiB, onEvicted() {} }).admit();
  await pass(LIMITS.bodyIdleMs + 500);
  await admitted;
  expect([evicted, budget.usedBytes()]).toEqual([[], shareOf(LIMIT) - MiB + LIMITS.chunkBytesMin]);
});

test('waiting tenants take turns, and a tenant beyond its share delays nobody', async () => {
  const { open } = setUp();
  const holder = open('holder', { account: 'carol', signer: 'own c', address: '192.0.2.3' });
  holder.hold(LIMIT);
  const order: string[] = [];
  const wait = (name: string, tenant: Tenant) =>
    open(name, tenant)
      .admit()
      ?.then(() => order.push(name));
  for (const at of [0, 1, 2]) wait(`alice ${at}`, ALICE);
  for (const at of [0, 1]) wait(`bob ${at}`, BOB);
  wait('carol', { account: 'carol', signer: 'own c', address: '192.0.2.3' });
  holder.release(MiB);
  await new Promise(setImmediate);
  expect(order).toEqual(['alice 0', 'bob 0', 'alice 1', 'bob 1', 'alice 2']);
});
