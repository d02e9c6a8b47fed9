// Price lists and invoices, as they are read. Invoices are only ever added, by rising ids, so that who has read them up to one
// knows them all for ever.

import { behind, TABLE_END } from '../../base/table-rows.ts';
import type { InvoiceHead } from '../../ports/metadata/billing.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { type InvoiceRecord, invoiceCodec, priceListCodec } from '../../types/records/billing-records.ts';
import { END_OF_TIME_MS, u48 } from '../schema/key-parts.ts';
import { BILLING_ROW, invoiceRow, TABLES } from '../schema/keyspace.ts';
import { decodeBilling } from './billing-rows.ts';

/** More than there may be (PRICE_LISTS_MAX of src/billing). */
const LISTS_READ_MAX = 2000;

export const listPriceLists: QuerySpec<QueryOf<'list-price-lists'>, ResultOf<'list-price-lists'>> = {
  async run(_query, state) {
    const view = state.view(TABLES.buckets);
    try {
      const all = { table: TABLES.priceLists, gte: behind(undefined), lt: TABLE_END, limit: LISTS_READ_MAX };
      const rows = await view.range(all);
      const [row] = await view.rows([BILLING_ROW]);
      const billing = decodeBilling(row);
      const lists = rows.map(({ value }) => priceListCodec.decode(value));
      return { lists, revision: billing.priceRevision, billing };
    } finally {
      view.close();
    }
  },
};

export const listInvoices: QuerySpec<QueryOf<'list-invoices'>, ResultOf<'list-invoices'>> = {
  async run({ after, limit }, state) {
    const range = { table: TABLES.invoices, gte: u48(after + 1), lt: u48(END_OF_TIME_MS), limit };
    const view = state.view(TABLES.buckets);
    try {
      const rows = await view.range(range);
      const [billing] = await view.rows([BILLING_ROW]);
      const heads = rows.map(({ value }) => headOf(invoiceCodec.decode(value)));
      return { heads, invoiceCount: decodeBilling(billing).invoiceCount };
    } finally {
      view.close();
    }
  },
};

export const getInvoices: QuerySpec<QueryOf<'get-invoices'>, ResultOf<'get-invoices'>> = {
  async run({ ids }, state) {
    const rows = await state.rows(ids.map(invoiceRow));
    return { invoices: rows.map((row) => (row === undefined ? null : invoiceCodec.decode(row))) };
  },
};

function headOf({
  id,
  controlInvoiceId,
  month,
  customer,
  control,
  channel,
  governance,
}: InvoiceRecord): InvoiceHead {
  return {
    id,
    controlInvoiceId,
    month,
    customerId: customer.id,
    accountId: customer.accountId,
    controlId: control.id,
    ...(channel && { channelId: channel.id }),
    ...(governance && { governanceId: governance.id }),
  };
}
