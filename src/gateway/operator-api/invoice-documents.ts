// Invoices as files, for operators: one, those of a control account and month, or those of a month.
import type { Invoice, InvoiceBook, InvoiceFilter } from '../../accounts/invoice-book.ts';
import { noSuch } from '../../accounts/tenancy-rules.ts';
import { nextTurn } from '../../base/async/next-turn.ts';
import { finishInTurns } from '../../base/async/steps.ts';
import { invoicesCsv } from '../../billing/invoice-csv.ts';
import { invoiceSheet, statementSheet } from '../../billing/invoice-sheet.ts';
import type { PagePort } from '../../ports/pages.ts';
import { invalidFields } from '../../types/errors.ts';

/** Rows of a statement in print, and of a CSV file. */
const PRINTED_ROWS_MAX = 2000;
const CSV_ROWS_MAX = 20_000;
const PAGE = 500;

export interface InvoiceDocument {
  fileName: string;
  contentType: string;
  bytes: Uint8Array;
}

/**
 * Of a list without invoices the head alone. Throws ValidationError for more than a file may hold; NoSuchEntity for an invoice
 * that is not there, and where there is nothing to print.
 */
export async function invoiceDocument(
  parts: { invoices: InvoiceBook; pages: PagePort },
  filter: InvoiceFilter,
  { format }: { format: 'csv' | 'pdf' },
): Promise<InvoiceDocument> {
  const rowsMax = format === 'csv' ? CSV_ROWS_MAX : PRINTED_ROWS_MAX;
  const found = await readAll(parts.invoices, filter, rowsMax);
  const [first] = found;
  const isList = filter.id === undefined && filter.controlInvoiceId === undefined;
  if (first === undefined && !(isList && format === 'csv')) throw noSuch('invoice');
  if (format === 'csv') {
    const bytes = await finishInTurns(invoicesCsv(found), nextTurn);
    return { fileName: `${nameOf(filter)}.csv`, contentType: 'text/csv', bytes };
  }
  if (filter.id === undefined && new Set(found.map(({ controlInvoiceId }) => controlInvoiceId)).size > 1) {
    const problem = 'name an invoice or a control invoice: several are printed as CSV alone';
    throw invalidFields({ format: problem });
  }
  const sheet = filter.id === undefined || first === undefined ? statementSheet(found) : invoiceSheet(first);
  const bytes = await parts.pages.pdf(sheet);
  return { fileName: `${nameOf(filter)}.pdf`, contentType: 'application/pdf', bytes };
}

async function readAll(invoices: InvoiceBook, filter: InvoiceFilter, rowsMax: number): Promise<Invoice[]> {
  const found: Invoice[] = [];
  for (let page = 1; ; page++) {
    const { items, total } = await invoices.list(filter, { page, size: PAGE });
    if (total > rowsMax) {
      const problem = `these are ${total} invoices, and a file has ${rowsMax} at most: ask for fewer`;
      throw invalidFields({ format: problem });
    }
    found.push(...items);
    if (items.length < PAGE) return found;
  }
}

function nameOf({ id, controlInvoiceId, from, periodEnd }: InvoiceFilter): string {
  if (id !== undefined) return `invoice-${id}`;
  if (controlInvoiceId !== undefined) return `control-invoice-${controlInvoiceId}`;
  const end = periodEnd ?? from;
  return end === undefined ? 'invoices' : `invoices-${end.slice(0, 'YYYY-MM'.length)}`;
}
