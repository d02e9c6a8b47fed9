// The JSON of sub-accounts: records, bodies and queries, with their schemas (extensions 1.4). Names with "wasabi" are the
// wire's; beside each is one without.

import type { AccountRemoval } from '../../../accounts/accounts.ts';
import type { ApiCaller, CustomerView } from '../../../accounts/tenancy.ts';
import type { StoredFigures } from '../../../accounts/usage-book.ts';
import type { ContactChanges } from '../../../types/tenancy.ts';
import {
  type FieldsOf,
  type JsonSchema,
  listOf,
  objectOf,
  oneOf,
  optional,
} from '../../http/json-schemas.ts';
import {
  BOOLEAN,
  CONTACT_BLOCK,
  CONTACT_INPUT,
  type ContactBlock,
  contactBlockOf,
  described,
  ID,
  INSTANT,
  INTEGER,
  instantOf,
  NO_INSTANT,
  NUMBER,
  NUMBER_OR_NULL,
  PAGE_QUERY,
  PARENT_BLOCK,
  type PageQuery,
  type ParentBlock,
  parentBlockOf,
  TEXT,
  TEXT_IN,
  TEXT_OR_NULL,
} from '../wire-forms.ts';

export type StatusWire = 'ON_TRIAL' | 'PAID_ACCOUNT' | 'SUSPENDED' | 'DEACTIVATED';
export type QuotaTypeWire = 'Soft quota' | 'Hard quota';

interface SubAccountWire extends ContactBlock, ParentBlock {
  id: number;
  name: string;
  category: string | null;
  partnerType: string;
  accountType: string;
  status: StatusWire;
  imageUrl: string | null;
  creationDate: string;
  wasabiAccountNumber: string;
  accountNumber: string;
  wasabiAccountName: string;
  accountName: string;
  wasabiAccountEmail: string;
  accountEmail: string;
  sendPasswordResetToSubAccount: boolean;
  ftpEnabled: boolean;
  ssoEnabled: boolean;
  mfaEnabled: boolean;
  isUnpaid: boolean;
  activeStorage: number;
  deletedStorage: number;
  trialQuota: number;
  trialQuotaTB: number;
  trialExpiration: string;
  purchasedStorage: number | null;
  purchasedStorageTB: number | null;
  storageQuotaType: QuotaTypeWire;
  accessKey?: string;
  secretKey?: string;
  removal?: RemovalWire;
}

/** What a deleted one has left. */
export interface RemovalWire {
  startTime: string;
  removedBuckets: number;
  leftBuckets: number;
  keptBucketsCount: number;
  keptBuckets: { name: string; versionCount: number; keptUntil: string | null }[];
}

const STATUSES = {
  trial: 'ON_TRIAL',
  paid: 'PAID_ACCOUNT',
  suspended: 'SUSPENDED',
  deleted: 'DEACTIVATED',
} as const;
const TB = 2 ** 40;

export function removalOf(removal: AccountRemoval): RemovalWire {
  const { beganAtMs, removedBucketCount, leftBucketCount, kept, keptBucketCount } = removal;
  return {
    startTime: instantOf(beganAtMs),
    removedBuckets: removedBucketCount,
    leftBuckets: leftBucketCount,
    keptBucketsCount: keptBucketCount,
    keptBuckets: kept.map(({ name, versionCount, untilMs }) => ({
      name,
      versionCount,
      keptUntil: untilMs === undefined ? null : instantOf(untilMs),
    })),
  };
}

export function wireOf(customer: CustomerView, caller: ApiCaller, figures: StoredFigures): SubAccountWire {
  const { accountId, email, trial, purchasedStorageTB = null, accessKey, secretKey } = customer;
  return {
    id: customer.id,
    name: customer.name,
    category: null,
    partnerType: 'CUSTOMER',
    accountType: 'Company',
    status: STATUSES[customer.state],
    imageUrl: null,
    creationDate: instantOf(customer.createdAtMs),
    ...contactBlockOf(customer.contact),
    ...parentBlockOf(caller, customer),
    wasabiAccountNumber: accountId,
    accountNumber: accountId,
    wasabiAccountName: email,
    accountName: email,
    wasabiAccountEmail: email,
    accountEmail: email,
    sendPasswordResetToSubAccount: customer.sendPasswordReset,
    ftpEnabled: customer.ftpEnabled,
    ssoEnabled: customer.ssoEnabled,
    mfaEnabled: customer.mfaEnabled,
    isUnpaid: customer.isUnpaid,
    activeStorage: figures.activeBytes / TB,
    deletedStorage: figures.deletedBytes / TB,
    trialQuota: trial?.quotaTB ?? 0,
    trialQuotaTB: trial?.quotaTB ?? 0,
    trialExpiration: trial === undefined ? NO_INSTANT : instantOf(trial.endsAtMs),
    purchasedStorage: purchasedStorageTB,
    purchasedStorageTB,
    storageQuotaType: customer.quotaType === 'hard' ? 'Hard quota' : 'Soft quota',
    ...(accessKey !== undefined && { accessKey }),
    ...(secretKey !== undefined && { secretKey }),
    ...(customer.removal && { removal: removalOf(customer.removal) }),
  };
}

