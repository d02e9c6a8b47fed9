// What the operator API and the account management API stand on in both forms, beside what each form has of its own. Wiring only.
import { createTenancy } from '../src/accounts/create-tenancy.ts';
import { createInvoices } from '../src/accounts/invoices.ts';
import { createUsageBook } from '../src/accounts/usage-book.ts';
import { createUsages } from '../src/accounts/usages.ts';
import type { ProcessContext } from '../src/admin/process-context.ts';
import { resetRootMfa } from '../src/gateway/identity-api/mfa-devices.ts';
import { createPasswords } from '../src/gateway/identity-api/passwords.ts';
import { createManagementApi, type ManagementApi } from '../src/gateway/management-api/management-api.ts';
import { createOperatorApi } from '../src/gateway/operator-api/operator-api.ts';
import type { OperatorContext } from '../src/gateway/operator-api/operator-context.ts';
import { setAccountQuota } from '../src/metadata/quotas/operate-quotas.ts';
import { createSmtpMail } from '../src/platform/mail/smtp-mail.ts';
import { createPdfPages } from '../src/platform/pdf/pdf-pages.ts';
import type { KeyringPort } from '../src/ports/keyring.ts';

/** What each form has of its own for the operator API. */
type Operated = Omit<
  OperatorContext,
  'invoices' | 'lifecycleDayMs' | 'logins' | 'mails' | 'pages' | 'tenancy' | 'usageBook' | 'usages'
>;

/** Both APIs, for the gateway. Mails that wait are sent until the process ends. */
export function accountApis(
  { config, clock, random, log, closing }: Omit<ProcessContext, 'loop' | 'telemetry'>,
  operated: Operated & { keyring: KeyringPort },
): { operatorApi: ReturnType<typeof createOperatorApi>; managementApi: ManagementApi } {
  const { metadata, accounts, keyring } = operated;
  const hasher = createPasswords({ clock, random });
  const { smtpUrl, from, resetUrl } = config.mail;
  const post = smtpUrl === undefined ? undefined : createSmtpMail({ url: smtpUrl, from });
  const { tenancy, logins, billed, mails } = createTenancy({
    metadata,
    accounts,
    keyring,
    hasher,
    clock,
    random,
    setPlanQuota: (accountId, quota) => setAccountQuota(metadata, { accountId, source: 'plan', quota }),
    log,
    mail: { post, resetUrl },
    resetRootMfa: (accountId) => resetRootMfa({ metadata, clock, random }, accountId),
  });
  const stopping = new AbortController();
  closing.defer(() => stopping.abort());
  void mails.run(stopping.signal);
  const usages = createUsages(metadata, clock);
  const invoices = createInvoices({ metadata, usages, customers: billed, clock });
  const usageBook = createUsageBook(usages, clock);
  const pages = createPdfPages();
  closing.defer(() => pages.close());
  const { getsPerMinute, putsPerMinute, postsPerMinute, deletesPerMinute } = config.api;
  const lifecycleDayMs = config.lifecycle.dayMs;
  return {
    operatorApi: createOperatorApi({
      ...operated,
      tenancy,
      logins,
      mails,
      invoices,
      usages,
      usageBook,
      pages,
      lifecycleDayMs,
    }),
    managementApi: createManagementApi({
      tenancy,
      mails,
      invoices,
      usageBook,
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
