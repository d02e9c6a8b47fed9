// Accounts in memory behind the interface of src/accounts, for tests of /api/v1 alone: one governance account with two control
// accounts, and callers of each kind. Rights and bounds are those that the API's answers depend on, and no more.
import type {
  ApiCaller,
  CustomerChanges,
  CustomerView,
  MemberView,
  NewCustomer,
  Page,
  PageOf,
  PartnerView,
  Tenancy,
} from '../../../src/accounts/tenancy.ts';
import { must } from '../../../src/base/assert.ts';
import { AppError } from '../../../src/types/errors.ts';
import type { AccountId } from '../../../src/types/names.ts';
import { MEMBER_ROLES, type MemberRole } from '../../../src/types/tenancy.ts';

const BEGUN_MS = Date.UTC(2026, 0, 5);
const DAY_MS = 86_400_000;

const GOVERNANCE = { id: 1, name: 'Distributor', email: 'gov@example.com' };
const CONTROLS = [
  { id: 2, name: 'Reseller One', email: 'one@example.com' },
  { id: 3, name: 'Reseller Two', email: 'two@example.com' },
];

const caller = (some: Partial<ApiCaller>): ApiCaller => ({
  kind: 'partner-user',
  level: 'control',
  partnerId: 2,
  role: 'Admin',
  isPlus: false,
  keyId: 'key',
  ...some,
});

/** By login; the API key of each is `key of ` and its login. */
export const CALLERS: Readonly<Record<string, ApiCaller>> = {
  'ops@example.com': { kind: 'operator', level: 'admin', role: 'Admin', isPlus: false, keyId: 'root:ops' },
  'gov@example.com': caller({ level: 'governance', partnerId: 1, isPlus: true, keyId: 'gov' }),
  'one@example.com': caller({ keyId: 'one' }),
  'viewer@example.com': caller({ role: 'Viewer', keyId: 'viewer' }),
  'two@example.com': caller({ partnerId: 3, keyId: 'two' }),
};

export const apiKeyOf = (login: string) => `key of ${login}`;

export interface ModelTenancy extends Tenancy {
  /** How often something was made or changed. */
  changeCount(): number;
}

function pageIn<T>(all: readonly T[], { page, size }: Page): PageOf<T> {
  return { items: all.slice((page - 1) * size, page * size), total: all.length };
}

function wrong(field: string, problem: string): AppError {
  return new AppError('ValidationError', { message: `${field} ${problem}`, fields: { [field]: problem } });
}

function taken(field: string): AppError {
  return new AppError('EntityAlreadyExists', { fields: { [field]: 'is in use' } });
}