const KEPT_BUCKET = objectOf<RemovalWire['keptBuckets'][number]>({
  name: TEXT,
  versionCount: described(INTEGER, 'Versions that are protected.'),
  keptUntil: described(TEXT_OR_NULL, 'When the first of them may go; null: somebody has to end a hold.'),
});

const REMOVAL: JsonSchema = {
  ...objectOf<RemovalWire>({
    startTime: INSTANT,
    removedBuckets: INTEGER,
    leftBuckets: described(INTEGER, 'Buckets that are not removed yet, also those that stay for now.'),
    keptBucketsCount: described(
      INTEGER,
      'Buckets that stay for now, because something in them is protected.',
    ),
    keptBuckets: listOf(KEPT_BUCKET),
  }),
  description: 'Of a deleted one, by its id: what is not removed yet. Absent when nothing is left.',
};

const QUOTA_TYPE = oneOf('Soft quota', 'Hard quota');
const SAME = (name: string): JsonSchema => described(TEXT, `The same as ${name}.`);

export const SUB_ACCOUNT = objectOf<SubAccountWire>({
  id: INTEGER,
  name: TEXT,
  category: TEXT_OR_NULL,
  partnerType: described(TEXT, 'CUSTOMER'),
  accountType: described(TEXT, 'Company'),
  status: {
    ...oneOf('ON_TRIAL', 'PAID_ACCOUNT', 'SUSPENDED', 'DEACTIVATED'),
    description: 'DEACTIVATED: deleted.',
  },
  imageUrl: TEXT_OR_NULL,
  creationDate: INSTANT,
  ...CONTACT_BLOCK,
  ...PARENT_BLOCK,
  wasabiAccountNumber: described(TEXT, 'Its account number in S3: 12 digits.'),
  accountNumber: SAME('wasabiAccountNumber'),
  wasabiAccountName: described(TEXT, 'E-mail address.'),
  accountName: SAME('wasabiAccountName'),
  wasabiAccountEmail: SAME('wasabiAccountName'),
  accountEmail: SAME('wasabiAccountName'),
  sendPasswordResetToSubAccount: BOOLEAN,
  ftpEnabled: BOOLEAN,
  ssoEnabled: BOOLEAN,
  mfaEnabled: BOOLEAN,
  isUnpaid: described(BOOLEAN, 'Its bills are not paid: it can read and delete, and store nothing.'),
  activeStorage: described(NUMBER, 'TB of 2^40 bytes, by the last closed day.'),
  deletedStorage: described(NUMBER, 'TB that are deleted inside the minimum duration of storage.'),
  trialQuota: described(NUMBER, 'TB.'),
  trialQuotaTB: described(NUMBER, 'TB.'),
  trialExpiration: described(INSTANT, `${NO_INSTANT} where there is none.`),
  purchasedStorage: described(NUMBER_OR_NULL, 'TB.'),
  purchasedStorageTB: described(NUMBER_OR_NULL, 'TB.'),
  storageQuotaType: QUOTA_TYPE,
  accessKey: optional(described(TEXT, 'Of a new pair, or with includeKeys.')),
  secretKey: optional(described(TEXT, 'Of a new pair, or with includeKeys.')),
  removal: optional(REMOVAL),
});

export interface SubAccountQuery extends PageQuery {
  id?: number;
  name?: string;
  controlAccountId?: number;
  governanceAccountId?: number;
  channelAccountId?: number;
  status?: string;
  wasabiAccountName?: string;
  accountName?: string;
  wasabiAccountNumber?: string;
  accountNumber?: string;
  includeDeleted?: boolean;
  includeKeys?: boolean;
}

