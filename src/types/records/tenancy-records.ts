// The tree of accounts as the system shard keeps it: partners, who logs in for them, sub-accounts (customers) and their members.
// A record is found by its id, which is one of a single sequence.
import { defineRecord } from '../../base/record-codec.ts';
import type { AccountId } from '../names.ts';
import type {
  Contact,
  CustomerState,
  MemberRole,
  MemberStatus,
  PartnerLevel,
  PartnerRole,
  PartnerStatus,
  QuotaType,
} from '../tenancy.ts';

interface Numbered {
  id: number;
  /** Grows by one with each change of the record; 1 when it is new. */
  revision: number;
  createdAtMs: number;
  deletedAtMs?: number;
}

export interface PartnerRecord extends Numbered {
  kind: 'partner';
  level: PartnerLevel;
  /** Of a control account: its governance account, if it has one. Of a channel account: its control account. */
  parentId?: number;
  name: string;
  email: string;
  status: PartnerStatus;
  contact: Contact;
}

/** A secret that is shown once. */
export interface ApiKeyRecord {
  /** The first characters of the key itself, by which it is found. */
  id: string;
  name: string;
  /** scrypt, with its parameters and salt. */
  hash: string;
  createdAtMs: number;
  expiresAtMs?: number;
  /** The day of its last use (UTC, since 1970), noted once a day. */
  usedOnDay?: number;
}

export interface PartnerUserRecord extends Numbered {
  kind: 'partner-user';
  partnerId: number;
  email: string;
  firstName: string;
  lastName: string;
  role: PartnerRole;
  /** Of governance accounts: it may act on sub-accounts, too. */
  isPlus: boolean;
  status: PartnerStatus;
  apiKeys: ApiKeyRecord[];
}

export interface CustomerRecord extends Numbered {
  kind: 'customer';
  accountId: AccountId;
  controlId: number;
  channelId?: number;
  /** Name, email and state are copies of the account's, written in the commit that changes it. */
  name: string;
  email: string;
  state: CustomerState;
  contact: Contact;
  trial?: { quotaTB: number; endsAtMs: number };
  purchasedStorageTB?: number;
  quotaType: QuotaType;
  ftpEnabled: boolean;
  sendPasswordReset: boolean;
  ssoEnabled: boolean;
  /** Its uploads are refused. */
  isUnpaid: boolean;
  /** An operator has suspended it: no partner restores or deletes it. Absent in records of earlier releases, too. */
  isHeld?: true;
  /** In order, from its creation on: days of trial are free. */
  history: { state: CustomerState; fromMs: number }[];
}

export interface MemberRecord extends Numbered {
  kind: 'member';
  customerId: number;
  username: string;
  email: string;
  firstName: string;
  lastName: string;
  role: MemberRole;
  status: MemberStatus;
  /** Of the IAM user that it signs in as, when it was made: IAM may have renamed it since. */
  userName: string;
  /** Of the same user. Absent in records of earlier releases. */
  userId?: string;
  address1?: string;
  address2?: string;
  country?: string;
  city?: string;
  state?: string;
  zip?: string;
  phone?: string;
}

export type TenancyRecord = PartnerRecord | PartnerUserRecord | CustomerRecord | MemberRecord;
export type TenancyKind = TenancyRecord['kind'];

type Unnumbered<R> = R extends TenancyRecord ? Omit<R, 'id' | 'revision' | 'createdAtMs'> : never;
/** A record to be: the shard gives id, revision and time. */
export type NewTenancyRecord = Unnumbered<TenancyRecord>;
/** Of a sub-account to be: what its account says is not repeated. */
export type NewCustomerRecord = Omit<
  Extract<NewTenancyRecord, { kind: 'customer' }>,
  'accountId' | 'name' | 'email' | 'state' | 'history'
>;

/** What the sequence has given out last. */
export interface TenancySequenceRecord {
  lastId: number;
  lastChange: number;
}
export const tenancySequenceCodec = defineRecord<TenancySequenceRecord>({
  name: 'tenancy-sequence',
  version: 1,
});

/** The number of the last change of a record, in its row beside it: a directory reads records in order of their changes. */
export interface TenancyRow {
  change: number;
  record: TenancyRecord;
}
export const tenancyRowCodec = defineRecord<TenancyRow>({ name: 'tenancy-row', version: 1 });
