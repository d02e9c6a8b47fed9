// A gateway with /api/v1 over accounts in memory (model-tenancy.ts), and a client of it.

import type { Invoice } from '../../../src/accounts/invoice-book.ts';
import { createUsageBook } from '../../../src/accounts/usage-book.ts';
import { createUsages } from '../../../src/accounts/usages.ts';
import type { GatewaySettings } from '../../../src/gateway/http/server.ts';
import {
  createManagementApi,
  type ManagementApi,
} from '../../../src/gateway/management-api/management-api.ts';
import type { RequestRateLimits } from '../../../src/gateway/management-api/request-rates.ts';
import { systemClock, systemRandom } from '../../../src/platform/system-clock.ts';
import type { ClockPort } from '../../../src/ports/clock.ts';
import type { MetadataPort } from '../../../src/ports/metadata/port.ts';
import { AppError } from '../../../src/types/errors.ts';
import { type GatewayWorld, openGatewayWorld } from '../objects/gateway-world.ts';
import { apiKeyOf, createModelTenancy, type ModelTenancy } from './model-tenancy.ts';

export interface ManagementWorld extends GatewayWorld {
  readonly tenancy: ModelTenancy;
  readonly document: Record<string, unknown>;
  call(options: ManagementCall): Promise<ManagementAnswer>;
}

export interface ManagementCall {
  /** Below /api/v1. */
  path: string;
  method?: string;
  /** JSON, or a text as it is. */
  body?: unknown;
  /** Default the first control account's administrator; null: no credentials. */
  as?: string | null;
  headers?: Readonly<Record<string, string>>;
}

export interface ManagementAnswer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what is in it is what the tests ask.
  json: any;
}

const MANY = 1_000_000;

export function managementDependencies(metadata: MetadataPort, tenancy: ModelTenancy) {
  return {
    tenancy,
    metadata,
    invoices: {
      list: async ({ within = {} }: { within?: { controlAccountId?: number } }) => {
        const items = (within.controlAccountId ?? 2) === 2 ? [INVOICE] : [];
        return { items, total: items.length };
      },
      get: async (id: number) => {
        if (id !== INVOICE.id) throw new AppError('NoSuchEntity');
        return INVOICE;
      },
    },
    usageBook: createUsageBook(createUsages(metadata, systemClock), systemClock),
    clock: systemClock,
    random: systemRandom,
    log: { warn() {} },
    mails: { resetPassword: async () => {} },
  };
}

export async function openManagementWorld(
  options: {
    rateLimits?: Partial<RequestRateLimits>;
    settings?: Partial<GatewaySettings>;
    /** Default its own. */
    document?: ManagementApi['document'];
    /** Of the gateway. */
    clock?: ClockPort;
  } = {},
): Promise<ManagementWorld> {
  const tenancy = createModelTenancy();
  const rateLimits = { GET: MANY, PUT: MANY, POST: MANY, DELETE: MANY, ...options.rateLimits };
  // The API asks the world's shards, which are there when the first request comes.
  let shards: MetadataPort | undefined;
  const later = () => {
    if (shards === undefined) throw new Error('the world is not open yet');
    return shards;
  };
  const metadata: MetadataPort = {
    execute: (...asked) => later().execute(...asked),
    query: (...asked) => later().query(...asked),
    shardCount: 1,
  };
  const own = createManagementApi({ ...managementDependencies(metadata, tenancy), rateLimits });
  const managementApi = { ...own, ...(options.document && { document: options.document }) };
  const world = await openGatewayWorld({
    deps: { managementApi, ...(options.clock && { clock: options.clock }) },
    ...(options.settings && { settings: options.settings }),
  });
  shards = world.metadata.shards;
  return {
    ...world,
    tenancy,
    document: JSON.parse(await managementApi.document()),
    async call({ path, method = 'GET', body, as = 'one@example.com', headers = {} }) {
      const credentials = as === null ? {} : { authorization: basicOf(as) };
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const answer = await fetch(`${world.endpoint}/api/v1${path}`, {
        method,
        headers: { ...credentials, 'content-type': 'application/json', ...headers },
        ...(text !== undefined && { body: text }),
      });
      const received = await answer.text();
      return {
        status: answer.status,
        headers: answer.headers,
        json: received === '' ? null : JSON.parse(received),
      };
    },
  };
}

/** The Authorization header of a user. */
export function basicOf(login: string): string {
  return `Basic ${btoa(`${login}:${apiKeyOf(login)}`)}`;
}

const LINE = { quantity: '30', unitCost: '0.00019499', totalCost: '0.0058497' };
const INVOICE: Invoice = {
  id: 7,
  controlInvoiceId: 3,
  month: '2026-02',
  closedAtMs: 0,
  isClosed: true,
  isOwed: true,
  customer: { id: 10, name: 'Customer', email: 'c@example.com', accountId: '100000000010' as never },
  control: { id: 2, name: 'Reseller One', email: 'one@example.com' },
  currency: 'USD',
  total: '5.99',
  lines: {
    activeStorage: LINE,
    deletedStorage: LINE,
    apiCalls: LINE,
    ingress: LINE,
    egress: LINE,
    minimumActiveStorage: LINE,
  },
  segments: [],
  days: { charged: 28, trial: 0, deleted: 0, none: 0, suspended: 0 },
};
