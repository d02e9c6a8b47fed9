// A price list from a day on. What it may say has been checked (src/billing/price-lists.ts); here it is held against the months
// whose invoices are written: their prices never change.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { billingCodec, type PriceListRecord, priceListCodec } from '../../types/records/billing-records.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { BILLING_ROW, priceListRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findBilling } from './billing-rows.ts';

export const setPriceList = defineCommand<CommandOf<'set-price-list'>, OutcomeOf<'set-price-list'>>({
  locks: () => [exclusive(LOCK.billing)],

  look(_command, view) {
    findBilling(view);
  },

  decide({ list: given, ifRevision }, view, { nowMs }) {
    const billing = findBilling(view);
    const { begunMonth: month } = billing;
    if (month !== undefined && given.from.slice(0, month.length) <= month)
      return refuse({ kind: 'month-begun', month });
    if (billing.priceRevision !== ifRevision) return refuse({ kind: 'conflict' });
    const list: PriceListRecord = { ...given, changedAtMs: nowMs };
    const changed = { ...billing, priceRevision: ifRevision + 1 };
    return {
      outcome: { kind: 'set', list },
      puts: [
        put(priceListRow(list.from), priceListCodec.encode(list)),
        put(BILLING_ROW, billingCodec.encode(changed)),
      ],
    };
  },
});
