import { expect, test } from 'vitest';
import type { InvoiceHead } from '../ports/metadata/billing.ts';
import type { AccountId } from '../types/names.ts';
import { filterHeads, type InvoiceFilter } from './invoice-book.ts';

const COUNT = 100_000;
const heads = Array.from(
  { length: COUNT },
  (_, at): InvoiceHead => ({
    id: at + 1,
    controlInvoiceId: 1,
    month: at < COUNT / 2 ? '2026-01' : '2026-02',
    customerId: at % (COUNT / 2),
    accountId: String(at).padStart(12, '0') as AccountId,
    controlId: 7,
  }),
);

/** How many are found, the first one, and in how many steps. */
function look(filter: InvoiceFilter) {
  const steps = filterHeads(heads, filter);
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done === true) return { found: step.value.length, first: step.value[0]?.id, count };
  }
}

test('a list of many invoices is filtered in short steps, whatever of it is asked for', () => {
  const within = { controlAccountId: 7 };
  const count = 1 + COUNT / 4000;
  expect(look({ within })).toEqual({ found: COUNT, first: COUNT, count });
  expect(look({ within, to: '2026-01-31' })).toEqual({ found: COUNT / 2, first: COUNT / 2, count });
  expect(look({ within, latest: true })).toEqual({ found: COUNT / 2, first: COUNT, count });
  expect(look({ id: 3 })).toEqual({ found: 1, first: 3, count });
  expect(look({ within: { controlAccountId: 8 } })).toEqual({ found: 0, first: undefined, count });
});