export function createModelTenancy(): ModelTenancy {
  const customers: CustomerView[] = [];
  const members: MemberView[] = [];
  let changes = 0;

  const maySee = ({ level, partnerId }: ApiCaller, controlId: number) =>
    level !== 'control' || partnerId === controlId;
  const mayWrite = (role: ApiCaller['role']) => {
    if (role === 'Viewer') throw new AppError('AccessDenied');
  };
  const visible = (asker: ApiCaller) => customers.filter(({ control }) => maySee(asker, control.id));

  function customerOf(asker: ApiCaller, id: number, includeDeleted = false): CustomerView {
    const found = visible(asker).find((customer) => customer.id === id);
    if (found === undefined || (found.state === 'deleted' && !includeDeleted))
      throw new AppError('NoSuchEntity');
    return found;
  }

  function memberOf(asker: ApiCaller, id: number): MemberView {
    const found = members.find((member) => member.id === id && member.status !== 'deleted');
    if (found === undefined) throw new AppError('NoSuchEntity');
    customerOf(asker, found.subAccountId);
    return found;
  }

  function partnerOf({ id, name, email }: (typeof CONTROLS)[number]): PartnerView {
    return {
      ...{ id, name, email, level: 'control', status: 'active', contact: { city: 'Köln' } },
      createdAtMs: BEGUN_MS,
      governance: GOVERNANCE,
      subAccountsCount: customers.filter(({ control, state }) => control.id === id && state !== 'deleted')
        .length,
      channelAccountsCount: 0,
    };
  }

  function requireFree(email: string, id?: number): void {
    if (!email.includes('@')) throw wrong('email', 'must be an e-mail address');
    if (customers.some((one) => one.email === email && one.id !== id)) throw taken('email');
  }

  function requireName(name: string): void {
    if (name.length < 3 || name.length > 100 || name.startsWith(' '))
      throw wrong('name', 'must have 3 to 100 characters');
  }

  function quotaOf(given: Pick<NewCustomer, 'quotaType' | 'purchasedStorageTB'>): void {
    if (given.quotaType === 'hard' && !(Number(given.purchasedStorageTB) > 0))
      throw wrong('purchasedStorageTB', 'is required and positive with a hard quota');
  }

  const pairOf = (id: number) => ({
    accessKey: `AK${id}`.padEnd(20, '0'),
    secretKey: `s${id}`.padEnd(40, '0'),
  });
  const withKeys = (customer: CustomerView, includeKeys = false) =>
    includeKeys ? { ...customer, ...pairOf(customer.id) } : customer;

  function roleOf(text: string): MemberRole {
    const plain = text.toLowerCase().replace(/[\s_]/g, '');
    const role = MEMBER_ROLES.find((one) => one.toLowerCase().replaceAll(' ', '') === plain);
    if (role === undefined) throw wrong('role', `must be one of ${MEMBER_ROLES.join(', ')}`);
    return role;
  }

  return {
    changeCount: () => changes,
    async authenticate({ login, apiKey }) {
      return Object.hasOwn(CALLERS, login) && apiKey === apiKeyOf(login) ? CALLERS[login] : undefined;
    },
    async listPartners(asker, filter, page) {
      const all = CONTROLS.filter(({ id }) => maySee(asker, id)).map(partnerOf);
      return pageIn(
        all.filter(
          ({ id, name, status }) =>
            id === (filter.id ?? id) &&
            name.includes(filter.name ?? '') &&
            status === (filter.status ?? status),
        ),
        page,
      );
    },
    async getPartner(asker, id) {
      const found = CONTROLS.find((one) => one.id === id && maySee(asker, one.id));
      if (found === undefined) throw new AppError('NoSuchEntity');
      return partnerOf(found);
    },
    createPartner: () => Promise.reject(new AppError('AccessDenied')),
    changePartner: () => Promise.reject(new AppError('AccessDenied')),
    async listCustomers(asker, filter, page, options) {
      const all = visible(asker).filter(
        (one) =>
          (filter.includeDeleted === true || one.state !== 'deleted') &&
          one.id === (filter.id ?? one.id) &&
          one.state === (filter.state ?? one.state) &&
          one.name.includes(filter.name ?? '') &&
          one.accountId === (filter.accountNumber ?? one.accountId) &&
          one.control.id === (filter.controlAccountId ?? one.control.id),
      );
      const { items, total } = pageIn(all, page);
      return { items: items.map((one) => withKeys(one, options?.includeKeys)), total };
    },
    async getCustomer(asker, id, options) {
      return withKeys(customerOf(asker, id, options?.includeDeleted), options?.includeKeys);
    },
    async createCustomer(asker, input) {
      mayWrite(asker.role);
      const controlId = asker.level === 'control' ? asker.partnerId : input.controlAccountId;
      if (controlId === undefined) throw wrong('controlAccountId', 'is required');
      const control = CONTROLS.find(({ id }) => id === controlId);
      if (control === undefined) throw new AppError('NoSuchEntity');
      requireName(input.name);
      requireFree(input.email);
      quotaOf(input);
      const id = 10 + customers.length;
      const isTrial = input.isTrial ?? true;
      const state = isTrial ? 'trial' : 'paid';
      const trial = {
        quotaTB: input.trialQuotaTB ?? 1,
        endsAtMs: BEGUN_MS + (input.trialDays ?? 30) * DAY_MS,
      };
      const customer: CustomerView = {
        id,
        accountId: String(100_000_000_000 + id) as AccountId,
        ...{ name: input.name, email: input.email, state, control, governance: GOVERNANCE },
        contact: input.contact ?? {},
        createdAtMs: BEGUN_MS,
        ...(isTrial && { trial }),
        ...(typeof input.purchasedStorageTB === 'number' && { purchasedStorageTB: input.purchasedStorageTB }),
        quotaType: input.quotaType ?? 'soft',
        ftpEnabled: input.ftpEnabled ?? false,
        sendPasswordReset: input.sendPasswordReset ?? false,
        ...{ ssoEnabled: false, isUnpaid: false, mfaEnabled: false },
        history: [{ state, fromMs: BEGUN_MS }],
      };
      customers.push(customer);
      changes += 1;
      return withKeys(customer, true);
    },
    async changeCustomer(asker, id, given: CustomerChanges, options) {
      const before = customerOf(asker, id);
      mayWrite(asker.role);
      const { name, email, active, contact = {}, ftpEnabled, trialToPaid, resetKeys } = given;
      if (name !== undefined) requireName(name);
      if (email !== undefined) requireFree(email, id);
      quotaOf(given);
      const kept = Object.entries({ ...before.contact, ...contact }).filter(([, value]) => value !== null);
      const state =
        active === false ? 'suspended' : active === true || trialToPaid === true ? 'paid' : before.state;
      Object.assign(before, { ...(name && { name }), ...(email && { email }), state });
      Object.assign(before, {
        contact: Object.fromEntries(kept),
        ftpEnabled: ftpEnabled ?? before.ftpEnabled,
      });
      changes += 1;
      return withKeys(before, options?.includeKeys === true || resetKeys === true);
    },
    async deleteCustomer(asker, id) {
      const found = customerOf(asker, id);
      mayWrite(asker.role);
      Object.assign(found, { state: 'deleted' });
      changes += 1;
    },
    async listMembers(asker, filter, page) {
      const ids = new Set(visible(asker).map(({ id }) => id));
      return pageIn(
        members.filter(
          (one) =>
            ids.has(one.subAccountId) &&
            one.status === (filter.status ?? 'active') &&
            one.id === (filter.id ?? one.id) &&
            one.username === (filter.username ?? one.username) &&
            one.subAccountId === (filter.subAccountId ?? one.subAccountId),
        ),
        page,
      );
    },
    getMember: async (asker, id) => memberOf(asker, id),
    async createMember(asker, { role, password: _password, passwordResetRequired: _reset, ...input }) {
      const { accountId } = customerOf(asker, input.subAccountId);
      mayWrite(asker.role);
      const username = input.username ?? input.email;
      if (members.some((one) => one.username === username)) throw taken('username');
      const member: MemberView = {
        ...input,
        ...{
          id: 100 + members.length,
          accountId,
          username,
          role: roleOf(role),
          status: 'active',
          mfa: false,
        },
        ...{ userName: username, createdAtMs: BEGUN_MS },
      };
      members.push(member);
      changes += 1;
      return member;
    },
    async changeMember(asker, id, { firstName, role, active }) {
      const member = memberOf(asker, id);
      mayWrite(asker.role);
      const known = role === undefined ? member.role : roleOf(role);
      const status = active === undefined ? member.status : active ? 'active' : 'deactivated';
      Object.assign(member, { firstName: firstName ?? member.firstName, role: known, status });
      changes += 1;
      return member;
    },
    async deleteMember(asker, id) {
      const member = memberOf(asker, id);
      mayWrite(asker.role);
      Object.assign(member, { status: 'deleted' });
      changes += 1;
    },
    visibleCustomers: async (asker, { subAccountId, controlAccountId }) =>
      visible(asker)
        .filter(({ id }) => subAccountId === undefined || id === subAccountId)
        .filter(({ control }) => controlAccountId === undefined || control.id === controlAccountId)
        .map((customer) => ({ ...customer, controlId: customer.control.id })),
    parentsOf: (id) =>
      must(
        customers.find((customer) => customer.id === id),
        'it was seen',
      ),
    withinOf: ({ level, partnerId = 0 }) =>
      level === 'admin'
        ? {}
        : level === 'control'
          ? { controlAccountId: partnerId }
          : { governanceAccountId: partnerId },
  };
}
