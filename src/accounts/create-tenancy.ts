// The tree of accounts, put together of its parts (tenancy.ts says what it does).
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { KeyringPort } from '../ports/keyring.ts';
import type { MailPort } from '../ports/mail.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import type { Logger } from '../ports/telemetry.ts';
import type { Accounts } from './accounts.ts';
import { type BilledCustomers, createBilledCustomers } from './billed-customers.ts';
import { type CustomersDeps, createCustomers } from './customers.ts';
import { createMails, type Mails } from './mails.ts';
import { createMembers } from './members.ts';
import { createPartnerLogins, type PartnerLogins, type SecretHasher } from './partner-logins.ts';
import { createPartners } from './partners.ts';
import type { ApiCaller, Tenancy } from './tenancy.ts';
import { createTenancyDirectory } from './tenancy-directory.ts';
import { TenancyTree } from './tenancy-tree.ts';

export interface TenancyParts {
  tenancy: Tenancy;
  /** For operators, who make the logins of partners. */
  logins: PartnerLogins;
  /** For invoices. */
  billed: BilledCustomers;
  /** For operators, and for those who set a password. */
  mails: Mails;
}

export function createTenancy(deps: {
  metadata: MetadataPort;
  accounts: Accounts;
  keyring: KeyringPort;
  hasher: SecretHasher;
  resetRootMfa: CustomersDeps['resetRootMfa'];
  setPlanQuota: CustomersDeps['setPlanQuota'];
  clock: ClockPort;
  random: RandomPort;
  log: Pick<Logger, 'warn'>;
  /** Absent: none is set up. */
  mail?: { post?: MailPort | undefined; resetUrl?: string | undefined };
}): TenancyParts {
  const directory = createTenancyDirectory(deps.metadata);
  const tree = new TenancyTree(deps.metadata, directory);
  const logins = createPartnerLogins({ ...deps, directory });
  const mails = createMails({ ...deps, directory, post: deps.mail?.post, resetUrl: deps.mail?.resetUrl });
  const tenancy: Tenancy = {
    authenticate: (given) => logins.authenticate(given),
    ...createPartners(tree),
    ...createCustomers({ ...deps, tree, mails }),
    ...createMembers({ ...deps, tree }),
    withinOf: ({ level, partnerId }: ApiCaller) => {
      if (level === 'admin' || partnerId === undefined) return {};
      return level === 'governance' ? { governanceAccountId: partnerId } : { controlAccountId: partnerId };
    },
  };
  return { tenancy, logins, billed: createBilledCustomers(tree), mails };
}
