// Accounts as the operator manages them. The rules are those of src/accounts; here is their JSON.
import type { AccountWithKeys } from '../../../accounts/accounts.ts';
import { AppError } from '../../../types/errors.ts';
import type { AccountRecord, AccountState } from '../../../types/records/rows.ts';
import { defineEndpoint, type EndpointRequest, readFields } from '../endpoint.ts';

const STATES: readonly string[] = ['trial', 'paid', 'suspended'] satisfies AccountState[];

/** An account as JSON. Keys are apart: the secret is told at creation only. */
function accountJson(account: AccountRecord) {
  return {
    id: account.accountId,
    name: account.name,
    email: account.email,
    canonicalId: account.canonicalId,
    state: account.state,
    isRoot: account.isRoot,
    bucketCount: account.bucketCount,
    bucketsMax: account.bucketsMax,
    createdAt: new Date(account.createdAtMs).toISOString(),
  };
}

function withKey({ account, accessKeys }: AccountWithKeys) {
  return { ...accountJson(account), accessKey: accessKeys[0] ?? null, accessKeys };
}

function parseReference({ path, body }: EndpointRequest): string {
  readFields(body, {});
  return path.account ?? '';
}

function parseState(state: string): AccountState {
  if (STATES.includes(state)) return state as AccountState;
  const problem = `must be one of ${STATES.join(', ')}`;
  throw new AppError('ValidationError', { message: `state ${problem}`, fields: { state: problem } });
}

export const createAccount = defineEndpoint({
  name: 'CreateAccount',
  method: 'POST',
  path: '/accounts',
  parse({ body }) {
    const { state, ...fields } = readFields(body, {
      name: 'string!',
      email: 'string!',
      accessKey: 'string',
      secretKey: 'string',
      canonicalId: 'string',
      state: 'string',
    });
    return state === undefined ? fields : { ...fields, state: parseState(state) };
  },
  async run({ accounts }, input) {
    const { account, accessKey, secretKey } = await accounts.create(input);
    return { status: 201, json: { ...accountJson(account), accessKey, accessKeys: [accessKey], secretKey } };
  },
});

export const listAccounts = defineEndpoint({
  name: 'ListAccounts',
  method: 'GET',
  path: '/accounts',
  parse: ({ body }) => readFields(body, {}),
  async run({ accounts }) {
    return { status: 200, json: { accounts: (await accounts.list()).map(withKey) } };
  },
});

export const getAccount = defineEndpoint({
  name: 'GetAccount',
  method: 'GET',
  path: '/accounts/:account',
  parse: parseReference,
  async run({ accounts }, reference) {
    return { status: 200, json: withKey(await accounts.find(reference)) };
  },
});

export const changeAccount = defineEndpoint({
  name: 'ChangeAccount',
  method: 'PATCH',
  path: '/accounts/:account',
  parse({ path, body }) {
    const { state, ...limits } = readFields(body, { state: 'string', bucketsMax: 'number' });
    const changes = state === undefined ? limits : { ...limits, state: parseState(state) };
    return { reference: path.account ?? '', changes };
  },
  async run({ accounts }, { reference, changes }) {
    return { status: 200, json: withKey(await accounts.change(reference, changes)) };
  },
});

export const deleteAccount = defineEndpoint({
  name: 'DeleteAccount',
  method: 'DELETE',
  path: '/accounts/:account',
  parse: parseReference,
  async run({ accounts }, reference) {
    await accounts.remove(reference);
    return { status: 204 };
  },
});
