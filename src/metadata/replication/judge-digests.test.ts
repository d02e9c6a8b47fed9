import { expect, test } from 'vitest';
import { judgeDigests } from './judge-digests.ts';

const THREE = { voters: ['a', 'b', 'c'] };

test.each([
  ['all agree', { a: 'x', b: 'x', c: 'x' }, THREE, { kind: 'same' }],
  ['who does not tell is passed over', { a: 'x', c: 'x' }, THREE, { kind: 'same' }],
  ['nobody but one tells', { a: 'x' }, THREE, { kind: 'same' }],
  ['one is odd', { a: 'x', b: 'y', c: 'x' }, THREE, { kind: 'odd', odd: ['b'] }],
  ['one is odd, whoever asks', { a: 'y', b: 'x', c: 'x' }, THREE, { kind: 'odd', odd: ['a'] }],
  ['two tell, and differ', { a: 'x', b: 'y' }, THREE, { kind: 'undecided' }],
  ['three differ', { a: 'x', b: 'y', c: 'z' }, THREE, { kind: 'undecided' }],
  ['of two voters none is more', { a: 'x', b: 'y' }, { voters: ['a', 'b'] }, { kind: 'undecided' }],
  ['a learner has no word', { a: 'x', b: 'y', l: 'x' }, THREE, { kind: 'undecided' }],
  ['a learner may be odd', { a: 'x', b: 'x', l: 'y' }, THREE, { kind: 'odd', odd: ['l'] }],
  [
    'while voters change, both sets have a word',
    { a: 'x', b: 'x', d: 'y', e: 'y', c: 'x' },
    { voters: ['a', 'd', 'e'], prevVoters: ['a', 'b', 'c'] },
    { kind: 'undecided' },
  ],
])('%s', (_, digests, sets, verdict) => {
  expect(judgeDigests(new Map(Object.entries(digests)), sets)).toEqual(verdict);
});
