// What an account has beside its identities: its alias, its rule for passwords, and a summary of all there is.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { POLICY_SIZES } from '../../policy/documents/compile-policy.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import {
  type IdentityRecord,
  type IdentitySettingsRecord,
  identityKeys,
  type PasswordPolicy,
} from '../../types/records/identity-records.ts';
import { type ActionContext, ANY_RESOURCE, defineIamAction } from './iam-action.ts';
import { paging } from './identity-parameters.ts';
import { pageOf, pageXml } from './list-pages.ts';
import { boolean, integer, orElse, required, text } from './parameter-rules.ts';

const accountAlias = required(
  text({
    charactersMin: 3,
    charactersMax: 63,
    pattern: /^[a-z0-9]([a-z0-9]|-(?!-)){1,61}[a-z0-9]$/,
  }),
);
const flag = orElse(boolean, false);
const access = () => [ANY_RESOURCE];

/** No request is decided by it. */
function save(store: IdentityStore, settings: IdentitySettingsRecord): void {
  store.putUnseen(identityKeys.settings, settings);
}

const createAccountAlias = defineIamAction({
  name: 'CreateAccountAlias',
  parameters: { AccountAlias: accountAlias },
  access,
  async run({ AccountAlias: after }, { store }) {
    const settings = await store.settings();
    const { alias: before } = settings;
    if (before === after) return undefined;
    save(store, { ...settings, alias: after });
    store.changeAlias({ after, ...(before !== undefined && { before }) });
    return undefined;
  },
});

const deleteAccountAlias = defineIamAction({
  name: 'DeleteAccountAlias',
  parameters: { AccountAlias: accountAlias },
  access,
  async run({ AccountAlias }, { store }) {
    const { alias: before, ...settings } = await store.settings();
    if (before !== AccountAlias) {
      const message = `The account alias ${AccountAlias} cannot be found.`;
      throw new AppError('NoSuchEntity', { message });
    }
    save(store, settings);
    store.changeAlias({ before });
    return undefined;
  },
});

const listAccountAliases = defineIamAction({
  name: 'ListAccountAliases',
  parameters: paging,
  access,
  async run(paged, { store }) {
    const { alias } = await store.settings();
    const { items, next } = pageOf(alias === undefined ? [] : [alias], (each) => each, paged);
    return pageXml('AccountAliases', items, next);
  },
});

const getAccountPasswordPolicy = defineIamAction({
  name: 'GetAccountPasswordPolicy',
  parameters: {},
  async access(_values, { store }) {
    // Who may change the own password may see what it must be like.
    const isGranted = (await store.settings()).passwordPolicy?.mayChangeOwn ?? false;
    return [{ ...ANY_RESOURCE, isGranted }];
  },
  async run(_values, { store }) {
    const policy = requirePolicy(store, await store.settings());
    return xmlElement(
      'PasswordPolicy',
      xmlText('MinimumPasswordLength', policy.minimumLength),
      xmlText('RequireSymbols', policy.requireSymbols),
      xmlText('RequireNumbers', policy.requireNumbers),
      xmlText('RequireUppercaseCharacters', policy.requireUppercase),
      xmlText('RequireLowercaseCharacters', policy.requireLowercase),
      xmlText('AllowUsersToChangePassword', policy.mayChangeOwn),
      xmlText('ExpirePasswords', policy.maxAgeDays !== undefined),
      xmlText('MaxPasswordAge', policy.maxAgeDays),
      xmlText('PasswordReusePrevention', policy.rememberedCount),
      xmlText('HardExpiry', policy.hardExpiry),
    );
  },
});

function requirePolicy(
  { accountId }: IdentityStore,
  { passwordPolicy }: IdentitySettingsRecord,
): PasswordPolicy {
  if (passwordPolicy !== undefined) return passwordPolicy;
  const message = `The Password Policy with domain name ${accountId} cannot be found.`;
  throw new AppError('NoSuchEntity', { message });
}

