import { expect, test } from 'vitest';
import type { ReplicaRef } from '../../ports/replication.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';
import { type Lags, nextStep } from './convergence.ts';

const ref = (name: string): ReplicaRef => ({ nodeId: name, replicaId: name });
const [A, B, C, D] = ['a', 'b', 'c', 'd'].map(ref) as [ReplicaRef, ReplicaRef, ReplicaRef, ReplicaRef];
const record = (changes: Partial<ShardRecord> = {}): ShardRecord => ({
  incarnation: 1,
  epoch: 7,
  primary: A,
  voters: [A, B, C],
  prevVoters: null,
  learners: [],
  nonce: 'n',
  ...changes,
});
const allThere: Lags = { lagOf: () => 0, countsOf: () => true };
const without = (name: string): Lags => ({ lagOf: () => 0, countsOf: (id) => id !== name });

test('nothing wanted, or all as wanted: nothing is done', () => {
  expect(nextStep(record(), A, allThere)).toEqual({ kind: 'none' });
  expect(nextStep(record({ wanted: { voters: [C, B, A] } }), A, allThere)).toEqual({ kind: 'none' });
});

test('a change under way is ended before anything else', () => {
  const step = nextStep(record({ prevVoters: [A, B], wanted: { voters: [A, B, D] } }), A, allThere);
  expect(step).toMatchObject({ kind: 'rewrite', record: { prevVoters: null } });
});

test('a new voter is a learner first, and a voter when it is complete', () => {
  const wanted = { voters: [A, B, D] };
  expect(nextStep(record({ wanted }), A, allThere)).toMatchObject({
    kind: 'rewrite',
    record: { learners: [D], epoch: 7 },
  });
  expect(nextStep(record({ wanted, learners: [D] }), A, without('d'))).toEqual({ kind: 'none' });
  expect(nextStep(record({ wanted, learners: [D] }), A, allThere)).toMatchObject({
    kind: 'change-voters',
    record: { epoch: 8, primary: A, voters: [A, B, D], prevVoters: [A, B, C], learners: [] },
  });
});

test('never while a staying voter is behind', () => {
  const wanted = { voters: [A, B, D] };
  expect(nextStep(record({ wanted, learners: [D] }), A, without('b'))).toEqual({ kind: 'none' });
  const far: Lags = { lagOf: (id) => (id === 'd' ? 1001 : 0), countsOf: () => true };
  expect(nextStep(record({ wanted, learners: [D] }), A, far)).toEqual({ kind: 'none' });
});

test('a primary that is to leave hands over to one that stays', () => {
  const wanted = { voters: [B, C, D] };
  expect(nextStep(record({ wanted, learners: [D] }), A, allThere)).toMatchObject({
    kind: 'hand-over',
    heir: 'b',
    record: { epoch: 8, primary: B, voters: [A, B, C], learners: [D] },
  });
});

test('another primary is wanted: it gets the shard when all have everything', () => {
  const wanted = { voters: [A, B, C], primary: 'c' };
  expect(nextStep(record({ wanted }), A, allThere)).toMatchObject({
    kind: 'hand-over',
    heir: 'c',
    record: { epoch: 8, primary: C },
  });
  expect(nextStep(record({ wanted }), A, without('b'))).toEqual({ kind: 'none' });
  expect(nextStep(record({ wanted }), C, allThere)).toEqual({ kind: 'none' });
});

test('unwanted learners are removed', () => {
  const step = nextStep(record({ learners: [D], wanted: { voters: [A, B, C] } }), A, allThere);
  expect(step).toMatchObject({ kind: 'rewrite', record: { learners: [] } });
});

test('all others are wanted: the primary goes with all but one of them first, and then hands over', () => {
  const wanted = { voters: ['x', 'y', 'z'].map(ref) };
  const [X, Y, Z] = wanted.voters as [ReplicaRef, ReplicaRef, ReplicaRef];
  const first = nextStep(record({ wanted, learners: [X, Y, Z] }), A, allThere);
  expect(first).toMatchObject({
    kind: 'change-voters',
    record: { epoch: 8, primary: A, voters: [A, Y, Z], prevVoters: [A, B, C], learners: [X] },
  });
  const between = record({ wanted, voters: [A, Y, Z], learners: [X] });
  expect(nextStep(between, A, allThere)).toMatchObject({ kind: 'hand-over', heir: 'y' });
  expect(nextStep({ ...between, primary: Y }, Y, allThere)).toMatchObject({
    kind: 'change-voters',
    record: { primary: Y, voters: [X, Y, Z], prevVoters: [A, Y, Z], learners: [] },
  });
});

test('a voter that is gone for good is replaced though it never answers', () => {
  const wanted = { voters: [A, B, D], primary: 'a' };
  const gone: Lags = {
    lagOf: (id) => (id === 'c' ? undefined : 0),
    countsOf: (id) => id !== 'c',
  };
  const steps: string[] = [];
  let now = record({ wanted });
  for (;;) {
    const step = nextStep(now, A, gone);
    steps.push(step.kind);
    if (step.kind === 'none') break;
    now = step.record;
  }
  expect(steps).toEqual(['rewrite', 'change-voters', 'rewrite', 'none']);
  expect(now).toMatchObject({ voters: [A, B, D], prevVoters: null, learners: [], primary: A });
});
