// What the operator API and the account management API stand on in both forms, beside what each form has of its own. Wiring only.
import type { Accounts } from '../src/accounts/accounts.ts';
import { createTenancy } from '../src/accounts/create-tenancy.ts';
import { createInvoiceBook } from '../src/accounts/invoice-book.ts';
import { createUsages } from '../src/accounts/usages.ts';
import type { ProcessContext } from '../src/admin/process-context.ts';
import { createPasswords } from '../src/gateway/identity-api/passwords.ts';
import { createManagementApi, type ManagementApi } from '../src/gateway/management-api/management-api.ts';
import type { OperatorContext } from '../src/gateway/operator-api/operator-context.ts';
import { createPdfPages } from '../src/platform/pdf/pdf-pages.ts';
import type { KeyringPort } from '../src/ports/keyring.ts';
import type { MetadataPort } from '../src/ports/metadata/port.ts';

export interface AccountApis {
  operator: Pick<OperatorContext, 'invoices' | 'lifecycleDayMs' | 'logins' | 'pages' | 'tenancy'>;
  managementApi: ManagementApi;
}

export function accountApis(
  { config, clock, random, log }: Pick<ProcessContext, 'clock' | 'config' | 'log' | 'random'>,
  { metadata, accounts, keyring }: { metadata: MetadataPort; accounts: Accounts; keyring: KeyringPort },
): AccountApis {
  const hasher = createPasswords({ clock, random });
  const { tenancy, logins } = createTenancy({ metadata, accounts, keyring, hasher, clock, random });
  const invoices = createInvoiceBook(metadata);
  const { getsPerMinute, putsPerMinute, postsPerMinute, deletesPerMinute } = config.api;
  return {
    operator: {
      tenancy,
      logins,
      invoices,
      pages: createPdfPages(),
      lifecycleDayMs: config.lifecycle.dayMs,
    },
    managementApi: createManagementApi({
      tenancy,
      invoices,
      usages: createUsages(metadata),
      metadata,
      clock,
      random,
      log,
      rateLimits: {
        GET: getsPerMinute,
        PUT: putsPerMinute,
        POST: postsPerMinute,
        DELETE: deletesPerMinute,
      },
    }),
  };
}