/** What is not sent goes back to its default. */
const updateAccountPasswordPolicy = defineIamAction({
  name: 'UpdateAccountPasswordPolicy',
  parameters: {
    MinimumPasswordLength: orElse(integer({ min: 6, max: 128 }), 6),
    RequireSymbols: flag,
    RequireNumbers: flag,
    RequireUppercaseCharacters: flag,
    RequireLowercaseCharacters: flag,
    AllowUsersToChangePassword: flag,
    MaxPasswordAge: integer({ min: 1, max: 1095 }),
    PasswordReusePrevention: integer({ min: 1, max: 24 }),
    HardExpiry: boolean,
  },
  access,
  async run(values, { store }) {
    const { MaxPasswordAge, PasswordReusePrevention, HardExpiry } = values;
    const passwordPolicy: PasswordPolicy = {
      minimumLength: values.MinimumPasswordLength,
      requireSymbols: values.RequireSymbols,
      requireNumbers: values.RequireNumbers,
      requireUppercase: values.RequireUppercaseCharacters,
      requireLowercase: values.RequireLowercaseCharacters,
      mayChangeOwn: values.AllowUsersToChangePassword,
      ...(MaxPasswordAge !== undefined && { maxAgeDays: MaxPasswordAge }),
      ...(PasswordReusePrevention !== undefined && { rememberedCount: PasswordReusePrevention }),
      ...(HardExpiry !== undefined && { hardExpiry: HardExpiry }),
    };
    save(store, { ...(await store.settings()), passwordPolicy });
    return undefined;
  },
});

const deleteAccountPasswordPolicy = defineIamAction({
  name: 'DeleteAccountPasswordPolicy',
  parameters: {},
  access,
  async run(_values, { store }) {
    const settings = await store.settings();
    requirePolicy(store, settings);
    const { passwordPolicy: _, ...rest } = settings;
    save(store, rest);
    return undefined;
  },
});

const getAccountSummary = defineIamAction({
  name: 'GetAccountSummary',
  parameters: {},
  readsPolicies: true,
  access,
  async run(_values, context) {
    const entries = Object.entries(await summaryOf(context)).map(([key, value]) =>
      xmlElement('entry', xmlText('key', key), xmlText('value', value)),
    );
    return xmlElement('SummaryMap', ...entries);
  },
});

/** As AWS names the figures; those of what is not here (certificates, instance profiles) are left out. */
async function summaryOf({ store }: ActionContext): Promise<Record<string, number>> {
  const settings = await store.settings();
  const { counts = {}, rootMfaDevices } = settings;
  const versionCount = await sumOfRows(store, {
    prefix: identityKeys.policy(''),
    max: LIMITS.managedPoliciesMax,
    of: (record) => (record.kind === 'policy' ? record.versions.length : 0),
  });
  const enabledCount = await sumOfRows(store, {
    prefix: identityKeys.mfaDevice(''),
    max: counts.mfaDevice ?? 0,
    of: (record) => (record.kind === 'mfa-device' && record.enabled !== undefined ? 1 : 0),
  });
  return {
    Users: counts.user ?? 0,
    UsersQuota: LIMITS.usersMax,
    Groups: counts.group ?? 0,
    GroupsQuota: LIMITS.groupsMax,
    GroupsPerUserQuota: LIMITS.groupsPerUserMax,
    Roles: counts.role ?? 0,
    RolesQuota: LIMITS.rolesMax,
    Policies: counts.policy ?? 0,
    PoliciesQuota: LIMITS.managedPoliciesMax,
    PolicyVersionsInUse: versionCount,
    PolicySizeQuota: POLICY_SIZES.managedCharactersMax,
    UserPolicySizeQuota: POLICY_SIZES.userInlineCharactersMax,
    GroupPolicySizeQuota: POLICY_SIZES.groupInlineCharactersMax,
    RolePolicySizeQuota: POLICY_SIZES.roleInlineCharactersMax,
    AssumeRolePolicySizeQuota: POLICY_SIZES.trustCharactersMax,
    AccessKeysPerUserQuota: LIMITS.accessKeysPerUserMax,
    MFADevices: counts.mfaDevice ?? 0,
    MFADevicesInUse: enabledCount,
    AccountMFAEnabled: rootMfaDevices.length > 0 ? 1 : 0,
    // Whoever asks has signed with one, or is a user whose account has.
    AccountAccessKeysPresent: 1,
    AccountPasswordPresent: 0,
  };
}

/** A policy or device may have 20 KB of tags. */
const ROWS_AT_ONCE = 50;

/** Keeps none of the rows, and lets others go on after some. */
async function sumOfRows(
  store: IdentityStore,
  { prefix, max, of }: { prefix: string; max: number; of(record: IdentityRecord): number },
): Promise<number> {
  let sum = 0;
  let after: string | undefined;
  for (let count = 0; count <= max; count += ROWS_AT_ONCE) {
    await store.turn();
    const rows = await store.range({ prefix, after, limit: ROWS_AT_ONCE });
    for (const { record } of rows) sum += of(record);
    after = rows.at(-1)?.key;
    if (rows.length < ROWS_AT_ONCE) break;
  }
  return sum;
}

export const ACCOUNT_ACTIONS = [
  createAccountAlias,
  deleteAccountAlias,
  listAccountAliases,
  getAccountPasswordPolicy,
  updateAccountPasswordPolicy,
  deleteAccountPasswordPolicy,
  getAccountSummary,
];
