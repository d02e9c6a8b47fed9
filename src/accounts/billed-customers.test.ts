import { describe, expect, test } from 'vitest';
import { billedHistory } from './billed-customers.ts';

const TRIAL = { quotaTB: 1, endsAtMs: 30 };
const at = (state: 'trial' | 'paid' | 'suspended' | 'deleted', fromMs: number) => ({ state, fromMs });

describe('days are charged', () => {
  test.each([
    {
      title: 'from the end of a trial on, though nothing ran then',
      history: [at('trial', 0)],
      billed: [at('trial', 0), at('paid', 30)],
    },
    {
      title: 'from the end of a trial on, though it was made a paid account later',
      history: [at('trial', 0), at('paid', 33)],
      billed: [at('trial', 0), at('paid', 30), at('paid', 33)],
    },
    {
      title: 'from the moment at which a trial was ended before its time',
      history: [at('trial', 0), at('paid', 20)],
      billed: [at('trial', 0), at('paid', 20)],
    },
    {
      title: 'from the end of a trial on, where it was suspended over it',
      history: [at('trial', 0), at('suspended', 10), at('paid', 40)],
      billed: [at('trial', 0), at('trial', 10), at('suspended', 30), at('paid', 40)],
    },
    {
      title: 'from the end of a trial on, where it was suspended and restored within it',
      history: [at('trial', 0), at('suspended', 10), at('trial', 15)],
      billed: [at('trial', 0), at('trial', 10), at('trial', 15), at('paid', 30)],
    },
    {
      title: 'as deleted, where a trial was deleted within it',
      history: [at('trial', 0), at('deleted', 10)],
      billed: [at('trial', 0), at('deleted', 10)],
    },
    {
      title: 'while a paid account is suspended',
      history: [at('trial', 0), at('paid', 5), at('suspended', 10)],
      billed: [at('trial', 0), at('paid', 5), at('suspended', 10)],
    },
  ])('$title', ({ history, billed }) => {
    expect(billedHistory({ history, trial: TRIAL })).toEqual(billed);
  });

  test('as its history says, where there was no trial', () => {
    const history = [at('paid', 0), at('suspended', 10)];
    expect(billedHistory({ history })).toEqual(history);
  });
});
