// Access keys of users, and the account's own: a root that names no user means those.
import { mintKeyPair } from '../../accounts/mint-keys.ts';
import { utf8 } from '../../base/bytes/bytes.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { identityKeys, type UserRecord } from '../../types/records/identity-records.ts';
import { requireDone } from '../../types/require-done.ts';
import { signerOf } from './authorize-action.ts';
import { type AccessTarget, type ActionContext, defineIamAction } from './iam-action.ts';
import { identityArn, paging, userName } from './identity-parameters.ts';
import { pageOf, pageXml } from './list-pages.ts';
import { choice, required, text } from './parameter-rules.ts';
import { xmlTime } from './query-protocol.ts';
import { requireUser, userNameOf, userTarget } from './users.ts';

const SYSTEM = { shard: SYSTEM_SHARD };

interface Key {
  readonly accessKey: string;
  readonly isActive: boolean;
  readonly createdAtMs: number;
}

const accessKeyId = text({ charactersMin: 16, charactersMax: 128, pattern: /^\w+$/ });

function isOfRoot({ caller }: ActionContext, given: string | undefined): boolean {
  return given === undefined && caller.principal.kind === 'root';
}

async function keysTarget(context: ActionContext, given: string | undefined): Promise<AccessTarget> {
  if (isOfRoot(context, given)) return { resource: context.caller.principal.arn };
  return userTarget(context, await userNameOf(context, given));
}

async function ownerOf(context: ActionContext, given: string | undefined): Promise<UserRecord | 'root'> {
  return isOfRoot(context, given) ? 'root' : requireUser(context.store, await userNameOf(context, given));
}

function noSuchKey(accessKey: string): AppError {
  return new AppError('NoSuchEntity', { message: `The Access Key with id ${accessKey} cannot be found.` });
}

function tooManyKeys(max: number): AppError {
  return new AppError('LimitExceeded', { message: `Cannot exceed quota for AccessKeysPerUser: ${max}` });
}

/** The name of its owner is left out for a root, which has none. */
function keyXml(owner: UserRecord | 'root', key: Key, secretKey?: string): string {
  return [
    xmlText('UserName', owner === 'root' ? undefined : owner.name),
    xmlText('AccessKeyId', key.accessKey),
    xmlText('Status', key.isActive ? 'Active' : 'Inactive'),
    xmlText('SecretAccessKey', secretKey),
    xmlTime('CreateDate', key.createdAtMs),
  ].join('');
}

const createAccessKey = defineIamAction({
  name: 'CreateAccessKey',
  parameters: { UserName: userName },
  access: async ({ UserName }, context) => [await keysTarget(context, UserName)],
  async run({ UserName }, context) {
    const { deps, store, nowMs, caller } = context;
    const owner = await ownerOf(context, UserName);
    const { accessKey, secretKey } = mintKeyPair(deps.random);
    const sealed = { accessKey, sealedSecret: deps.keyring.wrap(utf8(secretKey)) };
    const key = { accessKey, isActive: true, createdAtMs: nowMs };
    if (owner === 'root') {
      const { accountId } = store;
      const outcome = requireDone(
        await deps.metadata.execute(SYSTEM, 'add-access-key', {
          accountId,
          accessKey: sealed,
          by: signerOf(caller),
        }),
      );
      if (outcome.kind === 'no-such-signer') throw new AppError('InvalidClientTokenId');
      if (outcome.kind === 'too-many-keys') throw tooManyKeys(LIMITS.accessKeysPerAccountMax);
      // Names are of chance: `taken` does not happen.
      if (outcome.kind !== 'added') throw new AppError('ConcurrentModification');
    } else {
      if (owner.accessKeys.length >= LIMITS.accessKeysPerUserMax)
        throw tooManyKeys(LIMITS.accessKeysPerUserMax);
      const accessKeys = [...owner.accessKeys, key];
      store.putUnseen(identityKeys.user(owner.name), { ...owner, accessKeys });
      store.changeKey({ kind: 'add', key: { ...sealed, userId: owner.id } });
    }
    return xmlElement('AccessKey', keyXml(owner, key, secretKey));
  },
});

const listAccessKeys = defineIamAction({
  name: 'ListAccessKeys',
  parameters: { UserName: userName, ...paging },
  access: async ({ UserName }, context) => [await keysTarget(context, UserName)],
  async run({ UserName, ...paged }, context) {
    const owner = await ownerOf(context, UserName);
    const keys = owner === 'root' ? await keysOfRoot(context) : owner.accessKeys;
    const { items, next } = pageOf(keys, ({ accessKey }) => accessKey, paged);
    return pageXml(
      'AccessKeyMetadata',
      items.map((key) => keyXml(owner, key)),
      next,
    );
  },
});

async function keysOfRoot({ deps, store }: ActionContext): Promise<Key[]> {
  const { accountId } = store;
  const found = requireDone(await deps.metadata.query(SYSTEM, 'list-access-keys', { accountId }));
  return found.accessKeys.map(({ accessKey, createdAtMs, isDisabled }) => ({
    accessKey,
    createdAtMs,
    isActive: isDisabled !== true,
  }));
}

