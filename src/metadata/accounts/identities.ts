// Users, groups, roles and policies as rows of the system shard (identity-records.ts). What IAM decides about them, the gateway
// decides (src/gateway/identity-api): it reads rows at one revision of the account, and the command writes what it made of them
// only if the revision is still that one. So changes of one account are serial, and the shard needs to know no rule of IAM.
import { concatBytes, fromUtf8 } from '../../base/bytes/bytes.ts';
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, RowAddress, RowPut, StateReader, View } from '../../ports/state-machine.ts';
import type { AccountId } from '../../types/names.ts';
import {
  type GroupRecord,
  type IdentityRecord,
  identityCodec,
  identityKeys,
  keyUseCodec,
  type RoleRecord,
  type StoredPrincipal,
  type UserRecord,
} from '../../types/records/identity-records.ts';
import { accessKeyCodec, accountCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { readU48, u48 } from '../schema/key-parts.ts';
import {
  accessKeyRow,
  accountAliasRow,
  accountRow,
  identityRevisionRow,
  identityRow,
  keyUseRow,
  prefixRange,
  put,
  remove,
  TABLES,
} from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findAccessKey, isSignerGone, lookAtSigner } from './access-keys.ts';
import { encodeAccountId, findAccount, findLiveAccount } from './accounts.ts';
import { lookAtChanges, noteChange } from './identity-changes.ts';
import { lookAtChange, refusalOf, writeChange } from './tenancy.ts';

type Change = CommandOf<'change-identities'>;

export const changeIdentities = defineCommand<Change, OutcomeOf<'change-identities'>>({
  locks: (command) => [
    exclusive(LOCK.accounts),
    exclusive(LOCK.account(command.accountId)),
    exclusive(LOCK.identities),
    ...(treeChange(command) === undefined ? [] : [exclusive(LOCK.tenancy)]),
  ],

  look(command, view) {
    const { accountId, rows, keys = [], alias } = command;
    lookAtSigner(view, command.by);
    findLiveAccount(view, accountId);
    view.row(identityRevisionRow(accountId));
    for (const { key, record } of rows)
      if (record?.kind === 'mfa-device') view.row(identityRow(accountId, key));
    for (const accessKey of keys.map(nameOf)) findAccessKey(view, accessKey);
    if (alias?.after !== undefined) view.row(accountAliasRow(alias.after));
    const ofTree = treeChange(command);
    if (ofTree !== undefined) lookAtChange(ofTree, view);
    lookAtChanges(view);
  },

  decide(command, view, { nowMs, random }) {
    const { accountId, ifRevision, rows, keys = [], alias, isSeen } = command;
    if (findLiveAccount(view, accountId) === undefined) return refuse({ kind: 'no-such-account' });
    const row = view.row(identityRevisionRow(accountId));
    const revision = row === undefined ? 0 : readU48(row);
    if (revision !== ifRevision || isSignerGone(view, command.by)) return refuse({ kind: 'conflict' });
    if (alias?.after !== undefined && view.row(accountAliasRow(alias.after)) !== undefined)
      return refuse({ kind: 'alias-taken' });
    const isTaken = keys.some((each) => each.kind === 'add' && findAccessKey(view, each.key.accessKey));
    if (isTaken) return refuse({ kind: 'key-taken' });
    const ofTree = treeChange(command);
    const refusal = ofTree && refusalOf(ofTree, view);
    if (refusal !== undefined) return refuse({ kind: refusal === 'taken' ? 'login-taken' : refusal });
    const written = ofTree && writeChange(view, ofTree, nowMs);
    const added = written?.records.slice(0, command.newRecords?.length ?? 0);
    const noted = isSeen ? noteChange(view, { accountId, random }) : undefined;
    return {
      outcome: {
        kind: 'changed',
        revision: revision + 1,
        ...(command.newRecords && added && { added }),
        ...(noted && { revokedSeq: noted.seq }),
      },
      puts: [
        ...rows.map(({ key, record }) => {
          const address = identityRow(accountId, key);
          return record === null
            ? remove(address)
            : put(address, identityCodec.encode(keptSeal(record, view, address)));
        }),
        put(identityRevisionRow(accountId), u48(revision + 1)),
        ...keys.flatMap((change) => keyRows(view, { accountId, change, nowMs })),
        ...(alias?.before === undefined ? [] : [remove(accountAliasRow(alias.before))]),
        ...(alias?.after === undefined
          ? []
          : [put(accountAliasRow(alias.after), encodeAccountId(accountId))]),
        ...(written?.puts ?? []),
        ...(noted?.puts ?? []),
      ],
    };
  },
});

