// Checks of price lists and invoices for fsck: each lies under its own key, and months lead to all of them.
import { compareBytes, fromUtf8 } from '../../base/bytes/bytes.ts';
import { invoiceCodec, priceListCodec } from '../../types/records/billing-records.ts';
import type { RowCheck } from '../checks/scan.ts';
import { readU48 } from '../schema/key-parts.ts';
import { BILLING_ROW, controlInvoiceRow, customerInvoiceRow, invoiceRow } from '../schema/keyspace.ts';
import { decodeBilling } from './billing-rows.ts';

/** Bytes of YYYY-MM in the keys of months. */
const MONTH_BYTES = 7;

export const checkPriceList: RowCheck = async (row, scan) => {
  const { from } = priceListCodec.decode(row.value);
  if (from !== fromUtf8(row.key)) scan.found('broken-row', { table: 'priceLists', note: from });
};

export const checkInvoice: RowCheck = async (row, scan) => {
  const { id, month, customer, control, controlInvoiceId } = invoiceCodec.decode(row.value);
  const place = { table: 'invoices', note: `${id}` } as const;
  if (id !== readU48(row.key)) scan.found('broken-row', place);
  const leads = await scan.row(customerInvoiceRow(month, customer.id));
  if (leads === undefined || readU48(leads) !== id) scan.found('index-missing', place);
  const shared = await scan.row(controlInvoiceRow(month, control.id));
  if (shared === undefined || readU48(shared) !== controlInvoiceId) scan.found('index-missing', place);
  const { invoiceCount } = decodeBilling(await scan.row(BILLING_ROW));
  if (id > invoiceCount) scan.found('counter-wrong', place);
};

export const checkCustomerInvoice: RowCheck = async (row, scan) => {
  const id = readU48(row.value);
  const found = await scan.row(invoiceRow(id));
  const invoice = found && invoiceCodec.decode(found);
  const own = invoice && customerInvoiceRow(invoice.month, invoice.customer.id).key;
  if (own === undefined || compareBytes(own, row.key) !== 0)
    scan.found('index-orphaned', { table: 'customerInvoices', note: `${id}` });
};

export const checkControlInvoice: RowCheck = async (row, scan) => {
  const { controlInvoiceCount } = decodeBilling(await scan.row(BILLING_ROW));
  const note = `${fromUtf8(row.key.subarray(0, MONTH_BYTES))} ${readU48(row.key, MONTH_BYTES)}`;
  if (readU48(row.value) > controlInvoiceCount)
    scan.found('counter-wrong', { table: 'controlInvoices', note });
};

export const checkBilling: RowCheck = async (row, scan) => {
  const { invoiceCount } = decodeBilling(row.value);
  const note = `${invoiceCount}`;
  if (invoiceCount > 0)
    await scan.expectRow(invoiceRow(invoiceCount), 'counter-wrong', { table: 'billing', note });
};
