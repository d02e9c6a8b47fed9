// What the endpoints of /api/v1 stand on, and who calls them.

import type { FastifyRequest } from 'fastify';
import type { InvoiceBook } from '../../accounts/invoice-book.ts';
import type { ApiCaller, Tenancy } from '../../accounts/tenancy.ts';
import type { UsageReader } from '../../types/usage.ts';

export interface ManagementContext {
  readonly tenancy: Tenancy;
  readonly invoices: Pick<InvoiceBook, 'list' | 'get'>;
  readonly usages: UsageReader;
}

export function callerOf(request: FastifyRequest): ApiCaller {
  return request.getDecorator<ApiCaller>('caller');
}
