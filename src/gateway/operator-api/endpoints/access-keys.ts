// Access keys of accounts for the operator: created, disabled, enabled and deleted. The rules are in src/accounts; this is
// their JSON. A secret is returned once, when its key is created.
import type { FastifyInstance } from 'fastify';
import type { KeyChange, NewAccount } from '../../../accounts/accounts.ts';
import { AppError } from '../../../types/errors.ts';
import type { AccessKeyRecord } from '../../../types/records/rows.ts';
import {
  booleanOf,
  inputOf,
  listOf,
  named,
  objectOf,
  oneOf,
  optional,
  textOf,
} from '../../http/json-schemas.ts';
import { longTermKeyOf, NO_CONTENT, type OperatorContext, signedBy } from '../operator-context.ts';
import { requireRootForItself } from '../root-alone.ts';
import { ACCOUNT_PARAMETER } from './accounts.ts';

interface OfAccount {
  Params: { account: string };
}

interface OfKey {
  Params: { account: string; key: string };
}

type GivenKey = Pick<NewAccount, 'accessKey' | 'secretKey'>;

const CHANGES = { active: 'enable', disabled: 'disable' } as const satisfies Record<string, KeyChange>;
type KeyState = keyof typeof CHANGES;
const STATE = oneOf(...Object.keys(CHANGES));

function keyJson(key: AccessKeyRecord) {
  return {
    accessKey: key.accessKey,
    state: key.isDisabled === true ? 'disabled' : 'active',
    createdAt: new Date(key.createdAtMs).toISOString(),
  };
}

/** An operator who takes away the key of this very request could not give another one. */
function refuseOwnKey(accessKey: string, signedByKey: string): void {
  if (accessKey !== signedByKey) return;
  throw new AppError('DeleteConflict', {
    message: 'The request is signed by this access key. Sign it by another one.',
  });
}

const KEY_PARAMETERS = {
  ...ACCOUNT_PARAMETER,
  properties: { ...ACCOUNT_PARAMETER.properties, key: textOf('The access key.') },
  required: ['account', 'key'],
};

const KEY_FIELDS = { accessKey: textOf(), state: STATE, createdAt: textOf('ISO 8601.') };
export const ACCESS_KEY = objectOf<ReturnType<typeof keyJson>>(KEY_FIELDS);
const CREATED = objectOf<ReturnType<typeof keyJson> & { secretKey: string; isRoot: boolean }>({
  ...KEY_FIELDS,
  secretKey: textOf('Told now, and never again.'),
  isRoot: booleanOf('It is a key of the account of the operator.'),
});

const NEW_KEY = inputOf<GivenKey>({
  accessKey: optional(textOf('With secretKey, or neither: then a pair is made up.')),
  secretKey: optional(textOf()),
});

const TAGS = ['access keys'];

export async function accessKeys(
  app: FastifyInstance,
  { context }: { context: OperatorContext },
): Promise<void> {
  const { accounts } = context;
  app.post<OfAccount & { Body: GivenKey }>(
    '/accounts/:account/keys',
    {
      schema: {
        operationId: 'CreateAccessKey',
        summary: 'Make one more access key',
        tags: TAGS,
        params: ACCOUNT_PARAMETER,
        body: NEW_KEY,
        response: { 201: { description: 'The access key, and its secret key.', ...CREATED } },
      },
      config: { errors: ['NoSuchEntity', 'EntityAlreadyExists', 'LimitExceeded'] },
    },
    async (request, reply) => {
      const { params, body } = request;
      await requireRootForItself(context, params.account, request);
      const { account, key, secretKey } = await accounts.addKey(params.account, body, {
        by: longTermKeyOf(request),
      });
      return reply.code(201).send({ ...keyJson(key), secretKey, isRoot: account.isRoot });
    },
  );
  app.get<OfAccount>(
    '/accounts/:account/keys',
    {
      schema: {
        operationId: 'ListAccessKeys',
        summary: 'List the access keys of an account',
        tags: TAGS,
        params: ACCOUNT_PARAMETER,
        response: {
          200: {
            description: 'Its keys.',
            ...objectOf<{ keys: unknown }>({ keys: listOf(named('AccessKey')) }),
          },
        },
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async ({ params }) => ({ keys: (await accounts.keys(params.account)).keys.map(keyJson) }),
  );
  addOneKey(app, context);
}

function addOneKey(app: FastifyInstance, context: OperatorContext): void {
  const { accounts } = context;
  app.patch<OfKey & { Body: { state: KeyState } }>(
    '/accounts/:account/keys/:key',
    {
      schema: {
        operationId: 'ChangeAccessKey',
        summary: 'Disable or enable an access key',
        tags: TAGS,
        params: KEY_PARAMETERS,
        body: inputOf<{ state: KeyState }>({ state: STATE }),
        response: { 200: { description: 'The access key.', ...named('AccessKey') } },
      },
      config: { errors: ['NoSuchEntity', 'DeleteConflict'] },
    },
    async (request) => {
      const { account: reference, key: accessKey } = request.params;
      const change = CHANGES[request.body.state];
      if (change === 'disable') refuseOwnKey(accessKey, signedBy(request));
      await requireRootForItself(context, reference, request);
      await accounts.changeKey(reference, { accessKey, change, by: longTermKeyOf(request) });
      const { keys } = await accounts.keys(reference);
      const key = keys.find((one) => one.accessKey === accessKey);
      if (key === undefined) throw new AppError('NoSuchEntity');
      return keyJson(key);
    },
  );
  app.delete<OfKey>(
    '/accounts/:account/keys/:key',
    {
      schema: {
        operationId: 'DeleteAccessKey',
        summary: 'Delete an access key',
        tags: TAGS,
        params: KEY_PARAMETERS,
        response: { 204: NO_CONTENT },
      },
      config: { errors: ['NoSuchEntity', 'DeleteConflict'] },
    },
    async (request, reply) => {
      const { account: reference, key: accessKey } = request.params;
      refuseOwnKey(accessKey, signedBy(request));
      await requireRootForItself(context, reference, request);
      await accounts.changeKey(reference, { accessKey, change: 'delete', by: longTermKeyOf(request) });
      return reply.code(204).send();
    },
  );
}
