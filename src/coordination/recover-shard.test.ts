import { describe, expect, test } from 'vitest';
import type { ReplicaRef } from '../ports/replication.ts';
import type { RegisteredShard, ShardRecord } from '../ports/shard-registry.ts';
import type { FoundReplica } from './rebuild-records.ts';
import { planRecovery, writeRecovery } from './recover-shard.ts';

const ref = (name: string): ReplicaRef => ({ replicaId: `replica-${name}`, nodeId: `node-${name}` });
const VOTERS = ['a', 'b', 'c'].map(ref);
const SEEN = { epoch: 4, rebuiltAtMs: 0, revision: 40, voters: VOTERS, prevVoters: null, learners: [] };

function replica(name: string, fields: Partial<FoundReplica> = {}): FoundReplica {
  return {
    ...ref(name),
    shard: 0,
    state: 'live',
    incarnation: 1,
    promised: 4,
    appliedSeq: 9,
    seen: SEEN,
    last: { seq: 9, epoch: 4 },
    witness: { seq: 9, epoch: 4 },
    ...fields,
  };
}

function registered(fields: Partial<ShardRecord> = {}): RegisteredShard {
  const record: ShardRecord = {
    incarnation: 1,
    epoch: 5,
    primary: ref('b'),
    voters: VOTERS,
    prevVoters: null,
    learners: [ref('d')],
    wanted: { voters: VOTERS },
    nonce: 'old',
    ...fields,
  };
  return { record, revision: 50, registryRevision: 60 };
}

function plan(found: FoundReplica[], options: { record?: RegisteredShard; present?: string[] } = {}) {
  const { record = registered(), present = [] } = options;
  const facts = { found, registered: record, present: new Set(present.map((name) => ref(name).replicaId)) };
  return planRecovery(facts, { from: 'replica-a', nonce: 'n' });
}

describe('a shard continues with one replica', () => {
  test('in a new history, which that replica alone can begin', () => {
    expect(plan([replica('a'), replica('b', { promised: 7 })])).toEqual({
      kind: 'recover',
      expected: 50,
      record: {
        incarnation: 2,
        epoch: 8,
        primary: null,
        voters: [ref('a')],
        prevVoters: null,
        learners: [],
        recoveredFrom: 'replica-a',
        nonce: 'n',
      },
    });
  });

  test('also if the replica was damaged, or etcd knows nothing of the shard', () => {
    expect(plan([replica('a', { state: 'quarantined' })]).kind).toBe('recover');
    const facts = { found: [replica('a', { seen: { ...SEEN, rebuiltAtMs: 9 } })], registered: undefined };
    expect(planRecovery({ ...facts, present: new Set() }, { from: 'replica-a', nonce: 'n' })).toMatchObject({
      expected: 0,
      record: { incarnation: 2, epoch: 5, rebuiltAtMs: 9 },
    });
  });

  test.each([
    ['it was not found', [replica('b')], {}],
    ['it is not whole', [replica('a', { state: 'installing' })], {}],
    ['it was taken out', [replica('a', { state: 'removed' })], {}],
    ['its history was given up', [replica('a'), replica('d', { incarnation: 2 })], {}],
    ['another voter is there', [replica('a')], { present: ['a', 'b'] }],
    [
      'a voter of before the change is there',
      [replica('a')],
      { present: ['e'], record: registered({ prevVoters: [ref('e')] }) },
    ],
    [
      'a voter that etcd has forgotten is there',
      [replica('a', { seen: { ...SEEN, voters: [ref('a'), ref('f')] } })],
      { present: ['f'] },
    ],
    [
      'that was said already',
      [replica('a')],
      {
        record: registered({ recoveredFrom: 'replica-a', primary: null, voters: [ref('a')], incarnation: 2 }),
      },
    ],
  ])('not when %s', (_why, found, options) => {
    expect(plan(found, options).kind).toBe('cannot');
  });

  test('while nodes that are no voters run', () => {
    expect(plan([replica('a')], { present: ['a', 'x', 'd'] }).kind).toBe('recover');
  });
});

describe('the record of a recovered shard', () => {
  const facts = { found: [replica('a')], registered: registered(), present: new Set<string>() };
  const choice = { from: 'replica-a', nonce: 'n' };

  /** Before the first swap somebody else writes these fields. */
  function registryWith(fields: Partial<ShardRecord>) {
    let present = { ...registered(fields), revision: 51 };
    const registry = {
      read: async () => present,
      async swap(_shard: number, { expected, record }: { expected: number; record: ShardRecord }) {
        if (expected !== present.revision) return { kind: 'lost' } as const;
        present = { record, revision: expected + 1, registryRevision: 70 };
        return { kind: 'done', revision: present.revision } as const;
      },
    };
    return { registry, nonce: () => present.record.nonce };
  }

  test('is written although the wish for its nodes changes meanwhile', async () => {
    const { registry, nonce } = registryWith({ wanted: { voters: ['d', 'e', 'f'].map(ref) } });
    expect(await writeRecovery(registry, 0, facts, choice)).toBe('done');
    expect(nonce()).toBe('n');
  });

  test('is not written when more of it has changed', async () => {
    const { registry, nonce } = registryWith({ epoch: 6, primary: ref('a'), nonce: 'new' });
    expect(await writeRecovery(registry, 0, facts, choice)).toBe('changed');
    expect(nonce()).toBe('new');
  });
});
