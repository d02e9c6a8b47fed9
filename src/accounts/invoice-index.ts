// The heads of all invoices in memory, about 100 bytes each, by which lists are filtered and paged. Invoices are only ever added,
// with rising ids and later months, so each look asks the system shard for what is behind the last one known.
import type { InvoiceHead } from '../ports/metadata/billing.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import { requireDone } from '../types/require-done.ts';

const PAGE = 1000;

export interface InvoiceIndex {
  /** All heads, by id ascending: of the moment of the call, or later. */
  read(): Promise<readonly InvoiceHead[]>;
}

export function createInvoiceIndex(metadata: MetadataPort): InvoiceIndex {
  let heads: InvoiceHead[] = [];
  let reading: Promise<void> = Promise.resolve();

  async function catchUp(): Promise<void> {
    for (;;) {
      const query = { after: heads.length, limit: PAGE };
      const page = requireDone(await metadata.query({ shard: SYSTEM_SHARD }, 'list-invoices', query));
      // The shard has lost its newest entries for good (R23): what is known may be what it has lost.
      if (page.invoiceCount < heads.length) {
        heads = [];
        continue;
      }
      heads.push(...page.heads);
      if (page.heads.length < PAGE) return;
    }
  }

  return {
    async read() {
      // One after the other: two at once would add the same heads twice. A failure is its caller's alone.
      reading = reading.then(catchUp, catchUp);
      await reading;
      return heads;
    },
  };
}
