// Control accounts, to be read only: operators make and change them (extensions 1.3).

import type { FastifyInstance } from 'fastify';
import type { ApiCaller, CustomerHead, PartnerFilter, PartnerView } from '../../../accounts/tenancy.ts';
import { nextTurn } from '../../../base/async/next-turn.ts';
import { finishInTurns, type Steps } from '../../../base/async/steps.ts';
import { ownValue } from '../../../base/own-value.ts';
import type { AccountId } from '../../../types/names.ts';
import { type FieldsOf, objectOf, optional } from '../../http/json-schemas.ts';
import { envelopeOf, listEnvelopeOf, readAnswer } from '../envelope.ts';
import { callerOf, type ManagementContext } from '../management-context.ts';
import {
  BOOLEAN,
  CONTACT_BLOCK,
  type ContactBlock,
  contactBlockOf,
  described,
  fieldError,
  GOVERNANCE_BLOCK,
  governanceBlockOf,
  ID,
  INSTANT,
  INTEGER,
  instantOf,
  listOf,
  NUMBER,
  PAGE_QUERY,
  type PageQuery,
  type ParentBlock,
  pageOf,
  TEXT,
  TEXT_IN,
  TEXT_OR_NULL,
} from '../wire-forms.ts';

interface ControlAccountWire
  extends ContactBlock,
    Pick<ParentBlock, 'governanceAccountId' | 'governanceAccountName'> {
  id: number;
  name: string;
  category: string | null;
  partnerType: string;
  accountType: string;
  status: string;
  imageUrl: string | null;
  creationDate: string;
  subAccountsCount: number;
  channelAccountsCount: number;
  wasabiAccountName: string;
  controlAccountEmail: string;
  primaryApiKey: string | null;
  secondaryApiKey: string | null;
  subAccountStorage: number;
  controlAccountStorage: number;
  totalStorage: number;
}

const TB = 2 ** 40;

function wireOf(
  partner: PartnerView,
  { level }: ApiCaller,
  storedBytes: ReadonlyMap<number, number>,
): ControlAccountWire {
  const storage = (storedBytes.get(partner.id) ?? 0) / TB;
  return {
    id: partner.id,
    name: partner.name,
    category: null,
    partnerType: 'RESELLER',
    accountType: 'Company',
    status: partner.status === 'active' ? 'Active' : 'Deactivated',
    imageUrl: null,
    creationDate: instantOf(partner.createdAtMs),
    ...contactBlockOf(partner.contact),
    ...governanceBlockOf(level, partner.governance),
    subAccountsCount: partner.subAccountsCount,
    channelAccountsCount: partner.channelAccountsCount,
    wasabiAccountName: partner.email,
    controlAccountEmail: partner.email,
    primaryApiKey: null,
    secondaryApiKey: null,
    subAccountStorage: storage,
    // It stores nothing itself.
    controlAccountStorage: 0,
    totalStorage: storage,
  };
}

const KEY = described(TEXT_OR_NULL, 'Always null: API keys are shown once, when they are made.');
const CONTROL_ACCOUNT = objectOf<ControlAccountWire>({
  id: INTEGER,
  name: TEXT,
  category: TEXT_OR_NULL,
  partnerType: described(TEXT, 'RESELLER'),
  accountType: described(TEXT, 'Company'),
  status: { type: 'string', enum: ['Active', 'Deactivated'] },
  imageUrl: TEXT_OR_NULL,
  creationDate: INSTANT,
  ...CONTACT_BLOCK,
  ...GOVERNANCE_BLOCK,
  subAccountsCount: INTEGER,
  channelAccountsCount: INTEGER,
  wasabiAccountName: described(TEXT, 'E-mail address.'),
  controlAccountEmail: described(TEXT, 'The same.'),
  primaryApiKey: KEY,
  secondaryApiKey: KEY,
  subAccountStorage: described(
    NUMBER,
    'TB of 2^40 bytes: active storage of its sub-accounts, by the last closed day.',
  ),
  controlAccountStorage: described(NUMBER, 'Its own: always 0.'),
  totalStorage: described(NUMBER, 'Both together, TB.'),
});

interface ControlAccountQuery extends PageQuery {
  id?: number;
  name?: string;
  governanceAccountId?: number;
  status?: string;
  wasabiAccountName?: string;
  accountName?: string;
  controlAccountEmail?: string;
  primaryApiKey?: string;
  includeApiKey?: boolean;
  includeDeleted?: boolean;
  includeDeletedSubAccounts?: boolean;
}