/**
 * A device has one seed for its life, and a rotation of master keys wraps it anew without a new revision: what was decided on an
 * earlier look would put it back under a key that is removed.
 */
function keptSeal(record: IdentityRecord, view: View, address: RowAddress): IdentityRecord {
  if (record.kind !== 'mfa-device') return record;
  const row = view.row(address);
  const before = row && identityCodec.decode(row);
  if (before?.kind !== 'mfa-device' || before.createdAtMs !== record.createdAtMs) return record;
  return { ...record, sealedSeed: before.sealedSeed };
}

/** What becomes of the tree in the same commit; undefined: nothing. */
function treeChange({ records, newRecords }: Change): CommandOf<'change-tenancy'> | undefined {
  if (records === undefined && newRecords === undefined) return undefined;
  return { ...(newRecords && { add: newRecords }), ...(records && { replace: records }) };
}

type KeyChange = NonNullable<Change['keys']>[number];

function nameOf(change: KeyChange): string {
  return change.kind === 'add' ? change.key.accessKey : change.accessKey;
}

/** Keys of users are not among the account's own (accountAccessKeyRow): the user's row names them. */
function keyRows(
  view: View,
  { accountId, change, nowMs }: { accountId: AccountId; change: KeyChange; nowMs: number },
): RowPut[] {
  const address = accessKeyRow(nameOf(change));
  if (change.kind === 'add') {
    return [put(address, accessKeyCodec.encode({ ...change.key, accountId, createdAtMs: nowMs }))];
  }
  const before = findAccessKey(view, change.accessKey);
  if (before?.accountId !== accountId || before.userId === undefined) return [];
  if (change.kind === 'delete') return [remove(address), remove(keyUseRow(change.accessKey))];
  const { isDisabled: _, ...enabled } = before;
  const after = change.kind === 'disable' ? { ...enabled, isDisabled: true as const } : enabled;
  return [put(address, accessKeyCodec.encode(after))];
}

export const forgetIdentities = defineCommand<CommandOf<'forget-identities'>, OutcomeOf<'forget-identities'>>(
  {
    locks: ({ accountId }) => [exclusive(LOCK.accounts), exclusive(LOCK.account(accountId))],

    look({ accountId, limit }, view) {
      findAccount(view, accountId);
      view.row(identityRevisionRow(accountId));
      view.range(rangeOf(accountId, { prefix: '', limit }));
    },

    decide({ accountId, limit }, view) {
      if (findAccount(view, accountId) !== undefined) return refuse({ kind: 'account-exists' });
      const rows = view.range(rangeOf(accountId, { prefix: '', limit }));
      const records = rows.map(({ value }) => identityCodec.decode(value));
      const keys = records.flatMap((record) => (record.kind === 'user' ? record.accessKeys : []));
      const aliases = records.flatMap((record) =>
        record.kind === 'settings' && record.alias !== undefined ? [record.alias] : [],
      );
      const revision = identityRevisionRow(accountId);
      return {
        outcome: { kind: 'forgotten', isAll: rows.length < limit },
        puts: [
          ...rows.map(({ key }) => remove({ table: TABLES.identities, key })),
          ...keys.map(({ accessKey }) => remove(accessKeyRow(accessKey))),
          ...keys.map(({ accessKey }) => remove(keyUseRow(accessKey))),
          ...aliases.map((alias) => remove(accountAliasRow(alias))),
          ...(view.row(revision) === undefined ? [] : [remove(revision)]),
        ],
      };
    },
  },
);

