// Sub-accounts: accounts that a control account is charged for. Their life is the account's own (trial, paid, suspended, deleted);
// what the tree keeps of them changes in the same commit.
import { must } from '../base/assert.ts';
import { fromUtf8 } from '../base/bytes/bytes.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { KeyringPort } from '../ports/keyring.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import type { Logger } from '../ports/telemetry.ts';
import { AppError } from '../types/errors.ts';
import type { AccountId } from '../types/names.ts';
import { identityKeys } from '../types/records/identity-records.ts';
import type { AccountState } from '../types/records/rows.ts';
import type { CustomerRecord, NewCustomerRecord } from '../types/records/tenancy-records.ts';
import { requireDone } from '../types/require-done.ts';
import { checkAccountFields, normaliseEmail, refuse } from './account-rules.ts';
import { type Accounts, HELD } from './accounts.ts';
import { CreationsInDoubt } from './creations-in-doubt.ts';
import { withIdentities } from './identity-store.ts';
import type { Mails } from './mails.ts';
import type { SecretHasher } from './partner-logins.ts';
import { isOnTrial, isSamePlan, planQuota, type SetPlanQuota } from './plans.ts';
import type {
  ApiCaller,
  CustomerChanges,
  CustomerFilter,
  CustomerOptions,
  CustomerView,
  NewCustomer,
  Page,
  PageOf,
  Tenancy,
  VisibleFilter,
} from './tenancy.ts';
import { isVisible, knowsGovernance, noSuch, requireAct, tenantOf } from './tenancy-rules.ts';
import {
  type CustomerEntry,
  checkLoginPassword,
  contactOnly,
  holds,
  meets,
  mergeTexts,
  pageOf,
  type TenancyTree,
  taken,
} from './tenancy-tree.ts';
import { changedTrial, newTrial } from './trials.ts';

/** Sub-accounts of a list whose keys are read at once. */
const KEYS_AT_ONCE = 20;
const STORAGE_TB_MAX = 1_000_000;

export interface CustomersDeps {
  tree: TenancyTree;
  metadata: MetadataPort;
  accounts: Accounts;
  keyring: KeyringPort;
  hasher: Pick<SecretHasher, 'hash'>;
  /** Deactivates the MFA devices of an account's root. */
  resetRootMfa(accountId: AccountId): Promise<unknown>;
  setPlanQuota: SetPlanQuota;
  mails: Pick<Mails, 'order' | 'requireRoom'>;
  clock: ClockPort;
  random: RandomPort;
  log: Pick<Logger, 'warn'>;
}

type Customers = Pick<
  Tenancy,
  | 'listCustomers'
  | 'getCustomer'
  | 'createCustomer'
  | 'changeCustomer'
  | 'deleteCustomer'
  | 'parentsOf'
  | 'visibleCustomers'
>;

