// Login profiles: a user's password for sign-in by hand, and how it is changed.
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { AppError } from '../../types/errors.ts';
import { identityKeys, type PasswordPolicy, type UserRecord } from '../../types/records/identity-records.ts';
import { type ActionContext, defineIamAction } from './iam-action.ts';
import { userName } from './identity-parameters.ts';
import { boolean, required, text } from './parameter-rules.ts';
import { checkPassword } from './passwords.ts';
import { xmlTime } from './query-protocol.ts';
import { ownUserName, requireUser, userNameOf, userTarget } from './users.ts';

type LoginProfile = NonNullable<UserRecord['loginProfile']>;

const password = text({
  charactersMax: 128,
  pattern: /^[\t\n\r\x20-\xff]+$/,
  isSecret: true,
});

function requireProfile({ name, loginProfile }: UserRecord): LoginProfile {
  if (loginProfile !== undefined) return loginProfile;
  throw new AppError('NoSuchEntity', { message: `Login Profile for User ${name} cannot be found.` });
}

function profileXml(user: UserRecord, profile: LoginProfile): string {
  return xmlElement(
    'LoginProfile',
    xmlText('UserName', user.name),
    xmlTime('CreateDate', profile.createdAtMs),
    xmlText('PasswordResetRequired', profile.mustReset),
  );
}

/** Hashes once for all runs of the action: it takes long enough for others to change the account meanwhile. */
function hashOnce({ deps, once, store }: ActionContext, given: string): Promise<string> {
  return once('hash', () => deps.passwords.hash(store.accountId, given));
}

/** Nothing that a request is decided by rests on it. */
function saveProfile({ store }: ActionContext, user: UserRecord, loginProfile: LoginProfile): void {
  store.putUnseen(identityKeys.user(user.name), { ...user, loginProfile });
}

/** The profile with another password. Throws PasswordPolicyViolation for one that was used before. */
async function withPassword(
  context: ActionContext,
  profile: LoginProfile,
  { given, policy }: { given: string; policy: PasswordPolicy | undefined },
): Promise<LoginProfile> {
  checkPassword(given, policy);
  const { deps, store, once } = context;
  const rememberedCount = policy?.rememberedCount ?? 0;
  const hashes = [profile.passwordHash, ...(profile.earlierHashes ?? [])];
  const remembered = hashes.slice(0, rememberedCount);
  for (const stored of remembered) {
    const isSame = () => deps.passwords.isSame(store.accountId, { password: given, stored });
    if (!(await once(`is ${stored}`, isSame))) continue;
    const message = 'Password does not conform to the account password policy: it was used before.';
    throw new AppError('PasswordPolicyViolation', { message });
  }
  const { earlierHashes: _, ...rest } = profile;
  return {
    ...rest,
    passwordHash: await hashOnce(context, given),
    changedAtMs: context.nowMs,
    ...(remembered.length > 0 && { earlierHashes: remembered }),
  };
}

const createLoginProfile = defineIamAction({
  name: 'CreateLoginProfile',
  parameters: { UserName: userName, Password: required(password), PasswordResetRequired: boolean },
  access: async ({ UserName }, context) => [await userTarget(context, await userNameOf(context, UserName))],
  async run({ UserName, Password, PasswordResetRequired = false }, context) {
    const { store, nowMs } = context;
    const user = await requireUser(store, await userNameOf(context, UserName));
    if (user.loginProfile !== undefined) {
      const message = `Login Profile for user ${user.name} already exists.`;
      throw new AppError('EntityAlreadyExists', { message });
    }
    checkPassword(Password, (await store.settings()).passwordPolicy);
    const profile: LoginProfile = {
      createdAtMs: nowMs,
      changedAtMs: nowMs,
      mustReset: PasswordResetRequired,
      passwordHash: await hashOnce(context, Password),
    };
    saveProfile(context, user, profile);
    return profileXml(user, profile);
  },
});

const getLoginProfile = defineIamAction({
  name: 'GetLoginProfile',
  parameters: { UserName: userName },
  access: async ({ UserName }, context) => [await userTarget(context, await userNameOf(context, UserName))],
  async run({ UserName }, context) {
    const user = await requireUser(context.store, await userNameOf(context, UserName));
    return profileXml(user, requireProfile(user));
  },
});

const updateLoginProfile = defineIamAction({
  name: 'UpdateLoginProfile',
  parameters: { UserName: required(userName), Password: password, PasswordResetRequired: boolean },
  access: async ({ UserName }, context) => [await userTarget(context, UserName)],
  async run({ UserName, Password: given, PasswordResetRequired }, context) {
    const user = await requireUser(context.store, UserName);
    const before = requireProfile(user);
    const policy = (await context.store.settings()).passwordPolicy;
    const after = given === undefined ? before : await withPassword(context, before, { given, policy });
    saveProfile(context, user, { ...after, mustReset: PasswordResetRequired ?? before.mustReset });
    return undefined;
  },
});

const deleteLoginProfile = defineIamAction({
  name: 'DeleteLoginProfile',
  parameters: { UserName: userName },
  access: async ({ UserName }, context) => [await userTarget(context, await userNameOf(context, UserName))],
  async run({ UserName }, context) {
    const { store } = context;
    const user = await requireUser(store, await userNameOf(context, UserName));
    requireProfile(user);
    const { loginProfile: _, ...rest } = user;
    store.putUnseen(identityKeys.user(user.name), rest);
    return undefined;
  },
});

const changePassword = defineIamAction({
  name: 'ChangePassword',
  parameters: { OldPassword: required(password), NewPassword: required(password) },
  async access(_values, context) {
    const { caller, store } = context;
    const name = await ownUserName(context);
    if (name === undefined) return [{ resource: caller.principal.arn }];
    // The account's rule may give this right to all of its users.
    const isGranted = (await store.settings()).passwordPolicy?.mayChangeOwn ?? false;
    return [{ ...(await userTarget(context, name)), isGranted }];
  },
  async run({ OldPassword, NewPassword: given }, context) {
    const { store, deps } = context;
    const name = await ownUserName(context);
    if (name === undefined) {
      const message = 'Only a user can change its own password.';
      throw new AppError('InvalidUserType', { message });
    }
    const user = await requireUser(store, name);
    const profile = requireProfile(user);
    const { passwordHash: stored } = profile;
    const who = { accountId: store.accountId, userId: user.id };
    // Who has a key of the user is not to learn its password by trying.
    const verify = () => deps.passwords.verify(who, { password: OldPassword, stored });
    const isRight = await context.once(`old ${stored}`, verify);
    if (!isRight) throw new AppError('AccessDenied', { message: 'The old password was incorrect.' });
    const policy = (await store.settings()).passwordPolicy;
    const changed = await withPassword(context, profile, { given, policy });
    saveProfile(context, user, { ...changed, mustReset: false });
    return undefined;
  },
});

export const LOGIN_PROFILE_ACTIONS = [
  createLoginProfile,
  getLoginProfile,
  updateLoginProfile,
  deleteLoginProfile,
  changePassword,
];