export const noteKeyUses = defineCommand<CommandOf<'note-key-uses'>, OutcomeOf<'note-key-uses'>>({
  locks: () => [exclusive(LOCK.accounts)],

  look({ uses, roles = [] }, view) {
    for (const { accessKey } of uses) {
      findAccessKey(view, accessKey);
      view.row(keyUseRow(accessKey));
    }
    for (const { accountId, id } of roles) {
      view.row(identityRow(accountId, identityKeys.id(id)));
      view.row(identityRow(accountId, identityKeys.roleUse(id)));
    }
  },

  decide({ uses, roles = [] }, view) {
    const puts = uses.flatMap(({ accessKey, ...use }) => {
      if (findAccessKey(view, accessKey) === undefined) return [];
      const address = keyUseRow(accessKey);
      const row = view.row(address);
      if (row !== undefined && keyUseCodec.decode(row).atMs >= use.atMs) return [];
      return [put(address, keyUseCodec.encode(use))];
    });
    // No decision rests on it: the account's revision stays.
    const ofRoles = roles.flatMap(({ accountId, id, ...use }) => {
      if (view.row(identityRow(accountId, identityKeys.id(id))) === undefined) return [];
      const address = identityRow(accountId, identityKeys.roleUse(id));
      const row = view.row(address);
      const before = row && identityCodec.decode(row);
      if (before?.kind === 'role-use' && before.atMs >= use.atMs) return [];
      return [put(address, identityCodec.encode({ kind: 'role-use', ...use }))];
    });
    return { outcome: { kind: 'noted' }, puts: [...puts, ...ofRoles] };
  },
});

export const readIdentities: QuerySpec<QueryOf<'read-identities'>, ResultOf<'read-identities'>> = {
  ownerOf: ({ accountId }) => accountId,
  async run({ accountId, keys = [], ranges = [] }, state) {
    const view = state.view(TABLES.buckets);
    try {
      const addresses = keys.map((key) => identityRow(accountId, key));
      const [revision, ...rows] = await view.rows([identityRevisionRow(accountId), ...addresses]);
      const lists: ResultOf<'read-identities'>['ranges'] = [];
      for (const range of ranges) {
        const found = await view.range(rangeOf(accountId, range));
        lists.push(
          found.map(({ key, value }) => ({
            key: fromUtf8(key.subarray(ACCOUNT_BYTES)),
            record: identityCodec.decode(value),
          })),
        );
      }
      return {
        revision: revision === undefined ? 0 : readU48(revision),
        rows: rows.map((row) => (row === undefined ? null : identityCodec.decode(row))),
        ranges: lists,
      };
    } finally {
      view.close();
    }
  },
};

const ACCOUNT_BYTES = 6;

function rangeOf(
  accountId: AccountId,
  { prefix, after, limit }: { prefix: string; after?: string; limit: number },
) {
  const { table, key } = identityRow(accountId, prefix);
  const range = prefixRange({ table, prefix: key, limit });
  if (after === undefined) return range;
  return { ...range, gte: concatBytes(identityRow(accountId, after).key, Uint8Array.of(0)) };
}

export const getPrincipal: QuerySpec<QueryOf<'get-principal'>, ResultOf<'get-principal'>> = {
  async run(query, state) {
    const [row] = await state.rows([accountRow(query.accountId)]);
    if (row === undefined) return null;
    const account = accountCodec.decode(row);
    if (account.deletedAtMs !== undefined) return null;
    const principal = await readPrincipal(state, query);
    if (principal === undefined) return null;
    return { account, principal: 'large' in principal ? 'large' : principal };
  },
};

