// Members of sub-accounts (extensions 1.5): people with one of six roles, each an IAM user of its account.

import type { FastifyInstance } from 'fastify';
import type {
  MemberChanges,
  MemberFilter,
  MemberView,
  NewMember,
  Tenancy,
} from '../../../accounts/tenancy.ts';
import { ownValue } from '../../../base/own-value.ts';
import { MEMBER_ROLES } from '../../../types/tenancy.ts';
import { type FieldsOf, objectOf, optional } from '../../http/json-schemas.ts';
import { doneAnswer, envelopeOf, listEnvelopeOf, readAnswer } from '../envelope.ts';
import { callerOf, type ManagementContext } from '../management-context.ts';
import {
  BOOLEAN,
  described,
  fieldError,
  ID,
  INSTANT,
  INTEGER,
  instantOf,
  inWireNames,
  listOf,
  PAGE_QUERY,
  type PageQuery,
  pageOf,
  TEXT,
  TEXT_IN,
  TEXT_OR_NULL,
  TEXT_OR_NULL_IN,
} from '../wire-forms.ts';

interface MemberWire {
  id: number;
  subAccountId: number;
  firstName: string;
  lastName: string;
  username: string;
  memberRole: string;
  email: string;
  status: string;
  mfa: boolean;
  imageUrl: string | null;
  creationDate: string;
  address1: string | null;
  address2: string | null;
  country: string | null;
  city: string | null;
  state: string | null;
  stateName: string | null;
  zip: string | null;
  phone: string | null;
  isSsoUser: boolean;
}

const STATUSES = { active: 'Active', deactivated: 'Deactivated', deleted: 'Deactivated' } as const;

function wireOf(member: MemberView): MemberWire {
  const { address1 = null, address2 = null, country = null, city = null } = member;
  const { state = null, zip = null, phone = null } = member;
  return {
    id: member.id,
    subAccountId: member.subAccountId,
    firstName: member.firstName,
    lastName: member.lastName,
    username: member.username,
    memberRole: member.role,
    email: member.email,
    status: STATUSES[member.status],
    mfa: member.mfa,
    imageUrl: null,
    creationDate: instantOf(member.createdAtMs),
    ...{ address1, address2, country, city, state, stateName: state, zip, phone },
    isSsoUser: false,
  };
}

const MEMBER = objectOf<MemberWire>({
  id: INTEGER,
  subAccountId: INTEGER,
  firstName: TEXT,
  lastName: TEXT,
  username: TEXT,
  memberRole: { type: 'string', enum: MEMBER_ROLES },
  email: TEXT,
  status: { type: 'string', enum: ['Active', 'Deactivated'] },
  mfa: BOOLEAN,
  imageUrl: TEXT_OR_NULL,
  creationDate: INSTANT,
  address1: TEXT_OR_NULL,
  address2: TEXT_OR_NULL,
  country: TEXT_OR_NULL,
  city: TEXT_OR_NULL,
  state: TEXT_OR_NULL,
  stateName: described(TEXT_OR_NULL, 'The same as state.'),
  zip: TEXT_OR_NULL,
  phone: TEXT_OR_NULL,
  isSsoUser: BOOLEAN,
});

interface MemberQuery extends PageQuery {
  id?: number;
  status?: string;
  username?: string;
  subAccountId?: number;
}

const LIST_QUERY = objectOf<MemberQuery>({
  ...PAGE_QUERY,
  id: optional(ID),
  status: optional(described(TEXT_IN, 'active, deactivated, suspended or locked.')),
  username: optional(TEXT_IN),
  subAccountId: optional(ID),
});

/** Members of the last two kinds there are none of. */
const STATUS_NAMES: Readonly<Record<string, MemberFilter['status'] | 'none'>> = {
  active: 'active',
  deactivated: 'deactivated',
  suspended: 'none',
  locked: 'none',
};

function filterOf({ id, status, username, subAccountId }: MemberQuery): MemberFilter | 'none' {
  const known = status === undefined ? undefined : ownValue(STATUS_NAMES, status.toLowerCase());
  if (status !== undefined && known === undefined) {
    throw fieldError('status', `must be one of ${Object.keys(STATUS_NAMES).join(', ')}`);
  }
  if (known === 'none') return 'none';
  return given({ id, username, subAccountId, status: known });
}

interface Address {
  address1?: string | null;
  address2?: string | null;
  country?: string | null;
  city?: string | null;
  state?: string | null;
  stateName?: string | null;
  zip?: string | null;
  phone?: string | null;
}

interface NewMemberBody extends Address {
  subAccountId: number;
  firstName: string;
  lastName: string;
  username?: string;
  memberRole: string;
  email: string;
  password: string;
  passwordResetRequired?: boolean;
}

interface MemberBody extends Address {
  firstName?: string;
  lastName?: string;
  username?: string;
  memberRole?: string;
  password?: string;
  mfa?: boolean;
  active?: boolean;
  reinstate?: boolean;
}

const ADDRESS: FieldsOf<Address> = {
  address1: optional(TEXT_OR_NULL_IN),
  address2: optional(TEXT_OR_NULL_IN),
  country: optional(TEXT_OR_NULL_IN),
  city: optional(TEXT_OR_NULL_IN),
  state: optional(described(TEXT_OR_NULL_IN, 'The same as stateName.')),
  stateName: optional(TEXT_OR_NULL_IN),
  zip: optional(TEXT_OR_NULL_IN),
  phone: optional(TEXT_OR_NULL_IN),
};
const ROLE = described(
  TEXT_IN,
  `One of ${MEMBER_ROLES.join(', ')}; case, blanks and underscores do not count, and Admin is Administrator.`,
);
const PASSWORD = described(TEXT_IN, 'For the console.');

