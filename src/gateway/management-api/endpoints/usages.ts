// Daily records of sub-accounts and of their buckets (extensions 1.7): TB and GB are of 1024, an instant is 00:00 UTC.

import type { FastifyInstance } from 'fastify';
import type { ApiCaller, CustomerHead, Tenancy, VisibleFilter } from '../../../accounts/tenancy.ts';
import { noSuch } from '../../../accounts/tenancy-rules.ts';
import {
  type BucketUsage,
  type BucketUsageFilter,
  type CustomerUsage,
  readUsageId,
  type UsageFilter,
} from '../../../accounts/usage-book.ts';
import { activeBytes, apiCallCount, type UsageDay } from '../../../types/usage.ts';
import { type FieldsOf, objectOf, optional } from '../../http/json-schemas.ts';
import { envelopeOf, listEnvelopeOf, readAnswer } from '../envelope.ts';
import { askerOf, callerOf, type ManagementContext } from '../management-context.ts';
import {
  BOOLEAN,
  DATE_QUERY,
  dayIn,
  dayInstantOf,
  described,
  ID,
  INSTANT,
  INTEGER,
  instantOf,
  listOf,
  NUMBER,
  PAGE_QUERY,
  PARENT_BLOCK,
  type PageQuery,
  type ParentBlock,
  pageOf,
  parentBlockOf,
  TEXT,
  TEXT_IN,
} from '../wire-forms.ts';

const TB = 2 ** 40;
const GB = 2 ** 30;
const REGION = 'us-east';

interface MetricsWire {
  startTime: string;
  endTime: string;
  activeStorage: number;
  deletedStorage: number;
  storageWrote: number;
  storageRead: number;
  activeObjects: number;
  deletedObjects: number;
  egress: number;
  ingress: number;
  apiCalls: number;
}

interface UsageWire extends MetricsWire, ParentBlock {
  id: number;
  subAccountId: number;
  subAccountName: string;
  subAccountEmail: string;
  wasabiAccountNumber: string;
  accountNumber: string;
}

interface BucketWire extends MetricsWire {
  id: number;
  name: string;
  region: string;
  bucketNumber: number;
  bucketDeleteTime: string | null;
}

function metricsOf(usage: UsageDay): MetricsWire {
  return {
    startTime: dayInstantOf(usage.day),
    endTime: dayInstantOf(usage.day + 1),
    activeStorage: activeBytes(usage) / TB,
    deletedStorage: usage.deletedBytes / TB,
    storageWrote: usage.wroteBytes / TB,
    storageRead: usage.readBytes / TB,
    activeObjects: usage.objects,
    deletedObjects: usage.deletedObjects,
    egress: usage.downloadBytes / GB,
    ingress: usage.uploadBytes / GB,
    apiCalls: apiCallCount(usage),
  };
}

function usageOf(
  { id, customer, usage }: CustomerUsage<CustomerHead>,
  { caller, tenancy }: { caller: ApiCaller; tenancy: Tenancy },
): UsageWire {
  return {
    id,
    ...metricsOf(usage),
    subAccountId: customer.id,
    subAccountName: customer.name,
    subAccountEmail: customer.email,
    ...parentBlockOf(caller, tenancy.parentsOf(customer.id)),
    wasabiAccountNumber: customer.accountId,
    accountNumber: customer.accountId,
  };
}

function bucketOf({ id, bucketNumber, usage }: BucketUsage): BucketWire {
  const { bucketName = '', bucketDeletedAtMs } = usage;
  return {
    id,
    ...metricsOf(usage),
    name: bucketName,
    region: REGION,
    bucketNumber,
    bucketDeleteTime: bucketDeletedAtMs === undefined ? null : instantOf(bucketDeletedAtMs),
  };
}

const METRICS: FieldsOf<MetricsWire> = {
  startTime: described(INSTANT, 'The day: its beginning, UTC.'),
  endTime: described(INSTANT, 'Its end, UTC.'),
  activeStorage: described(
    NUMBER,
    'TB at the end of the day: objects, of 4 KiB at least, metadata, and data that only compositions keep.',
  ),
  deletedStorage: described(NUMBER, 'TB that were deleted inside the minimum duration of storage.'),
  storageWrote: described(NUMBER, "TB of objects' data that requests have stored."),
  storageRead: described(NUMBER, "TB of objects' data that requests have read."),
  activeObjects: described(INTEGER, 'Versions of objects at the end of the day.'),
  deletedObjects: described(INTEGER, 'Versions that make up deletedStorage.'),
  egress: described(NUMBER, 'GB that were sent to clients, answers and errors alike.'),
  ingress: described(NUMBER, 'GB that were received from clients.'),
  apiCalls: described(INTEGER, 'Requests.'),
};

const USAGE = objectOf<UsageWire>({
  id: described(INTEGER, 'Of this sub-account and day, always the same.'),
  ...METRICS,
  subAccountId: INTEGER,
  subAccountName: TEXT,
  subAccountEmail: TEXT,
  ...PARENT_BLOCK,
  wasabiAccountNumber: TEXT,
  accountNumber: described(TEXT, 'The same as wasabiAccountNumber.'),
});

const BUCKET = objectOf<BucketWire>({
  id: described(INTEGER, 'Of this bucket and day, always the same.'),
  ...METRICS,
  name: TEXT,
  region: described(TEXT, `${REGION}: there is one.`),
  bucketNumber: described(INTEGER, 'Of the bucket, whatever its name.'),
  bucketDeleteTime: {
    type: ['string', 'null'],
    format: 'date-time',
    description: 'The day on which it was deleted, 00:00 UTC.',
  },
});

interface DaysQuery extends PageQuery {
  from?: string;
  to?: string;
  latest?: boolean;
}

