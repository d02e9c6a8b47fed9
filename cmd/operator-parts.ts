// What the operator API stands on in both forms, beside what each form has of its own. Wiring only.
import { createInvoiceBook } from '../src/accounts/invoice-book.ts';
import type { Config } from '../src/config/schema.ts';
import type { OperatorContext } from '../src/gateway/operator-api/operator-context.ts';
import { createPdfPages } from '../src/platform/pdf/pdf-pages.ts';
import type { MetadataPort } from '../src/ports/metadata/port.ts';

export function operatorParts(
  config: Config,
  metadata: MetadataPort,
): Pick<OperatorContext, 'invoices' | 'lifecycleDayMs' | 'pages'> {
  return {
    invoices: createInvoiceBook(metadata),
    pages: createPdfPages(),
    lifecycleDayMs: config.lifecycle.dayMs,
  };
}