export const getKeyUses: QuerySpec<QueryOf<'get-key-uses'>, ResultOf<'get-key-uses'>> = {
  async run({ accessKeys }, state) {
    const rows = await state.rows(accessKeys.map(keyUseRow));
    return { uses: rows.map((row) => (row === undefined ? null : keyUseCodec.decode(row))) };
  },
};

/**
 * A user or role, with its groups and the texts of its managed policies. A change between two looks comes with a new revision.
 * `large`: its texts take more than `textsBytesMax`, and the rest of them has not been read.
 */
export async function readPrincipal(
  state: StateReader,
  {
    accountId,
    id,
    textsBytesMax = Number.POSITIVE_INFINITY,
  }: { accountId: AccountId; id: string; textsBytesMax?: number | undefined },
): Promise<StoredPrincipal | { large: UserRecord | RoleRecord } | undefined> {
  let leftBytes = textsBytesMax;
  const take = (texts: readonly { text: string }[]) => {
    for (const { text } of texts) leftBytes -= text.length;
    return leftBytes >= 0;
  };
  const view = state.view(TABLES.buckets);
  const read = async (keys: readonly string[]): Promise<(IdentityRecord | undefined)[]> => {
    const rows = await view.rows(keys.map((key) => identityRow(accountId, key)));
    return rows.map((row) => row && identityCodec.decode(row));
  };
  try {
    const [index] = await read([identityKeys.id(id)]);
    if (index?.kind !== 'index' || index.to === undefined) return undefined;
    const [entity] = await read([index.to]);
    if (entity?.kind !== 'user' && entity?.kind !== 'role') return undefined;
    const large = { large: entity };
    if (!take(entity.inlinePolicies)) return large;
    const groups = await groupsOf(entity, read);
    if (!take(groups.flatMap(({ inlinePolicies }) => inlinePolicies))) return large;
    const arns = new Set([entity, ...groups].flatMap(({ attachedPolicies }) => attachedPolicies));
    if (entity.boundary !== undefined) arns.add(entity.boundary);
    const policies: StoredPrincipal['policies'] = [];
    for (const some of slices([...arns], TEXTS_AT_ONCE)) {
      const texts = await textsOf(accountId, some, read);
      if (!take(texts)) return large;
      policies.push(...texts);
    }
    return { entity, groups, policies };
  } finally {
    view.close();
  }
}

/** Managed policies whose texts are read at once. */
const TEXTS_AT_ONCE = 8;

function* slices<T>(list: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size);
}

type Read = (keys: readonly string[]) => Promise<(IdentityRecord | undefined)[]>;

async function groupsOf(entity: UserRecord | RoleRecord, read: Read): Promise<GroupRecord[]> {
  if (entity.kind === 'role') return [];
  const indices = await read(entity.groups.map(identityKeys.id));
  const keys = indices.flatMap((index) =>
    index?.kind === 'index' && index.to !== undefined ? [index.to] : [],
  );
  const groups = await read(keys);
  return groups.filter((group) => group?.kind === 'group');
}

/** Of those among the policies that are this account's; ready-made ones have their texts in the gateway. */
async function textsOf(accountId: AccountId, arns: readonly string[], read: Read) {
  const prefix = `arn:aws:iam::${accountId}:policy/`;
  const own = arns.filter((arn) => arn.startsWith(prefix));
  const names = own.map((arn) => arn.slice(arn.lastIndexOf('/') + 1));
  const policies = await read(names.map(identityKeys.policy));
  const found = own.flatMap((arn, at) => {
    const policy = policies[at];
    const name = names[at];
    return policy?.kind === 'policy' && name !== undefined
      ? [{ arn, key: identityKeys.policyVersion(name, policy.defaultVersion) }]
      : [];
  });
  const texts = await read(found.map(({ key }) => key));
  return found.flatMap(({ arn }, at) => {
    const version = texts[at];
    return version?.kind === 'policy-version' ? [{ arn, text: version.text }] : [];
  });
}