export function createCustomers(deps: CustomersDeps): Customers {
  const { tree, metadata, accounts, clock } = deps;
  const { directory } = tree;
  const inDoubt = new CreationsInDoubt(accounts, clock);
  const system = { shard: SYSTEM_SHARD };

  async function keysOf(accountId: AccountId) {
    const query = { accountId };
    return requireDone(await metadata.query(system, 'list-access-keys', query)).accessKeys;
  }

  async function withKeys(view: CustomerView): Promise<CustomerView> {
    const key = (await keysOf(view.accountId)).find(({ isDisabled }) => isDisabled !== true);
    if (key === undefined) return view;
    const secret = deps.keyring.unwrap(key.sealedSecret);
    const secretKey = fromUtf8(secret);
    secret.fill(0);
    return { ...view, accessKey: key.accessKey, secretKey };
  }

  /** Secrets are for those who may change what they open. */
  async function shown(
    caller: ApiCaller,
    views: CustomerView[],
    { includeKeys }: CustomerOptions,
  ): Promise<CustomerView[]> {
    if (includeKeys !== true) return views;
    requireAct(caller, 'change');
    const opened: CustomerView[] = [];
    for (let at = 0; at < views.length; at += KEYS_AT_ONCE)
      opened.push(...(await Promise.all(views.slice(at, at + KEYS_AT_ONCE).map(withKeys))));
    return opened;
  }

  function viewOf(record: CustomerRecord): CustomerView {
    const { kind: _kind, revision: _revision, controlId: _control, channelId: _channel, ...shown } = record;
    const { isHeld: _, ...rest } = shown;
    return { ...rest, ...tree.parentsOf(record), mfaEnabled: false };
  }

  async function hasMfa(accountId: AccountId): Promise<boolean> {
    const query = { accountId, keys: [identityKeys.settings] };
    const { rows } = requireDone(await metadata.query(system, 'read-identities', query));
    return rows[0]?.kind === 'settings' && rows[0].rootMfaDevices.length > 0;
  }

  /** Throws SlowDown. */
  async function loginOf(caller: ApiCaller, login: { password: string; mustReset: boolean }) {
    const passwordHash = await deps.hasher.hash(tenantOf(caller), login.password);
    return { passwordHash, mustReset: login.mustReset, changedAtMs: clock.wallMs() };
  }

  /** Throws ConcurrentModification, SlowDown. */
  async function setPassword(caller: ApiCaller, accountId: AccountId, password: string) {
    const rootLogin = await loginOf(caller, { password, mustReset: false });
    await withIdentities(deps, accountId, async (store) => {
      // A link that was mailed before ends with it.
      const { passwordReset: _ended, ...settings } = await store.settings();
      store.putUnseen(identityKeys.settings, { ...settings, rootLogin });
    });
  }

  /** A new pair in the place of all others. */
  async function resetKeys(accountId: AccountId): Promise<Pick<CustomerView, 'accessKey' | 'secretKey'>> {
    const { key, secretKey } = await accounts.addKey(accountId, {}, { isOnly: true });
    return { accessKey: key.accessKey, secretKey };
  }

  function controlOf(caller: ApiCaller, input: NewCustomer): number {
    if (caller.level === 'control' && input.controlAccountId === undefined) return caller.partnerId ?? 0;
    if (input.controlAccountId === undefined) refuse({ controlAccountId: 'is required' });
    const control = directory.find('partner', input.controlAccountId);
    const isThere = control?.level === 'control' && control.status !== 'deleted';
    if (!isThere || !isVisible(caller, tree.abovePartner(control)))
      throw noSuch('control account', 'controlAccountId');
    return control.id;
  }

  function checkChannel(channelId: number | null | undefined, controlId: number): void {
    if (channelId === undefined || channelId === null) return;
    const channel = directory.find('partner', channelId);
    if (channel?.level !== 'channel' || channel.parentId !== controlId)
      throw noSuch('channel account', 'channelAccountId');
  }

  function isAskedFor(caller: ApiCaller, filter: CustomerFilter): (entry: CustomerEntry) => boolean {
    const { id, name, email, accountNumber, state } = filter;
    return (entry) => {
      if (entry.deletedAtMs !== undefined && filter.includeDeleted !== true && state !== 'deleted')
        return false;
      if (!meets(id, entry.id) || !meets(accountNumber, entry.accountId as string)) return false;
      if (!meets(state, entry.state) || !meets(filter.channelAccountId, entry.channelId)) return false;
      if (!holds(entry.name, name) || !holds(entry.email, email)) return false;
      const above = tree.aboveCustomer(entry);
      const { controlAccountId, governanceAccountId } = filter;
      if (!knowsGovernance(caller))
        return isVisible(caller, above) && meets(controlAccountId, entry.controlId);
      const wanted = [controlAccountId, governanceAccountId];
      return isVisible(caller, above) && wanted.every((one) => one === undefined || above.includes(one));
    };
  }

  /** The account's state after `active` and `trialToPaid`. Throws ValidationError; AccessDenied for a partner where an operator has suspended it. */
  function stateAfter(
    caller: ApiCaller,
    record: CustomerRecord,
    { active, trialToPaid }: CustomerChanges,
  ): AccountState | undefined {
    if (active === false) return 'suspended';
    if (trialToPaid === true && record.state === 'suspended' && active !== true)
      refuse({ trialToPaid: 'is not for a suspended account: restore it first' });
    const isSuspended = record.state === 'suspended';
    if (isSuspended && active === true && record.isHeld) requireOperator(caller);
    if (isSuspended && active === true)
      return isOnTrial(record, clock.wallMs()) && trialToPaid !== true ? 'trial' : 'paid';
    return trialToPaid === true && record.state === 'trial' ? 'paid' : undefined;
  }

  function changed(caller: ApiCaller, record: CustomerRecord, changes: CustomerChanges): CustomerRecord {
    const { quotaType, sendPasswordReset, ftpEnabled, ssoEnabled, isUnpaid, channelAccountId } = changes;
    const { channelId: _channel, purchasedStorageTB: _purchased, ...rest } = record;
    const { trial } = record;
    const purchased = changes.purchasedStorageTB ?? undefined;
    const storage = changes.purchasedStorageTB === undefined ? record.purchasedStorageTB : purchased;
    const channel = channelAccountId === undefined ? record.channelId : (channelAccountId ?? undefined);
    return {
      ...rest,
      ...(quotaType !== undefined && { quotaType }),
      ...(sendPasswordReset !== undefined && { sendPasswordReset }),
      ...(ftpEnabled !== undefined && { ftpEnabled }),
      ...(ssoEnabled !== undefined && { ssoEnabled }),
      ...(isUnpaid !== undefined && { isUnpaid }),
      ...(storage !== undefined && { purchasedStorageTB: storage }),
      ...(channel !== undefined && { channelId: channel }),
      ...(trial && { trial: changedTrial(caller, { ...record, trial }, changes, clock.wallMs()) }),
      contact: mergeTexts(record.contact, contactOnly(changes.contact)),
    };
  }

  /** Throws ValidationError, AccessDenied. */
  function decided(caller: ApiCaller, record: CustomerRecord, changes: CustomerChanges) {
    const state = stateAfter(caller, record, changes);
    const after = withHold(caller, changed(caller, record, changes), state);
    checkStorage(after);
    return { state, after };
  }

  /** The account as it is stored then. */
  async function save(caller: ApiCaller, record: CustomerRecord, changes: CustomerChanges) {
    const { name, email } = changes;
    const { state, after } = decided(caller, record, changes);
    const { accountId } = record;
    const outcome = requireDone(
      await metadata.execute(system, 'set-account', {
        accountId,
        changes: {
          ...(state !== undefined && { state }),
          ...(changes.isUnpaid !== undefined && { isUnpaid: changes.isUnpaid }),
          ...(name !== undefined && { name }),
          ...(email !== undefined && { email: normaliseEmail(email) }),
        },
        customer: { record: after, ifRevision: record.revision },
      }),
    );
    if (outcome.kind === 'no-such-account') throw noSuch('sub-account');
    if (outcome.kind === 'outdated') throw new AppError('ConcurrentModification');
    if (outcome.kind === 'conflict')
      throw taken(outcome.field, `An account with this ${outcome.field} already exists.`);
    return outcome.account;
  }

  /** Of what opens the account: the new ones. The new pair, if it was asked for. */
  async function resetAccess(
    caller: ApiCaller,
    { accountId }: CustomerRecord,
    { password, resetKeys: hasNewKeys, resetMFA }: CustomerChanges,
  ): Promise<Pick<CustomerView, 'accessKey' | 'secretKey'> | undefined> {
    if (password !== undefined) await setPassword(caller, accountId, password);
    const pair = hasNewKeys === true ? await resetKeys(accountId) : undefined;
    if (resetMFA === true) await deps.resetRootMfa(accountId);
    return pair;
  }

  async function getCustomer(
    caller: ApiCaller,
    id: number,
    options: CustomerOptions = {},
  ): Promise<CustomerView> {
    await directory.refresh();
    const record = await tree.requireCustomer(caller, id, options);
    const { accountId, deletedAtMs } = record;
    const removal = deletedAtMs === undefined ? undefined : await accounts.removal(accountId);
    const mfaEnabled = await hasMfa(accountId);
    const view = { ...viewOf(record), mfaEnabled, ...(removal && { removal }) };
    return (await shown(caller, [view], options))[0] as CustomerView;
  }

  /** The quota of its plan. Where a shard is away the worker sets it (plans.ts): what was changed is changed. */
  async function setPlan(before: CustomerRecord | undefined, after: CustomerView): Promise<void> {
    const nowMs = clock.wallMs();
    const quota = planQuota(after, nowMs);
    if (isSamePlan(before && planQuota(before, nowMs), quota)) return;
    try {
      await deps.setPlanQuota(after.accountId, quota);
      // Of two calls the later one may have set its plan before: the last to end sets what is written by then.
      const [present] = await directory.read('customer', [after.id]);
      if (
        present !== undefined &&
        present.deletedAtMs === undefined &&
        !isSamePlan(planQuota(present, nowMs), quota)
      )
        await setPlan(undefined, viewOf(present));
    } catch (error) {
      if (!(error instanceof AppError && error.status === 503)) throw error;
    }
  }

  return {
    async listCustomers(caller, filter, page: Page, options = {}): Promise<PageOf<CustomerView>> {
      await directory.refresh();
      const { items, total } = pageOf(
        await tree.filter(caller, 'customer', isAskedFor(caller, filter)),
        page,
      );
      const records = await directory.read(
        'customer',
        items.map(({ id }) => id),
      );
      return { items: await shown(caller, records.map(viewOf), options), total };
    },
    getCustomer,
    async createCustomer(caller, input) {
      requireAct(caller, 'change');
      await directory.refresh();
      const controlId = controlOf(caller, input);
      checkChannel(input.channelAccountId, controlId);
      const isTrial = input.isTrial ?? true;
      if (input.password !== undefined) checkLoginPassword(input.password);
      else if (input.sendWelcomeEmail !== true) refuse({ password: 'is required' });
      const purchased = input.purchasedStorageTB ?? undefined;
      const customer: NewCustomerRecord = {
        kind: 'customer',
        controlId,
        ...(typeof input.channelAccountId === 'number' && { channelId: input.channelAccountId }),
        contact: mergeTexts({}, contactOnly(input.contact)),
        quotaType: input.quotaType ?? 'soft',
        ftpEnabled: input.ftpEnabled ?? false,
        sendPasswordReset: input.sendPasswordReset ?? false,
        ssoEnabled: false,
        isUnpaid: false,
        ...(purchased !== undefined && { purchasedStorageTB: purchased }),
        ...(isTrial && { trial: newTrial(caller, input, clock.wallMs()) }),
      };
      checkStorage(customer);
      const { name, email } = input;
      const isBounded = caller.level !== 'admin';
      const isMailed = input.sendWelcomeEmail === true || input.sendPasswordReset === true;
      if (isMailed && isBounded)
        await deps.mails.requireRoom({ id: 0, controlId, email: normaliseEmail(email) });
      const mustReset = input.passwordResetRequired ?? false;
      const { password } = input;
      // Hashed before, and written with the account: there is none without its password.
      const rootLogin = password === undefined ? undefined : await loginOf(caller, { password, mustReset });
      const state = isTrial ? 'trial' : 'paid';
      const made = await inDoubt.send([tenantOf(caller), controlId, input], () =>
        accounts.prepare({ name, email, state, customer, ...(rootLogin && { rootLogin }) }),
      );
      const record = must(made.customer, 'a sub-account has a record');
      const { accountId } = record;
      // It is there: what fails from here on must not hide its keys, nor have it made once more by who repeats the request.
      const attempt = (doing: Promise<void>) =>
        doing.catch((error: unknown) =>
          deps.log.warn({ account: accountId, err: error }, 'sub-account-not-settled'),
        );
      const kind = input.sendWelcomeEmail === true ? 'welcome' : 'password-reset';
      if (isMailed) await attempt(deps.mails.order(kind, record, { isBounded }));
      const view = viewOf(record);
      await attempt(setPlan(undefined, view));
      return { ...view, accessKey: made.accessKey, secretKey: made.secretKey };
    },
    async changeCustomer(caller, id, changes, options = {}) {
      requireAct(caller, 'change');
      if (changes.isUnpaid !== undefined) requireAct(caller, 'operate');
      await directory.refresh();
      const record = await tree.requireCustomer(caller, id);
      const { name, email } = changes;
      checkAccountFields({ ...(name !== undefined && { name }), ...(email !== undefined && { email }) });
      if (changes.password !== undefined) checkLoginPassword(changes.password);
      checkChannel(changes.channelAccountId, record.controlId);
      const isBounded = caller.level !== 'admin';
      if (changes.sendPasswordReset === true && isBounded)
        await deps.mails.requireRoom({ ...record, email: normaliseEmail(email ?? record.email) });
      // Who restores it and resets its keys has it closed to the old ones until they are gone.
      const isReopened = record.state === 'suspended' && changes.active === true;
      if (isReopened) decided(caller, record, changes);
      const before = isReopened ? await resetAccess(caller, record, changes) : undefined;
      const { email: to } = await save(caller, record, changes);
      const pair = isReopened ? before : await resetAccess(caller, record, changes);
      if (changes.sendPasswordReset === true)
        await deps.mails.order('password-reset', { ...record, email: to }, { isBounded });
      const includeKeys = options.includeKeys === true && pair === undefined;
      const view = { ...(await getCustomer(caller, id, { includeKeys })), ...pair };
      await setPlan(record, view);
      return view;
    },
    async deleteCustomer(caller, id) {
      requireAct(caller, 'delete');
      await directory.refresh();
      const { accountId } = await tree.requireCustomer(caller, id);
      await accounts.remove(accountId, { withBuckets: true, ifNotHeld: caller.level !== 'admin' });
    },
    async visibleCustomers(caller, filter: VisibleFilter) {
      await directory.refresh();
      const { subAccountId, includeDeleted = true, ...rest } = filter;
      const wanted = { ...rest, includeDeleted, ...(subAccountId !== undefined && { id: subAccountId }) };
      return tree.filter(caller, 'customer', isAskedFor(caller, wanted));
    },
    parentsOf(customerId) {
      return tree.parentsOf(must(directory.find('customer', customerId), 'no record of it ever goes'));
    },
  };
}

/** A suspension is its partner's, or an operator's, who alone ends it: the mark goes with it (set-account.ts). */
function withHold(
  caller: ApiCaller,
  record: CustomerRecord,
  state: AccountState | undefined,
): CustomerRecord {
  return state === 'suspended' && caller.level === 'admin' ? { ...record, isHeld: true } : record;
}

function requireOperator({ level }: ApiCaller): void {
  if (level === 'admin') return;
  throw new AppError('AccessDenied', { message: HELD });
}

/** Throws ValidationError. */
function checkStorage({
  quotaType,
  purchasedStorageTB: storage,
}: Pick<CustomerRecord, 'quotaType' | 'purchasedStorageTB'>): void {
  if (storage !== undefined && !(storage >= 0 && storage <= STORAGE_TB_MAX))
    refuse({ purchasedStorageTB: `must be from 0 to ${STORAGE_TB_MAX}` });
  if (quotaType === 'hard' && !(storage !== undefined && storage > 0))
    refuse({ purchasedStorageTB: 'must be above 0 with a hard quota' });
}
