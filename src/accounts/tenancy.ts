// The tree of accounts as its callers see it: who they are, and what they read and change of partners, customers and members.
// Everything throws NoSuchEntity (also for ids outside of the caller's tree), AccessDenied by role or level, ValidationError and
// EntityAlreadyExists with `fields`, LimitExceeded and SlowDown.
import type { AccountId } from '../types/names.ts';
import type {
  Contact,
  ContactChanges,
  CustomerState,
  MemberRole,
  MemberStatus,
  PartnerLevel,
  PartnerRole,
  PartnerStatus,
  QuotaType,
} from '../types/tenancy.ts';
import type { AccountRemoval } from './accounts.ts';

export interface ApiCaller {
  kind: 'operator' | 'partner-user';
  userId?: number;
  level: 'admin' | 'governance' | 'control';
  partnerId?: number;
  role: PartnerRole;
  /** Of governance callers: may also act on sub-accounts ("Plus"). */
  isPlus: boolean;
  /** For the rate limit: one for each API key; 'root:<access key>' of the operator. */
  keyId: string;
}
export interface Page {
  page: number;
  size: number;
} // 1-based, checked by the API layer
export interface PageOf<T> {
  items: T[];
  total: number;
}

/** A partner above a record. The wire hides them by level: admin sees all, governance callers not `governance`, control callers neither. */
export interface ParentView {
  id: number;
  name: string;
  email: string;
}

export interface PartnerView {
  id: number;
  level: PartnerLevel;
  name: string;
  email: string;
  status: PartnerStatus;
  contact: Contact;
  createdAtMs: number;
  deletedAtMs?: number;
  governance?: ParentView; // absent: it has none
  control?: ParentView; // of channels
  subAccountsCount: number; // not deleted ones; with includeDeletedSubAccounts all
  channelAccountsCount: number;
}
export interface PartnerFilter {
  level?: PartnerLevel; // GET /control-accounts gives 'control'
  id?: number;
  name?: string;
  email?: string;
  governanceAccountId?: number;
  status?: 'active' | 'deactivated';
  includeDeleted?: boolean;
  includeDeletedSubAccounts?: boolean;
  // name and email: part of it, compared without case. primaryApiKey of the wire: `apiKeyId` is not searchable, answer no items.
}
export interface NewPartner {
  level: PartnerLevel;
  parentId?: number;
  name: string;
  email: string;
  contact?: Contact;
}
export interface PartnerChanges {
  name?: string;
  email?: string;
  status?: 'active' | 'deactivated';
  contact?: ContactChanges;
}

export interface CustomerView {
  id: number;
  accountId: AccountId /* 12 digits: wasabiAccountNumber */;
  name: string;
  email: string;
  state: CustomerState;
  contact: Contact;
  createdAtMs: number;
  deletedAtMs?: number;
  control: ParentView;
  governance?: ParentView;
  channel?: ParentView;
  /** Of a trial, also after its end for the record; the wire prints trialExpiration of state 'trial' only if you like. */
  trial?: { quotaTB: number; endsAtMs: number };
  purchasedStorageTB?: number;
  quotaType: QuotaType;
  ftpEnabled: boolean;
  sendPasswordReset: boolean;
  ssoEnabled: boolean;
  isUnpaid: boolean;
  mfaEnabled: boolean; // in lists: as far as known without reading identities (false)
  /** With includeKeys; the secret only when one exists that the service may show: see accessKey below. */
  accessKey?: string;
  secretKey?: string;
  history: { state: CustomerState; fromMs: number }[];
  /** Of a deleted one of which something is left; not in lists. */
  removal?: AccountRemoval;
}
export interface CustomerFilter {
  id?: number;
  name?: string;
  email?: string;
  accountNumber?: string;
  controlAccountId?: number;
  governanceAccountId?: number;
  channelAccountId?: number;
  state?: CustomerState;
  includeDeleted?: boolean;
}
export interface CustomerOptions {
  includeKeys?: boolean;
  includeDeleted?: boolean;
}
export interface NewCustomer {
  /** Required of admin and governance callers (ValidationError 'controlAccountId'); a control caller's own is taken otherwise; another one's: 404. */
  controlAccountId?: number;
  channelAccountId?: number | null;
  name: string;
  email: string;
  /** Of the root login. Not needed with sendWelcomeEmail. */
  password?: string;
  sendPasswordReset?: boolean;
  passwordResetRequired?: boolean;
  ftpEnabled?: boolean;
  sendWelcomeEmail?: boolean;
  isTrial?: boolean /* default true */;
  trialQuotaTB?: number /* default 1; 1024 (GB, 2024 text) is taken as 1 TB */;
  trialDays?: number /* default 30 */;
  purchasedStorageTB?: number | null;
  quotaType?: QuotaType /* default soft */;
  contact?: Contact;
}
export interface CustomerChanges {
  name?: string;
  email?: string;
  password?: string;
  active?: boolean; // false: suspend, true: restore
  purchasedStorageTB?: number | null;
  quotaType?: QuotaType;
  sendPasswordReset?: boolean;
  ftpEnabled?: boolean;
  ssoEnabled?: boolean;
  resetKeys?: boolean;
  resetMFA?: boolean;
  trialToPaid?: boolean;
  trialQuotaTB?: number;
  trialDays?: number;
  channelAccountId?: number | null;
  contact?: ContactChanges;
  isUnpaid?: boolean; // operator (admin) only
}
export interface MemberView {
  id: number;
  subAccountId: number;
  accountId: AccountId;
  username: string;
  email: string;
  firstName: string;
  lastName: string;
  role: MemberRole;
  status: MemberStatus;
  mfa: boolean;
  userName: string /* of the IAM user */;
  createdAtMs: number;
  address1?: string;
  address2?: string;
  country?: string;
  city?: string;
  state?: string;
  zip?: string;
  phone?: string;
}
export interface MemberFilter {
  id?: number;
  subAccountId?: number;
  username?: string;
  status?: MemberStatus;
}
export interface NewMember {
  subAccountId: number;
  firstName: string;
  lastName: string;
  username?: string;
  role: string /* any spelling; normalised here */;
  email: string;
  password: string;
  passwordResetRequired?: boolean;
  address1?: string;
  address2?: string;
  country?: string;
  city?: string;
  state?: string;
  zip?: string;
  phone?: string;
}
export interface MemberChanges {
  firstName?: string;
  lastName?: string;
  password?: string;
  username?: string;
  role?: string;
  mfa?: boolean; // false: its device goes; true: ValidationError? no: nothing happens
  active?: boolean;
  reinstate?: boolean;
  address1?: string | null;
  address2?: string | null;
  country?: string | null;
  city?: string | null;
  state?: string | null;
  zip?: string | null;
  phone?: string | null;
}
/** What lists need of a sub-account whose record they do not show. */
export type CustomerHead = Pick<CustomerView, 'id' | 'accountId' | 'name' | 'email' | 'createdAtMs'> & {
  controlId: number;
};
/** Ids and account numbers narrow; outside of the caller's tree: nothing (usages) */
export interface VisibleFilter {
  governanceAccountId?: number;
  controlAccountId?: number;
  channelAccountId?: number;
  subAccountId?: number;
  accountNumber?: string;
  includeDeleted?: boolean /* default true: usage and invoices stay */;
}