type Options = Pick<SubAccountQuery, 'includeDeleted' | 'includeKeys'>;
const OPTIONS: FieldsOf<Options> = {
  includeDeleted: optional(BOOLEAN),
  includeKeys: optional(described(BOOLEAN, 'With accessKey and secretKey.')),
};
export const OPTIONS_QUERY = objectOf<Options>(OPTIONS);

export const LIST_QUERY = objectOf<SubAccountQuery>({
  ...PAGE_QUERY,
  ...OPTIONS,
  id: optional(ID),
  name: optional(described(TEXT_IN, 'A part of it, without regard to case.')),
  controlAccountId: optional(ID),
  governanceAccountId: optional(ID),
  channelAccountId: optional(ID),
  status: optional(described(TEXT_IN, 'ON_TRIAL, PAID_ACCOUNT, SUSPENDED or DEACTIVATED.')),
  wasabiAccountName: optional(described(TEXT_IN, 'A part of the e-mail address, without regard to case.')),
  accountName: optional(described(TEXT_IN, 'The same.')),
  wasabiAccountNumber: optional(TEXT_IN),
  accountNumber: optional(described(TEXT_IN, 'The same.')),
});

interface InBoth extends ContactChanges {
  wasabiAccountEmail?: string;
  accountEmail?: string;
  password?: string;
  sendPasswordResetToSubAccountEmail?: boolean;
  ftpEnabled?: boolean;
  trialQuotaTB?: number;
  trialDays?: number;
  purchasedStorageTB?: number | null;
  storageQuotaType?: QuotaTypeWire;
  channelAccountId?: number | null;
}

export interface NewSubAccount extends InBoth {
  controlAccountId?: number;
  name: string;
  passwordResetRequired?: boolean;
  isTrial?: boolean;
  sendWelcomeEmail?: boolean;
}

export interface SubAccountChanges extends InBoth {
  name?: string;
  active?: boolean;
  resetKeys?: boolean;
  trialToPaid?: boolean;
  resetMFA?: boolean;
  ssoEnabled?: boolean;
  isUnpaid?: boolean;
}

const TB_MAX = 1e9;
const IN_BOTH: FieldsOf<InBoth> = {
  ...CONTACT_INPUT,
  wasabiAccountEmail: optional(
    described(TEXT_IN, 'E-mail address: required of a new one, and of no other account.'),
  ),
  accountEmail: optional(described(TEXT_IN, 'The same as wasabiAccountEmail, and wins over it.')),
  password: optional(
    described(
      TEXT_IN,
      'Of its console: at least 6 characters, with a digit, both cases and another character. Required of a new one, unless sendWelcomeEmail.',
    ),
  ),
  sendPasswordResetToSubAccountEmail: optional(BOOLEAN),
  ftpEnabled: optional(BOOLEAN),
  trialQuotaTB: optional({ type: 'number', exclusiveMinimum: 0, maximum: 1024 }),
  trialDays: optional({ type: 'integer', minimum: 1, maximum: 3650 }),
  purchasedStorageTB: optional(
    described(
      { type: ['number', 'null'], minimum: 0, maximum: TB_MAX },
      'Required and positive with a hard quota.',
    ),
  ),
  storageQuotaType: optional(QUOTA_TYPE),
  channelAccountId: optional({ type: ['integer', 'null'], minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
};

export const NEW_SUB_ACCOUNT = objectOf<NewSubAccount>({
  ...IN_BOTH,
  controlAccountId: optional(described(ID, 'Required of operators and governance accounts.')),
  name: described(TEXT_IN, '3 to 100 characters.'),
  passwordResetRequired: optional(BOOLEAN),
  isTrial: optional(described(BOOLEAN, 'true when absent: 30 days and 1 TB.')),
  sendWelcomeEmail: optional(BOOLEAN),
});

export const CHANGES = objectOf<SubAccountChanges>({
  ...IN_BOTH,
  name: optional(TEXT_IN),
  active: optional(described(BOOLEAN, 'false suspends it, true restores it.')),
  resetKeys: optional(described(BOOLEAN, 'true: a new pair takes the place of the old one.')),
  trialToPaid: optional(BOOLEAN),
  resetMFA: optional(BOOLEAN),
  ssoEnabled: optional(BOOLEAN),
  isUnpaid: optional(described(BOOLEAN, 'true refuses uploads, false takes them again. Operators only.')),
});