const DAYS_QUERY = { ...PAGE_QUERY, from: DATE_QUERY, to: DATE_QUERY };

interface UsageQuery extends DaysQuery {
  governanceAccountId?: number;
  controlAccountId?: number;
  channelAccountId?: number;
  subAccountId?: number;
  wasabiAccountNumber?: string;
  accountNumber?: string;
}

const USAGE_QUERY: FieldsOf<UsageQuery> = {
  ...DAYS_QUERY,
  governanceAccountId: optional(ID),
  controlAccountId: optional(ID),
  channelAccountId: optional(ID),
  subAccountId: optional(ID),
  wasabiAccountNumber: optional(TEXT_IN),
  accountNumber: optional(described(TEXT_IN, 'The same.')),
  latest: optional(described(BOOLEAN, 'Only the newest of each sub-account.')),
};

interface BucketsQuery extends DaysQuery {
  name?: string;
  bucketNumber?: number;
  region?: string;
}

const BUCKETS_QUERY: FieldsOf<BucketsQuery> = {
  ...DAYS_QUERY,
  name: optional(described(TEXT_IN, 'A part of it, without regard to case.')),
  bucketNumber: optional({ type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  region: optional(described(TEXT_IN, `There is one: ${REGION}.`)),
  latest: optional(described(BOOLEAN, 'Only the newest of each bucket that is there, or deleted storage.')),
};

function daysOf({ from, to, latest }: DaysQuery): UsageFilter {
  const [fromDay, toDay] = [dayIn('from', from), dayIn('to', to)];
  return {
    ...(fromDay !== undefined && { fromDay }),
    ...(toDay !== undefined && { toDay }),
    ...(latest !== undefined && { latest }),
  };
}

function customersOf(query: UsageQuery): VisibleFilter {
  const { governanceAccountId, controlAccountId, channelAccountId, subAccountId } = query;
  const accountNumber = query.accountNumber ?? query.wasabiAccountNumber;
  const ids = { governanceAccountId, controlAccountId, channelAccountId, subAccountId, accountNumber };
  return Object.fromEntries(Object.entries(ids).filter(([, value]) => value !== undefined));
}

function bucketsIn({ name, bucketNumber, ...query }: BucketsQuery): BucketUsageFilter {
  return {
    ...daysOf(query),
    ...(name !== undefined && { name }),
    ...(bucketNumber !== undefined && { bucketNumber }),
  };
}

const TAGS = ['usages'];
const OF_DAY = 'One for each day that is over. The first day of a sub-account has one at once, which grows.';

export async function usages(
  app: FastifyInstance,
  { context }: { context: ManagementContext },
): Promise<void> {
  const { tenancy, usageBook } = context;
  app.get<{ Querystring: UsageQuery }>(
    '/usages',
    {
      schema: {
        operationId: 'ListUsages',
        summary: 'List daily records of sub-accounts, the newest first',
        description: OF_DAY,
        tags: TAGS,
        querystring: objectOf<UsageQuery>(USAGE_QUERY),
        response: { 200: { description: 'A page of records.', ...listEnvelopeOf(USAGE) } },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const page = pageOf(request.query);
      const filter = daysOf(request.query);
      const customers = await tenancy.visibleCustomers(caller, customersOf(request.query));
      const found = await usageBook.list(customers, filter, page, askerOf(request));
      return readAnswer(listOf(found, page, (record) => usageOf(record, { caller, tenancy })));
    },
  );
  app.get<{ Params: { id: number } }>(
    '/usages/:id',
    {
      schema: {
        operationId: 'GetUsage',
        summary: 'Read a daily record',
        tags: TAGS,
        params: objectOf<{ id: number }>({ id: ID }),
        response: { 200: { description: 'The record.', ...envelopeOf(USAGE) } },
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async (request) => {
      const caller = callerOf(request);
      const { customerId, day } = readUsageId(request.params.id);
      const [customer] = await tenancy.visibleCustomers(caller, { subAccountId: customerId });
      const record = customer && (await usageBook.get(customer, day, askerOf(request)));
      if (record === undefined) throw noSuch('usage');
      return readAnswer(usageOf(record, { caller, tenancy }));
    },
  );
  addBuckets(app, context);
}

function addBuckets(app: FastifyInstance, { tenancy, usageBook }: ManagementContext): void {
  app.get<{ Params: { subAccountId: number }; Querystring: BucketsQuery }>(
    '/sub-accounts/:subAccountId/buckets',
    {
      schema: {
        operationId: 'ListBuckets',
        summary: 'List daily records of the buckets of a sub-account, the newest first',
        description:
          'One for each day that is over; a bucket that has none yet has one of today. With latest=true these are the buckets.',
        tags: TAGS,
        params: objectOf<{ subAccountId: number }>({ subAccountId: ID }),
        querystring: objectOf<BucketsQuery>(BUCKETS_QUERY),
        response: { 200: { description: 'A page of records.', ...listEnvelopeOf(BUCKET) } },
      },
      config: { errors: ['NoSuchEntity'] },
    },
    async (request) => {
      const { query } = request;
      const page = pageOf(query);
      const filter = bucketsIn(query);
      const asked = { subAccountId: request.params.subAccountId };
      const [customer] = await tenancy.visibleCustomers(callerOf(request), asked);
      if (customer === undefined) throw noSuch('sub-account');
      const isElsewhere = query.region !== undefined && query.region.toLowerCase() !== REGION;
      const found = isElsewhere
        ? { items: [], total: 0 }
        : await usageBook.buckets(customer, filter, page, askerOf(request));
      return readAnswer(listOf(found, page, bucketOf));
    },
  );
}
