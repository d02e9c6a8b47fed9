// Partners: governance, control and channel accounts, and who logs in for them at /api/v1. Only operators make them
// (docs/management-api.md).
import type { FastifyInstance } from 'fastify';
import type { PartnerView } from '../../../accounts/tenancy.ts';
import { OPERATOR } from '../../../accounts/tenancy-rules.ts';
import type { ApiKeyRecord, PartnerUserRecord } from '../../../types/records/tenancy-records.ts';
import type { PartnerLevel, PartnerRole, PartnerStatus } from '../../../types/tenancy.ts';
import { DAY_MS } from '../../../types/usage.ts';
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
import { NO_CONTENT, type OperatorContext } from '../operator-context.ts';

const LEVELS = ['governance', 'control', 'channel'] satisfies PartnerLevel[];
const ROLES = ['Admin', 'Staff', 'Staff Lite', 'Viewer'] satisfies PartnerRole[];
const STATUSES = ['active', 'deactivated'] satisfies PartnerStatus[];
const TAGS = ['partners'];
/** Partners of a page. */
const PAGE_SIZE = 1000;

interface OfPartner {
  Params: { partner: string };
}
interface OfUser {
  Params: { user: string };
}

interface NewPartner {
  level: PartnerLevel;
  name: string;
  email: string;
  parentId?: number;
}

interface NewUser {
  email: string;
  firstName: string;
  lastName: string;
  role: PartnerRole;
  isPlus?: boolean;
}

interface ShownKey {
  id: string;
  name: string;
  createdAt: string;
  expiresAt?: string;
  lastUsedOn?: string;
}

const ID = { type: 'string', pattern: '^[0-9]{1,15}$' } as const;
const PARTNER_PARAMETER = {
  type: 'object',
  properties: { partner: { ...ID, description: 'Its id.' } },
  required: ['partner'],
};
const USER_PARAMETER = {
  type: 'object',
  properties: { user: { ...ID, description: 'Id of a partner user.' } },
  required: ['user'],
};
const NO_PARTNER = 'There is no such partner.';
const NO_USER = 'There is no such user.';

function partnerJson(partner: PartnerView) {
  const { id, level, name, email, status, createdAtMs, governance, control, subAccountsCount } = partner;
  const parentId = control?.id ?? governance?.id;
  return {
    id,
    level,
    name,
    email,
    status,
    ...(parentId !== undefined && { parentId }),
    subAccountsCount,
    createdAt: new Date(createdAtMs).toISOString(),
  };
}

function keyJson({ id, name, createdAtMs, expiresAtMs, usedOnDay }: ApiKeyRecord): ShownKey {
  return {
    id,
    name,
    createdAt: new Date(createdAtMs).toISOString(),
    ...(expiresAtMs !== undefined && { expiresAt: new Date(expiresAtMs).toISOString() }),
    ...(usedOnDay !== undefined && { lastUsedOn: new Date(usedOnDay * DAY_MS).toISOString().slice(0, 10) }),
  };
}

function userJson(user: PartnerUserRecord) {
  const { id, partnerId, email, firstName, lastName, role, isPlus, status, apiKeys } = user;
  return { id, partnerId, email, firstName, lastName, role, isPlus, status, apiKeys: apiKeys.map(keyJson) };
}

export const PARTNER = objectOf<ReturnType<typeof partnerJson>>({
  id: numberOf(),
  level: oneOf(...LEVELS),
  name: textOf(),
  email: textOf(),
  status: textOf(),
  parentId: optional(
    numberOf('Of a control account: its governance account. Of a channel account: its control account.'),
  ),
  subAccountsCount: numberOf(),
  createdAt: textOf('ISO 8601.'),
} as never);

const KEY = objectOf<ShownKey>({
  id: textOf('The first characters of the key.'),
  name: textOf(),
  createdAt: textOf('ISO 8601.'),
  expiresAt: optional(textOf('ISO 8601.')),
  lastUsedOn: optional(textOf('A day, UTC.')),
});

export const PARTNER_USER = objectOf<ReturnType<typeof userJson>>({
  id: numberOf(),
  partnerId: numberOf(),
  email: textOf('The user of HTTP Basic authentication at /api/v1.'),
  firstName: textOf(),
  lastName: textOf(),
  role: oneOf(...ROLES),
  isPlus: booleanOf('Of a governance account: it may act on sub-accounts, too.'),
  status: textOf(),
  apiKeys: listOf(KEY),
});

const THE_PARTNER = { 200: { description: 'The partner.', ...named('Partner') } };
const THE_USER = { 200: { description: 'The user.', ...named('PartnerUser') } };