const QUERY_FIELDS: FieldsOf<ControlAccountQuery> = {
  ...PAGE_QUERY,
  id: optional(ID),
  name: optional(described(TEXT_IN, 'A part of it, without regard to case.')),
  governanceAccountId: optional(ID),
  status: optional(described(TEXT_IN, 'active or inactive.')),
  wasabiAccountName: optional(described(TEXT_IN, 'A part of the e-mail address, without regard to case.')),
  accountName: optional(described(TEXT_IN, 'The same.')),
  controlAccountEmail: optional(described(TEXT_IN, 'The same.')),
  primaryApiKey: optional(described(TEXT_IN, 'Finds none: keys are not kept in readable form.')),
  includeApiKey: optional(described(BOOLEAN, 'Has no effect.')),
  includeDeleted: optional(BOOLEAN),
  includeDeletedSubAccounts: optional(described(BOOLEAN, 'They count in subAccountsCount.')),
};

const STATUSES: Readonly<Record<string, 'active' | 'deactivated'>> = {
  active: 'active',
  inactive: 'deactivated',
  deactivated: 'deactivated',
};

function filterOf(query: ControlAccountQuery): PartnerFilter {
  const { id, name, governanceAccountId, includeDeleted, includeDeletedSubAccounts } = query;
  const email = query.controlAccountEmail ?? query.accountName ?? query.wasabiAccountName;
  const status = query.status === undefined ? undefined : ownValue(STATUSES, query.status.toLowerCase());
  if (query.status !== undefined && status === undefined) {
    throw fieldError('status', 'must be active or inactive');
  }
  return {
    level: 'control',
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    ...(email !== undefined && { email }),
    ...(governanceAccountId !== undefined && { governanceAccountId }),
    ...(status !== undefined && { status }),
    ...(includeDeleted !== undefined && { includeDeleted }),
    ...(includeDeletedSubAccounts !== undefined && { includeDeletedSubAccounts }),
  };
}

/** Active storage by control account, of all that the caller sees. */
async function storedIn(
  { tenancy, usageBook }: ManagementContext,
  caller: ApiCaller,
  controlAccountId?: number,
): Promise<Map<number, number>> {
  const filter = controlAccountId === undefined ? {} : { controlAccountId };
  const stored = await usageBook.stored();
  const customers = await tenancy.visibleCustomers(caller, filter);
  return finishInTurns(sumStored(customers, stored), nextTurn);
}

/** Sub-accounts that are added up in one turn: about a millisecond. */
const SUMMED_OF_STEP = 4000;

/** Active storage by control account. */
export function* sumStored(
  customers: readonly Pick<CustomerHead, 'controlId' | 'accountId'>[],
  stored: (accountId: AccountId) => { activeBytes: number },
): Steps<Map<number, number>> {
  const sums = new Map<number, number>();
  for (const [at, { controlId, accountId }] of customers.entries()) {
    if (at > 0 && at % SUMMED_OF_STEP === 0) yield;
    sums.set(controlId, (sums.get(controlId) ?? 0) + stored(accountId).activeBytes);
  }
  return sums;
}

const TAGS = ['control accounts'];

export async function controlAccounts(
  app: FastifyInstance,
  { context }: { context: ManagementContext },
): Promise<void> {
  const { tenancy } = context;
  app.get<{ Querystring: ControlAccountQuery }>(
    '/control-accounts',
    {
      schema: {
        operationId: 'ListControlAccounts',
        summary: 'List control accounts, by id',
        description: 'A control account sees its own record alone.',
        tags: TAGS,
        querystring: objectOf<ControlAccountQuery>(QUERY_FIELDS),
        response: { 200: { description: 'A page of control accounts.', ...listEnvelopeOf(CONTROL_ACCOUNT) } },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const page = pageOf(request.query);
      const filter = filterOf(request.query);
      const found =
        request.query.primaryApiKey === undefined
          ? await tenancy.listPartners(caller, filter, page)
          : { items: [], total: 0 };
      const stored = await storedIn(context, caller);
      return readAnswer(listOf(found, page, (partner) => wireOf(partner, caller, stored)));
    },
  );
  app.get<{ Params: { id: number } }>(
    '/control-accounts/:id',
    {
      schema: {
        operationId: 'GetControlAccount',
        summary: 'Read a control account',
        tags: TAGS,
        params: objectOf<{ id: number }>({ id: ID }),
        response: { 200: { description: 'The control account.', ...envelopeOf(CONTROL_ACCOUNT) } },
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async (request) => {
      const caller = callerOf(request);
      const partner = await tenancy.getPartner(caller, request.params.id, { level: 'control' });
      return readAnswer(wireOf(partner, caller, await storedIn(context, caller, partner.id)));
    },
  );
}