export interface Tenancy {
  /** `address`: of the client, for throttling. undefined: wrong, in about constant time. Throws AuthenticationLockout (403) while login + address must wait, SlowDown. */
  authenticate(given: { login: string; apiKey: string; address: string }): Promise<ApiCaller | undefined>;
  listPartners(caller: ApiCaller, filter: PartnerFilter, page: Page): Promise<PageOf<PartnerView>>;
  getPartner(
    caller: ApiCaller,
    id: number,
    options?: { level?: PartnerLevel; includeDeleted?: boolean; includeDeletedSubAccounts?: boolean },
  ): Promise<PartnerView>;
  createPartner(caller: ApiCaller, input: NewPartner): Promise<PartnerView>;
  changePartner(caller: ApiCaller, id: number, changes: PartnerChanges): Promise<PartnerView>;
  listCustomers(
    caller: ApiCaller,
    filter: CustomerFilter,
    page: Page,
    options?: CustomerOptions,
  ): Promise<PageOf<CustomerView>>;
  getCustomer(caller: ApiCaller, id: number, options?: CustomerOptions): Promise<CustomerView>;
  /** With both keys of the new pair, shown this once (later with includeKeys as the account's keys are stored sealed, not hashed). */
  createCustomer(caller: ApiCaller, input: NewCustomer): Promise<CustomerView>;
  changeCustomer(
    caller: ApiCaller,
    id: number,
    changes: CustomerChanges,
    options?: CustomerOptions,
  ): Promise<CustomerView>;
  /** Its keys are refused at once; its buckets go in the background (`removal` of the view says what is left). */
  deleteCustomer(caller: ApiCaller, id: number): Promise<void>;
  listMembers(caller: ApiCaller, filter: MemberFilter, page: Page): Promise<PageOf<MemberView>>;
  getMember(caller: ApiCaller, id: number): Promise<MemberView>;
  createMember(caller: ApiCaller, input: NewMember): Promise<MemberView>;
  changeMember(caller: ApiCaller, id: number, changes: MemberChanges): Promise<MemberView>;
  deleteMember(caller: ApiCaller, id: number): Promise<void>;
  /** By id ascending. */
  visibleCustomers(caller: ApiCaller, filter: VisibleFilter): Promise<CustomerHead[]>;
  /** Of a sub-account that was seen by the caller. */
  parentsOf(customerId: number): Pick<CustomerView, 'control' | 'governance' | 'channel'>;
  /** What the caller may see of invoices and usages: for Invoices' `within`. */
  withinOf(caller: ApiCaller): { governanceAccountId?: number; controlAccountId?: number };
}