export async function partners(
  app: FastifyInstance,
  { context }: { context: OperatorContext },
): Promise<void> {
  const { tenancy } = context;
  app.post<{ Body: NewPartner }>(
    '/partners',
    {
      schema: {
        operationId: 'CreatePartner',
        summary: 'Make a governance, control or channel account',
        tags: TAGS,
        body: inputOf<NewPartner>({
          level: oneOf(...LEVELS),
          name: textOf('3 to 100 characters.'),
          email: textOf(),
          parentId: optional(
            numberOf(
              'A channel account has a control account above it, a control account may have a governance account.',
            ),
          ),
        }),
        response: { 201: { description: 'The partner.', ...named('Partner') } },
      },
      config: { errors: ['NoSuchEntity', 'EntityAlreadyExists'] },
    },
    async ({ body }, reply) => reply.code(201).send(partnerJson(await tenancy.createPartner(OPERATOR, body))),
  );
  app.get<{ Params: { page: string } }>(
    '/partners/pages/:page',
    {
      schema: {
        operationId: 'ListPartners',
        summary: `List partners, by id, ${PAGE_SIZE} a page`,
        tags: TAGS,
        params: {
          type: 'object',
          properties: { page: { ...ID, description: 'From 1 on.' } },
          required: ['page'],
        },
        response: {
          200: {
            description: 'The partners of the page, and how many there are.',
            ...objectOf<{ partners: unknown; total: number }>({
              partners: listOf(named('Partner')),
              total: numberOf(),
            }),
          },
        },
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async ({ params }) => {
      const page = { page: Math.max(1, Number(params.page)), size: PAGE_SIZE };
      const { items, total } = await tenancy.listPartners(OPERATOR, {}, page);
      return { partners: items.map(partnerJson), total };
    },
  );
  addOnePartner(app, context);
  addUsers(app, context);
  addKeys(app, context);
}

function addOnePartner(app: FastifyInstance, { tenancy }: OperatorContext): void {
  app.patch<OfPartner & { Body: { name?: string; email?: string; status?: 'active' | 'deactivated' } }>(
    '/partners/:partner',
    {
      schema: {
        operationId: 'ChangePartner',
        summary: 'Change name, e-mail address or status of a partner',
        tags: TAGS,
        params: PARTNER_PARAMETER,
        body: inputOf<{ name?: string; email?: string; status?: string }>({
          name: optional(textOf()),
          email: optional(textOf()),
          status: optional({
            ...oneOf(...STATUSES),
            description: 'Users of a deactivated partner cannot log in.',
          }),
        }),
        response: THE_PARTNER,
      },
      config: { errors: ['NoSuchEntity', 'EntityAlreadyExists'], absent: NO_PARTNER },
    },
    async ({ params, body }) =>
      partnerJson(await tenancy.changePartner(OPERATOR, Number(params.partner), body)),
  );
}

function addUsers(app: FastifyInstance, { logins }: OperatorContext): void {
  app.post<OfPartner & { Body: NewUser }>(
    '/partners/:partner/users',
    {
      schema: {
        operationId: 'CreatePartnerUser',
        summary: 'Make somebody who logs in for a partner',
        tags: TAGS,
        params: PARTNER_PARAMETER,
        body: inputOf<NewUser>({
          email: textOf('Of this user alone.'),
          firstName: textOf(),
          lastName: textOf(),
          role: oneOf(...ROLES),
          isPlus: optional(booleanOf('Of a governance account: it may act on sub-accounts, too.')),
        }),
        response: { 201: { description: 'The user.', ...named('PartnerUser') } },
      },
      config: { errors: ['NoSuchEntity', 'EntityAlreadyExists'], absent: NO_PARTNER },
    },
    async ({ params, body }, reply) =>
      reply.code(201).send(userJson(await logins.createUser({ ...body, partnerId: Number(params.partner) }))),
  );
  app.get<OfPartner>(
    '/partners/:partner/users',
    {
      schema: {
        operationId: 'ListPartnerUsers',
        summary: 'List who logs in for a partner',
        tags: TAGS,
        params: PARTNER_PARAMETER,
        response: {
          200: {
            description: 'The users.',
            ...objectOf<{ users: unknown }>({ users: listOf(named('PartnerUser')) }),
          },
        },
      },
      config: { errors: ['NoSuchEntity'], absent: NO_PARTNER },
    },
    async ({ params }) => ({ users: (await logins.users(Number(params.partner))).map(userJson) }),
  );
  app.patch<OfUser & { Body: { status: 'active' | 'deactivated' } }>(
    '/partner-users/:user',
    {
      schema: {
        operationId: 'ChangePartnerUser',
        summary: 'Let a partner user log in, or not',
        tags: TAGS,
        params: USER_PARAMETER,
        body: inputOf<{ status: string }>({ status: oneOf(...STATUSES) }),
        response: THE_USER,
      },
      config: { errors: ['NoSuchEntity'], absent: NO_USER },
    },
    async ({ params, body }) => userJson(await logins.setStatus(Number(params.user), body.status)),
  );
}

function addKeys(app: FastifyInstance, { logins }: OperatorContext): void {
  app.post<OfUser & { Body: { name: string } }>(
    '/partner-users/:user/keys',
    {
      schema: {
        operationId: 'CreatePartnerKey',
        summary: 'Make an API key of a partner user',
        tags: TAGS,
        params: USER_PARAMETER,
        body: inputOf<{ name: string }>({ name: textOf('What it is for.') }),
        response: {
          201: {
            description: 'The key.',
            ...objectOf<{ apiKey: string; key: unknown }>({
              apiKey: textOf('The password of HTTP Basic authentication. Told now, and never again.'),
              key: KEY,
            }),
          },
        },
      },
      config: { errors: ['NoSuchEntity', 'LimitExceeded'], absent: NO_USER },
    },
    async ({ params, body }, reply) => {
      const { apiKey, key } = await logins.createKey(Number(params.user), body);
      return reply.code(201).send({ apiKey, key: keyJson(key) });
    },
  );
  app.delete<{ Params: { user: string; key: string } }>(
    '/partner-users/:user/keys/:key',
    {
      schema: {
        operationId: 'DeletePartnerKey',
        summary: 'Delete an API key of a partner user',
        tags: TAGS,
        params: {
          type: 'object',
          properties: { ...USER_PARAMETER.properties, key: textOf('The id of the key.') },
          required: ['user', 'key'],
        },
        response: { 204: NO_CONTENT },
      },
      config: { errors: ['NoSuchEntity'], absent: NO_USER },
    },
    async ({ params }, reply) => {
      await logins.deleteKey(Number(params.user), params.key);
      return reply.code(204).send();
    },
  );
}