const NEW_MEMBER = objectOf<NewMemberBody>({
  ...ADDRESS,
  subAccountId: ID,
  firstName: TEXT_IN,
  lastName: TEXT_IN,
  username: optional(described(TEXT_IN, 'The e-mail address when absent.')),
  memberRole: ROLE,
  email: TEXT_IN,
  password: PASSWORD,
  passwordResetRequired: optional(BOOLEAN),
});

const CHANGES = objectOf<MemberBody>({
  ...ADDRESS,
  firstName: optional(TEXT_IN),
  lastName: optional(TEXT_IN),
  username: optional(TEXT_IN),
  memberRole: optional(ROLE),
  password: optional(PASSWORD),
  mfa: optional(described(BOOLEAN, 'false takes its device away; true does nothing.')),
  active: optional(BOOLEAN),
  reinstate: optional(described(BOOLEAN, 'true makes it active again; false does nothing.')),
});

function addressOf({ address1, address2, country, city, state, stateName, zip, phone }: Address) {
  return { address1, address2, country, city, state: stateName ?? state, zip, phone };
}

function newMemberOf(body: NewMemberBody): NewMember {
  const { subAccountId, firstName, lastName, username, memberRole, email, password } = body;
  const { passwordResetRequired } = body;
  const known = { subAccountId, firstName, lastName, username, role: memberRole, email, password };
  const address = Object.entries(addressOf(body)).filter(([, value]) => value !== null);
  return given<NewMember>({ ...known, passwordResetRequired, ...Object.fromEntries(address) });
}

function changesOf(body: MemberBody): MemberChanges {
  const { firstName, lastName, username, memberRole, password, mfa, active, reinstate } = body;
  const known = { firstName, lastName, username, role: memberRole, password, mfa, active, reinstate };
  return given<MemberChanges>({ ...known, ...addressOf(body) });
}

/** Without the fields that are absent. */
function given<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/** Of src/accounts, by its own names. */
const FIELDS = { role: 'memberRole' };

interface OfMember {
  Params: { id: number };
}

const PARAMS = objectOf<OfMember['Params']>({ id: ID });
const TAGS = ['members'];

export async function members(
  app: FastifyInstance,
  { context: { tenancy } }: { context: ManagementContext },
): Promise<void> {
  app.get<{ Querystring: MemberQuery }>(
    '/members',
    {
      schema: {
        operationId: 'ListMembers',
        summary: 'List members, by id',
        tags: TAGS,
        querystring: LIST_QUERY,
        response: { 200: { description: 'A page of members.', ...listEnvelopeOf(MEMBER) } },
      },
    },
    async (request) => {
      const page = pageOf(request.query);
      const filter = filterOf(request.query);
      const found =
        filter === 'none'
          ? { items: [], total: 0 }
          : await tenancy.listMembers(callerOf(request), filter, page);
      return readAnswer(listOf(found, page, wireOf));
    },
  );
  app.post<{ Body: NewMemberBody }>(
    '/members',
    {
      schema: {
        operationId: 'CreateMember',
        summary: 'Make a member of a sub-account',
        tags: TAGS,
        body: NEW_MEMBER,
        response: { 200: { description: 'The member.', ...envelopeOf(MEMBER, 'memberCreated') } },
      },
      config: { errors: ['NoSuchEntity', 'EntityAlreadyExists', 'IdempotencyParameterMismatch'] },
    },
    async (request) => {
      const member = await inWireNames(FIELDS, () =>
        tenancy.createMember(callerOf(request), newMemberOf(request.body)),
      );
      return doneAnswer('memberCreated', wireOf(member));
    },
  );
  addOneMember(app, tenancy);
}

function addOneMember(app: FastifyInstance, tenancy: Tenancy): void {
  app.get<OfMember>(
    '/members/:id',
    {
      schema: {
        operationId: 'GetMember',
        summary: 'Read a member',
        tags: TAGS,
        params: PARAMS,
        response: { 200: { description: 'The member.', ...envelopeOf(MEMBER) } },
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async (request) => readAnswer(wireOf(await tenancy.getMember(callerOf(request), request.params.id))),
  );
  app.put<OfMember & { Body: MemberBody }>(
    '/members/:id',
    {
      schema: {
        operationId: 'ChangeMember',
        summary: 'Change, deactivate or reactivate a member',
        description: 'Fields that are absent stay as they are.',
        tags: TAGS,
        params: PARAMS,
        body: CHANGES,
        response: { 200: { description: 'The member.', ...envelopeOf(MEMBER, 'memberUpdated') } },
      },
      config: { errors: ['NoSuchEntity', 'EntityAlreadyExists'] },
    },
    async (request) => {
      const { params, body } = request;
      const member = await inWireNames(FIELDS, () =>
        tenancy.changeMember(callerOf(request), params.id, changesOf(body)),
      );
      return doneAnswer('memberUpdated', wireOf(member));
    },
  );
  app.delete<OfMember>(
    '/members/:id',
    {
      schema: {
        operationId: 'DeleteMember',
        summary: 'Delete a member',
        tags: TAGS,
        params: PARAMS,
        response: { 200: { description: 'Done.', ...envelopeOf({ type: 'null' }, 'memberDeleted') } },
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async (request) => {
      await tenancy.deleteMember(callerOf(request), request.params.id);
      return doneAnswer('memberDeleted', null);
    },
  );
}
