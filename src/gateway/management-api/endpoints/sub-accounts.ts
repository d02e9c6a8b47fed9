// Sub-accounts: the customers (extensions 1.4). What may be done to them is decided in src/accounts; here is their JSON.

import type { FastifyInstance } from 'fastify';
import type {
  CustomerChanges,
  CustomerFilter,
  CustomerOptions,
  NewCustomer,
} from '../../../accounts/tenancy.ts';
import type { StoredFigures } from '../../../accounts/usage-book.ts';
import type { SecondAction } from '../../../policy/actions.ts';
import { objectOf } from '../../http/json-schemas.ts';
import { doneAnswer, envelopeOf, listEnvelopeOf, readAnswer } from '../envelope.ts';
import { callerOf, type ManagementContext } from '../management-context.ts';
import { contactIn, fieldError, ID, inWireNames, listOf, pageOf } from '../wire-forms.ts';
import {
  CHANGES,
  LIST_QUERY,
  NEW_SUB_ACCOUNT,
  type NewSubAccount,
  OPTIONS_QUERY,
  type QuotaTypeWire,
  type StatusWire,
  SUB_ACCOUNT,
  type SubAccountChanges,
  type SubAccountQuery,
  wireOf,
} from './sub-account-json.ts';

interface OfSubAccount {
  Params: { id: number };
}

const PARAMS = objectOf<OfSubAccount['Params']>({ id: ID });
const TAGS = ['sub-accounts'];
const ANSWER = { 200: { description: 'The sub-account.', ...envelopeOf(SUB_ACCOUNT) } };

const STATES: Readonly<Record<StatusWire, CustomerFilter['state']>> = {
  ON_TRIAL: 'trial',
  PAID_ACCOUNT: 'paid',
  SUSPENDED: 'suspended',
  DEACTIVATED: 'deleted',
};

function filterOf(query: SubAccountQuery): CustomerFilter {
  const email = query.wasabiAccountName ?? query.accountName;
  const accountNumber = query.wasabiAccountNumber ?? query.accountNumber;
  const state = query.status === undefined ? undefined : STATES[query.status.toUpperCase() as StatusWire];
  if (query.status !== undefined && state === undefined) {
    throw fieldError('status', `must be one of ${Object.keys(STATES).join(', ')}`);
  }
  const { id, name, controlAccountId, governanceAccountId, channelAccountId, includeDeleted } = query;
  const same = { id, name, controlAccountId, governanceAccountId, channelAccountId, includeDeleted };
  return given({ ...same, email, accountNumber, state });
}

function optionsOf({ includeKeys, includeDeleted }: SubAccountQuery): CustomerOptions {
  return given({ includeKeys, includeDeleted });
}

/** Of operators, who may read without seeing secrets; of partners, src/accounts decides. */
function showsKeys({ query }: { query: unknown }): readonly SecondAction[] {
  return (query as SubAccountQuery).includeKeys === true ? ['ShowSecretKeys'] : [];
}

/** Without the fields that are absent. */
function given<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/** Of src/accounts, by its own names. */
const FIELDS = {
  email: 'wasabiAccountEmail',
  quotaType: 'storageQuotaType',
  sendPasswordReset: 'sendPasswordResetToSubAccountEmail',
};

const QUOTA_TYPES = { 'Soft quota': 'soft', 'Hard quota': 'hard' } as const;

function quotaTypeOf(text: QuotaTypeWire | undefined) {
  return text === undefined ? undefined : QUOTA_TYPES[text];
}

function requiredEmail(body: { wasabiAccountEmail?: string; accountEmail?: string }): string {
  const email = body.accountEmail ?? body.wasabiAccountEmail;
  if (email === undefined) throw fieldError('wasabiAccountEmail', 'is required');
  return email;
}

function newCustomerOf(body: NewSubAccount): NewCustomer {
  const { controlAccountId, channelAccountId, name, password, passwordResetRequired } = body;
  const { ftpEnabled, sendWelcomeEmail, isTrial, trialQuotaTB, trialDays, purchasedStorageTB } = body;
  const contact = contactIn(body);
  return given<NewCustomer>({
    name,
    email: requiredEmail(body),
    controlAccountId,
    channelAccountId,
    password,
    passwordResetRequired,
    ftpEnabled,
    sendWelcomeEmail,
    isTrial,
    trialQuotaTB,
    trialDays,
    purchasedStorageTB,
    sendPasswordReset: body.sendPasswordResetToSubAccountEmail,
    quotaType: quotaTypeOf(body.storageQuotaType),
    contact: contact && withoutNulls(contact),
  });
}

function withoutNulls(
  contact: NonNullable<ReturnType<typeof contactIn>>,
): NonNullable<NewCustomer['contact']> {
  return Object.fromEntries(Object.entries(contact).filter(([, value]) => value !== null));
}

