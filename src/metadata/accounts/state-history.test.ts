import { expect, test } from 'vitest';
import { createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { billedHistory } from '../../accounts/billed-customers.ts';
import { computeInvoice } from '../../billing/compute-invoice.ts';
import type { CustomerRecord } from '../../types/records/tenancy-records.ts';
import { DAY_MS } from '../../types/usage.ts';
import { withState } from './state-history.ts';

const FIRST_MS = Date.UTC(2026, 2, 3, 5);
const LISTS = [{ from: '2026-01-01', currency: 'USD', fractionDigits: 2, prices: {} }] as never;

test.each(Array.from({ length: 40 }, (_, at) => at))(
  'seed %i: an account that is suspended and restored all day has a short history, and is charged as by a whole one',
  (seed) => {
    const random = createSeededRandom(seed);
    const choose = (bound: number) => (random.bytes(1)[0] ?? 0) % bound;
    const trial = { quotaTB: 1, endsAtMs: FIRST_MS + choose(12) * DAY_MS + choose(200) * 60_000 };
    const whole: CustomerRecord['history'] = [{ state: 'trial', fromMs: FIRST_MS }];
    let short = whole;
    let isOnTrial = true;
    for (let nowMs = FIRST_MS, day = 0; day < 20; day++) {
      const beginsMs = FIRST_MS + day * DAY_MS;
      for (let step = choose(3) * 40; step > 0; step--) {
        nowMs = Math.max(nowMs + 1, beginsMs + choose(250) * 60_000);
        const last = whole.at(-1)?.state;
        isOnTrial &&= nowMs < trial.endsAtMs && choose(80) > 0;
        const next = last === 'suspended' ? (isOnTrial ? 'trial' : 'paid') : 'suspended';
        whole.push({ state: next, fromMs: nowMs });
        short = withState(short, next, nowMs);
      }
    }
    const daysBy = (history: CustomerRecord['history']) =>
      ['2026-03', '2026-04'].map(
        (month) =>
          computeInvoice({ month, history: billedHistory({ history, trial }), days: [], priceLists: LISTS })
            .days,
      );
    expect(daysBy(short)).toEqual(daysBy(whole));
    expect(short.length).toBeLessThanOrEqual(20 * 20);
  },
);
