// What the endpoints of /api/v1 stand on, and who calls them.

import type { FastifyRequest } from 'fastify';
import type { InvoiceBook } from '../../accounts/invoice-book.ts';
import { type Asker, OPERATORS } from '../../accounts/present-places.ts';
import type { ApiCaller, Tenancy } from '../../accounts/tenancy.ts';
import { OPERATOR } from '../../accounts/tenancy-rules.ts';
import type { UsageBook } from '../../accounts/usage-book.ts';
import type { SignedCaller } from '../http/service-route.ts';

export interface ManagementContext {
  readonly tenancy: Tenancy;
  readonly invoices: Pick<InvoiceBook, 'list' | 'get'>;
  readonly usageBook: UsageBook;
}

/** An operator, who has come by the operator API, may do all (operator-api/endpoints/tenants.ts). */
export function callerOf(request: FastifyRequest): ApiCaller {
  const caller = request.getDecorator<ApiCaller | SignedCaller>('caller');
  return 'keyId' in caller ? caller : OPERATOR;
}

/** Whom requests of a caller count against: not the accounts that they have to do with. */
export function payerOf({ partnerId }: ApiCaller): string {
  return partnerId === undefined ? OPERATORS.payer : `partner ${partnerId}`;
}

export function askerOf(request: FastifyRequest): Asker {
  const gone = request.getDecorator<Asker['gone']>('gone');
  return { payer: payerOf(callerOf(request)), ...(gone && { gone }) };
}
