// Closes a month, in steps of which each may be repeated: begin, pages of invoices, end. An invoice that is there never changes,
// so whatever is sent again, or computed otherwise by then, changes nothing.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { RowPut } from '../../ports/state-machine.ts';
import { nextMonth } from '../../types/months.ts';
import { billingCodec, type InvoiceRecord, invoiceCodec } from '../../types/records/billing-records.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { readU48, u48 } from '../schema/key-parts.ts';
import { BILLING_ROW, controlInvoiceRow, customerInvoiceRow, invoiceRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findBilling, isBeingClosed } from './billing-rows.ts';

export const beginMonth = defineCommand<CommandOf<'begin-month'>, OutcomeOf<'begin-month'>>({
  locks: () => [exclusive(LOCK.billing)],

  look(_command, view) {
    findBilling(view);
  },

  decide({ month }, view) {
    const billing = findBilling(view);
    const { begunMonth, closedMonth } = billing;
    if (begunMonth !== undefined) {
      if (isBeingClosed(billing, month)) return refuse({ kind: 'begun' });
      if (month <= begunMonth) return refuse({ kind: 'closed' });
      const next = begunMonth === closedMonth ? nextMonth(begunMonth) : begunMonth;
      if (month !== next) return refuse({ kind: 'out-of-order', next });
    }
    const begun = billingCodec.encode({ ...billing, begunMonth: month });
    return { outcome: { kind: 'begun' }, puts: [put(BILLING_ROW, begun)] };
  },
});

export const closeInvoices = defineCommand<CommandOf<'close-invoices'>, OutcomeOf<'close-invoices'>>({
  locks: () => [exclusive(LOCK.billing)],

  look({ month, invoices }, view) {
    findBilling(view);
    for (const { customer, control } of invoices) {
      view.row(customerInvoiceRow(month, customer.id));
      view.row(controlInvoiceRow(month, control.id));
    }
  },

  decide({ month, invoices }, view, { nowMs }) {
    const billing = findBilling(view);
    if (!isBeingClosed(billing, month)) return refuse({ kind: 'not-begun' });
    let { invoiceCount, controlInvoiceCount } = billing;
    const puts: RowPut[] = [];
    const controls = new Map<number, number>();
    /** The number that all invoices of a control account share in this month. */
    const controlInvoiceOf = (controlId: number): number => {
      const address = controlInvoiceRow(month, controlId);
      const row = view.row(address);
      const known = row === undefined ? controls.get(controlId) : readU48(row);
      if (known !== undefined) return known;
      controls.set(controlId, ++controlInvoiceCount);
      puts.push(put(address, u48(controlInvoiceCount)));
      return controlInvoiceCount;
    };
    const missing = invoices.filter(
      ({ customer }) => view.row(customerInvoiceRow(month, customer.id)) === undefined,
    );
    for (const invoice of missing) {
      const controlInvoiceId = controlInvoiceOf(invoice.control.id);
      const id = ++invoiceCount;
      const record: InvoiceRecord = { ...invoice, id, controlInvoiceId, month, closedAtMs: nowMs };
      puts.push(put(invoiceRow(id), invoiceCodec.encode(record)));
      puts.push(put(customerInvoiceRow(month, invoice.customer.id), u48(id)));
    }
    const counts = { createdCount: missing.length, existingCount: invoices.length - missing.length };
    const outcome = { kind: 'closed' as const, ...counts };
    if (missing.length === 0) return refuse(outcome);
    puts.push(put(BILLING_ROW, billingCodec.encode({ ...billing, invoiceCount, controlInvoiceCount })));
    return { outcome, puts };
  },
});

export const endMonth = defineCommand<CommandOf<'end-month'>, OutcomeOf<'end-month'>>({
  locks: () => [exclusive(LOCK.billing)],

  look(_command, view) {
    findBilling(view);
  },

  decide({ month }, view) {
    const billing = findBilling(view);
    if (billing.closedMonth !== undefined && month <= billing.closedMonth) return refuse({ kind: 'ended' });
    if (!isBeingClosed(billing, month)) return refuse({ kind: 'not-begun' });
    const ended = billingCodec.encode({ ...billing, closedMonth: month });
    return { outcome: { kind: 'ended' }, puts: [put(BILLING_ROW, ended)] };
  },
});