const updateAccessKey = defineIamAction({
  name: 'UpdateAccessKey',
  parameters: {
    UserName: userName,
    AccessKeyId: required(accessKeyId),
    Status: required(choice(['Active', 'Inactive'])),
  },
  access: async ({ UserName }, context) => [await keysTarget(context, UserName)],
  async run({ UserName, AccessKeyId: accessKey, Status }, context) {
    const isActive = Status === 'Active';
    const kind = isActive ? 'enable' : 'disable';
    const owner = await ownerOf(context, UserName);
    if (owner === 'root') return changeKeyOfRoot(context, { accessKey, kind });
    const key = requireKey(owner, accessKey);
    if (key.isActive === isActive) return undefined;
    const accessKeys = owner.accessKeys.map((each) => (each === key ? { ...key, isActive } : each));
    context.store.putUnseen(identityKeys.user(owner.name), { ...owner, accessKeys });
    context.store.changeKey({ kind, accessKey });
    return undefined;
  },
});

const deleteAccessKey = defineIamAction({
  name: 'DeleteAccessKey',
  parameters: { UserName: userName, AccessKeyId: required(accessKeyId) },
  access: async ({ UserName }, context) => [await keysTarget(context, UserName)],
  async run({ UserName, AccessKeyId: accessKey }, context) {
    const owner = await ownerOf(context, UserName);
    if (owner === 'root') return changeKeyOfRoot(context, { accessKey, kind: 'delete' });
    const key = requireKey(owner, accessKey);
    const accessKeys = owner.accessKeys.filter((each) => each !== key);
    context.store.putUnseen(identityKeys.user(owner.name), { ...owner, accessKeys });
    context.store.changeKey({ kind: 'delete', accessKey });
    return undefined;
  },
});

function requireKey(owner: UserRecord, accessKey: string): UserRecord['accessKeys'][number] {
  const key = owner.accessKeys.find((each) => each.accessKey === accessKey);
  if (key === undefined) throw noSuchKey(accessKey);
  return key;
}

/** Answered once no gateway takes a key any more that is taken away. */
async function changeKeyOfRoot(
  { deps, store, caller }: ActionContext,
  { accessKey, kind }: { accessKey: string; kind: 'enable' | 'disable' | 'delete' },
): Promise<undefined> {
  const command = { accountId: store.accountId, accessKey, change: kind, by: signerOf(caller) };
  const outcome = requireDone(await deps.metadata.execute(SYSTEM, 'change-access-key', command));
  if (outcome.kind === 'no-such-signer') throw new AppError('InvalidClientTokenId');
  if (outcome.kind === 'no-such-key') throw noSuchKey(accessKey);
  if (outcome.kind === 'last-key-of-root') {
    const message = 'It is the last access key with which the root account can sign. Make a new one first.';
    throw new AppError('DeleteConflict', { message });
  }
  return undefined;
}

/** Whose a key of this account is, absent of the root; what other accounts have is not told. */
async function findKey({ deps, store }: ActionContext, accessKey: string) {
  const query = { accessKey, mayBeDisabled: true as const, textsBytesMax: 0 };
  const found = requireDone(await deps.metadata.query(SYSTEM, 'get-access-key', query));
  if (found.kind === 'unknown' || found.account.accountId !== store.accountId) return undefined;
  return { owner: found.kind === 'large' ? found.entity : found.principal?.entity };
}

const getAccessKeyLastUsed = defineIamAction({
  name: 'GetAccessKeyLastUsed',
  parameters: { AccessKeyId: required(accessKeyId) },
  async access({ AccessKeyId }, context) {
    const { store, caller } = context;
    const found = await findKey(context, AccessKeyId);
    const owner = found?.owner;
    // Whose a key is, or whether it is there, is for those to know who may ask.
    const shownResource = identityArn(store.accountId, 'user', { path: '/', name: '*' });
    if (owner !== undefined) {
      const target = await userTarget(context, owner.name);
      return [owner.id === caller.identity.id ? target : { ...target, shownResource }];
    }
    // Of a key that is not there it is not known whose it would be.
    const isOfRoot = found !== undefined;
    const resource = isOfRoot ? `arn:aws:iam::${store.accountId}:root` : shownResource;
    return [{ resource, shownResource }];
  },
  async run({ AccessKeyId: accessKey }, context) {
    const found = await findKey(context, accessKey);
    if (found === undefined) throw noSuchKey(accessKey);
    const { uses } = requireDone(
      await context.deps.metadata.query(SYSTEM, 'get-key-uses', { accessKeys: [accessKey] }),
    );
    const [use] = uses;
    const lastUsed = [
      use ? xmlTime('LastUsedDate', use.atMs) : '',
      xmlText('ServiceName', use?.service ?? 'N/A'),
      xmlText('Region', use?.region ?? 'N/A'),
    ];
    return xmlText('UserName', found.owner?.name) + xmlElement('AccessKeyLastUsed', ...lastUsed);
  },
});

export const ACCESS_KEY_ACTIONS = [
  createAccessKey,
  listAccessKeys,
  updateAccessKey,
  deleteAccessKey,
  getAccessKeyLastUsed,
];
