// Accounts as the operator manages them. The rules are those of src/accounts; here is their JSON.
import type { FastifyInstance } from 'fastify';
import type { AccountChanges, AccountWithKeys, NewAccount } from '../../../accounts/accounts.ts';
import { type AccountRecord, type AccountState, mayBePublic } from '../../../types/records/rows.ts';
import {
  booleanOf,
  inputOf,
  listOf,
  named,
  numberOf,
  objectOf,
  oneOf,
  optional,
  textOf,
} from '../../http/json-schemas.ts';
import { resetRootMfa } from '../../identity-api/mfa-devices.ts';
import { NO_CONTENT, type OperatorContext } from '../operator-context.ts';
import { requireRootForItself } from '../root-alone.ts';

interface OfAccount {
  Params: { account: string };
}

/** The account of a path. */
export const ACCOUNT_PARAMETER = {
  type: 'object',
  properties: { account: textOf('Its id, name, e-mail address or canonical id.') },
  required: ['account'],
} as const;

const STATES = ['trial', 'paid', 'suspended'] satisfies AccountState[];

/** An account as JSON. Keys are separate: the secret is returned at creation only. */
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
    mayBePublic: mayBePublic(account),
    isUnpaid: account.isUnpaid === true,
    createdAt: new Date(account.createdAtMs).toISOString(),
  };
}

function withKeys({ account, accessKeys }: AccountWithKeys) {
  return { ...accountJson(account), accessKey: accessKeys[0] ?? null, accessKeys };
}

/** Made when they are written: there may be very many. */
function* eachWithKeys(all: readonly AccountWithKeys[]) {
  for (const one of all) yield withKeys(one);
}

const ACCOUNT_FIELDS = {
  id: textOf('12 digits.'),
  name: textOf(),
  email: textOf(),
  canonicalId: textOf('64 hex digits: the ID of Owner elements in S3.'),
  state: oneOf(...STATES),
  isRoot: booleanOf('The account of the operator.'),
  bucketCount: numberOf(),
  bucketsMax: numberOf('Buckets that it may have.'),
  mayBePublic: booleanOf('Whether its policies and access control lists may share with everybody.'),
  isUnpaid: booleanOf('Whether its uploads are refused, because its bills are not paid.'),
  createdAt: textOf('ISO 8601.'),
};
const ACCESS_KEYS = listOf(textOf());

export const ACCOUNT = objectOf<ReturnType<typeof withKeys>>({
  ...ACCOUNT_FIELDS,
  accessKey: { type: ['string', 'null'], description: 'The first of its access keys.' },
  accessKeys: ACCESS_KEYS,
});

const CREATED = objectOf<ReturnType<typeof accountJson> & Created>({
  ...ACCOUNT_FIELDS,
  accessKey: textOf(),
  accessKeys: ACCESS_KEYS,
  secretKey: textOf('Told now, and never again.'),
});

interface Created {
  accessKey: string;
  accessKeys: string[];
  secretKey: string;
}

const NEW_ACCOUNT = inputOf<NewAccount>({
  name: textOf('3 to 100 characters, no blank at either end and no control characters.'),
  email: textOf(),
  accessKey: optional(textOf('With secretKey, or neither: then a pair is made up.')),
  secretKey: optional(textOf()),
  canonicalId: optional(textOf('64 hex digits; made up when absent.')),
  state: optional({ ...oneOf(...STATES), description: 'paid when absent.' }),
});

const CHANGES = inputOf<AccountChanges>({
  state: optional({ ...oneOf(...STATES), description: 'Requests of a suspended account are refused.' }),
  bucketsMax: optional(numberOf('A whole number.')),
  isUnpaid: optional(booleanOf('true: uploads to its buckets are refused; reads and deletes are served.')),
  mayBePublic: optional(
    booleanOf('Where it was never set, only accounts in the state paid may share with everybody.'),
  ),
});

const TAGS = ['accounts'];
const ANSWERS = { 200: { description: 'The account.', ...named('Account') } };

export async function accounts(
  app: FastifyInstance,
  { context }: { context: OperatorContext },
): Promise<void> {
  app.post<{ Body: NewAccount }>(
    '/accounts',
    {
      schema: {
        operationId: 'CreateAccount',
        summary: 'Make an account with an access key',
        tags: TAGS,
        body: NEW_ACCOUNT,
        response: { 201: { description: 'The account, and its secret key.', ...CREATED } },
      },
      config: { errors: ['EntityAlreadyExists'] },
    },
    async ({ body }, reply) => {
      const { account, accessKey, secretKey } = await context.accounts.create(body);
      return reply.code(201).send({ ...accountJson(account), accessKey, accessKeys: [accessKey], secretKey });
    },
  );
  app.get(
    '/accounts',
    {
      schema: {
        operationId: 'ListAccounts',
        summary: 'List all accounts, by id',
        tags: TAGS,
        response: {
          200: {
            description: 'All accounts.',
            ...objectOf<{ accounts: unknown }>({ accounts: listOf(named('Account')) }),
          },
        },
      },
    },
    async () => ({ accounts: eachWithKeys(await context.accounts.list()) }),
  );
  addOneAccount(app, context);
  addMfaReset(app, context);
}

function addOneAccount(app: FastifyInstance, context: OperatorContext): void {
  app.get<OfAccount>(
    '/accounts/:account',
    {
      schema: {
        operationId: 'GetAccount',
        summary: 'Look at an account',
        tags: TAGS,
        params: ACCOUNT_PARAMETER,
        response: ANSWERS,
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async ({ params }) => withKeys(await context.accounts.find(params.account)),
  );
  app.patch<OfAccount & { Body: AccountChanges }>(
    '/accounts/:account',
    {
      schema: {
        operationId: 'ChangeAccount',
        summary: 'Change the state of an account, its limit, or whether it may share with everybody',
        tags: TAGS,
        params: ACCOUNT_PARAMETER,
        body: CHANGES,
        response: ANSWERS,
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async ({ params, body }) => withKeys(await context.accounts.change(params.account, body)),
  );
  app.delete<OfAccount>(
    '/accounts/:account',
    {
      schema: {
        operationId: 'DeleteAccount',
        summary: 'Delete an account that owns no bucket',
        tags: TAGS,
        params: ACCOUNT_PARAMETER,
        response: { 204: NO_CONTENT },
      },
      config: { errors: ['NoSuchEntity', 'DeleteConflict'] },
    },
    async ({ params }, reply) => {
      await context.accounts.remove(params.account);
      return reply.code(204).send();
    },
  );
}

function addMfaReset(app: FastifyInstance, context: OperatorContext): void {
  app.delete<OfAccount>(
    '/accounts/:account/mfa',
    {
      schema: {
        operationId: 'ResetMfa',
        summary: 'Deactivate the MFA devices of its root, which are lost',
        tags: TAGS,
        params: ACCOUNT_PARAMETER,
        response: {
          200: {
            description: 'How many there were.',
            ...objectOf<{ deactivatedCount: number }>({ deactivatedCount: numberOf() }),
          },
        },
      },
      config: { errors: ['NoSuchEntity', 'ConcurrentModification'] },
    },
    async (request) => {
      const { params } = request;
      await requireRootForItself(context, params.account, request);
      const { account } = await context.accounts.find(params.account);
      const deactivatedCount = await resetRootMfa(context, account.accountId);
      context.log.warn({ account: account.accountId, deactivatedCount }, 'mfa-reset');
      return { deactivatedCount };
    },
  );
}
