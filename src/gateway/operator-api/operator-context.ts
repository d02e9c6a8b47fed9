// What the endpoints of the operator API stand on, and what their schemas have in common.
import type { FastifyRequest } from 'fastify';
import type { Accounts } from '../../accounts/accounts.ts';
import type { Invoices } from '../../accounts/invoices.ts';
import type { Mails } from '../../accounts/mails.ts';
import type { PartnerLogins } from '../../accounts/partner-logins.ts';
import type { Tenancy } from '../../accounts/tenancy.ts';
import type { UsageBook } from '../../accounts/usage-book.ts';
import type { Usages } from '../../accounts/usages.ts';
import type { Fsck } from '../../fsck/fsck.ts';
import type { KeyRotation } from '../../metadata/master-keys/rotate-keys.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { PagePort } from '../../ports/pages.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { TimeJumps } from '../../ports/time-jumps.ts';
import type { SignedCaller } from '../http/service-route.ts';
import { type IdentityCaller, signerOf } from '../identity-api/authorize-action.ts';
import type { StatusReport } from './status-report.ts';

/** A part of the server that may be in another thread: what its functions return may have to be waited for. */
export type Elsewhere<T> = {
  readonly [N in keyof T]: T[N] extends (...given: infer Given) => infer Result
    ? (...given: Given) => Awaited<Result> | Promise<Awaited<Result>>
    : never;
};

export interface OperatorContext {
  readonly accounts: Accounts;
  /** Partners, sub-accounts and members. */
  readonly tenancy: Tenancy;
  /** Who logs in for partners. */
  readonly logins: PartnerLogins;
  /** To customers. */
  readonly mails: Mails;
  readonly rotation: Elsewhere<KeyRotation>;
  /** Begins the work of a rotation at once instead of at its next turn. */
  readonly wakeRotation: () => void;
  readonly timeJumps: Pick<TimeJumps, 'accept' | 'unacceptedMs'>;
  readonly readStatus: () => Promise<StatusReport>;
  readonly metadata: MetadataPort;
  readonly clock: ClockPort;
  readonly random: RandomPort;
  readonly log: Pick<Logger, 'warn'>;
  /** Length of a day as lifecycle rules count them. */
  readonly lifecycleDayMs: number;
  readonly invoices: Invoices;
  readonly usages: Usages;
  readonly usageBook: UsageBook;
  /** Draws invoices. */
  readonly pages: PagePort;
  readonly fsck: Elsewhere<Omit<Fsck, 'stop'>>;
}

/** Who calls, with what its policies say. */
export type OperatorCaller = SignedCaller & { readonly asker: IdentityCaller };

/** The access key by which the request is signed. */
export function signedBy(request: FastifyRequest): string {
  return request.getDecorator<SignedCaller>('caller').accessKey;
}

/** The same, or that which a session hangs on. */
export function longTermKeyOf(request: FastifyRequest): string {
  return signerOf(request.getDecorator<OperatorCaller>('caller').asker);
}

/** The answer of a call without a result. */
export const NO_CONTENT = { type: 'null', description: 'Done.' } as const;