function changesOf(body: SubAccountChanges): CustomerChanges {
  const { name, password, active, purchasedStorageTB, ftpEnabled, resetKeys, resetMFA, trialToPaid } = body;
  const { trialQuotaTB, trialDays, channelAccountId, ssoEnabled, isUnpaid } = body;
  return given<CustomerChanges>({
    name,
    password,
    active,
    purchasedStorageTB,
    ftpEnabled,
    resetKeys,
    resetMFA,
    trialToPaid,
    trialQuotaTB,
    trialDays,
    channelAccountId,
    ssoEnabled,
    isUnpaid,
    email: body.accountEmail ?? body.wasabiAccountEmail,
    sendPasswordReset: body.sendPasswordResetToSubAccountEmail,
    quotaType: quotaTypeOf(body.storageQuotaType),
    contact: contactIn(body),
  });
}

export async function subAccounts(
  app: FastifyInstance,
  { context }: { context: ManagementContext },
): Promise<void> {
  app.get<{ Querystring: SubAccountQuery }>(
    '/sub-accounts',
    {
      schema: {
        operationId: 'ListSubAccounts',
        summary: 'List sub-accounts, by id',
        tags: TAGS,
        querystring: LIST_QUERY,
        response: { 200: { description: 'A page of sub-accounts.', ...listEnvelopeOf(SUB_ACCOUNT) } },
      },
      config: { needsToo: showsKeys },
    },
    async (request) => {
      const caller = callerOf(request);
      const page = pageOf(request.query);
      const { query } = request;
      const found = await context.tenancy.listCustomers(caller, filterOf(query), page, optionsOf(query));
      const figures = await context.usageBook.stored();
      return readAnswer(
        listOf(found, page, (customer) => wireOf(customer, caller, figures(customer.accountId))),
      );
    },
  );
  app.post<{ Body: NewSubAccount }>(
    '/sub-accounts',
    {
      schema: {
        operationId: 'CreateSubAccount',
        summary: 'Make a sub-account with its first pair of keys',
        tags: TAGS,
        body: NEW_SUB_ACCOUNT,
        response: {
          200: {
            description: 'The sub-account, with accessKey and secretKey.',
            ...envelopeOf(SUB_ACCOUNT, 'subAccountCreated'),
          },
        },
      },
      config: { errors: ['NoSuchEntity', 'EntityAlreadyExists', 'IdempotencyParameterMismatch'] },
    },
    async (request) => {
      const caller = callerOf(request);
      const input = newCustomerOf(request.body);
      const customer = await inWireNames(FIELDS, () => context.tenancy.createCustomer(caller, input));
      return doneAnswer('subAccountCreated', wireOf(customer, caller, NO_FIGURES));
    },
  );
  addOneSubAccount(app, context);
}

function addOneSubAccount(app: FastifyInstance, context: ManagementContext): void {
  const { tenancy } = context;
  app.get<OfSubAccount & { Querystring: SubAccountQuery }>(
    '/sub-accounts/:id',
    {
      schema: {
        operationId: 'GetSubAccount',
        summary: 'Read a sub-account',
        tags: TAGS,
        params: PARAMS,
        querystring: OPTIONS_QUERY,
        response: ANSWER,
      },
      config: { errors: ['NoSuchEntity'], needsToo: showsKeys },
    },
    async (request) => {
      const caller = callerOf(request);
      const customer = await tenancy.getCustomer(caller, request.params.id, optionsOf(request.query));
      const figures = await context.usageBook.stored();
      return readAnswer(wireOf(customer, caller, figures(customer.accountId)));
    },
  );
  app.put<OfSubAccount & { Body: SubAccountChanges; Querystring: SubAccountQuery }>(
    '/sub-accounts/:id',
    {
      schema: {
        operationId: 'ChangeSubAccount',
        summary: 'Change, suspend or restore a sub-account, or give it new keys',
        description: 'Fields that are absent stay as they are.',
        tags: TAGS,
        params: PARAMS,
        querystring: OPTIONS_QUERY,
        body: CHANGES,
        response: {
          200: { description: 'The sub-account.', ...envelopeOf(SUB_ACCOUNT, 'subAccountUpdated') },
        },
      },
      config: { errors: ['NoSuchEntity', 'EntityAlreadyExists'], needsToo: showsKeys },
    },
    async (request) => {
      const caller = callerOf(request);
      const { params, body, query } = request;
      const options = optionsOf(query);
      const changes = changesOf(body);
      const customer = await inWireNames(FIELDS, () =>
        tenancy.changeCustomer(caller, params.id, changes, options),
      );
      const figures = await context.usageBook.stored();
      return doneAnswer('subAccountUpdated', wireOf(customer, caller, figures(customer.accountId)));
    },
  );
  app.delete<OfSubAccount>(
    '/sub-accounts/:id',
    {
      schema: {
        operationId: 'DeleteSubAccount',
        summary: 'Delete a sub-account for good: its keys are refused at once, its data goes',
        tags: TAGS,
        params: PARAMS,
        response: { 200: { description: 'Done.', ...envelopeOf({ type: 'null' }, 'subAccountDeleted') } },
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async (request) => {
      await tenancy.deleteCustomer(callerOf(request), request.params.id);
      return doneAnswer('subAccountDeleted', null);
    },
  );
}

const NO_FIGURES: StoredFigures = { activeBytes: 0, deletedBytes: 0 };
