// A row of the table of HTTP services (routes.ts): which requests are a service's, how it learns who asks, how it answers,
// what it logs. The rules that choose a row are here; serve-route.ts runs those rows that are not S3's.
import type { FairShare } from '../../base/async/fair-share.ts';
import type { FairTurns } from '../../base/async/fair-turns.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { KeyringPort } from '../../ports/keyring.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { AppError } from '../../types/errors.ts';
import type { AccountRecord } from '../../types/records/rows.ts';
import type { SignedHosts } from '../auth/authentication-request.ts';
import type { Identities } from '../auth/identities.ts';
import type { KeyUses } from '../auth/key-uses.ts';
import type { Principal } from '../auth/principal.ts';
import type { SignatureFailures } from '../auth/signature-failures.ts';
import type { MfaCodes } from '../identity-api/mfa-codes.ts';
import type { Passwords } from '../identity-api/passwords.ts';
import type { ManagementApi } from '../management-api/management-api.ts';
import type { TrafficMeter } from '../metering/traffic-meter.ts';
import type { OperatorCaller } from '../operator-api/operator-context.ts';
import type { S3Dependencies } from '../s3/pipeline-steps.ts';
import type { AnswerMemory } from './answer-memory.ts';
import type { Exchange } from './exchange.ts';
import type { RequestIds } from './request-ids.ts';
import type { Shedding } from './shedding.ts';

/** A path as it was sent, nothing decoded. `within` takes the path itself and all that is below it. */
export type PathRule = 'any' | { readonly exact: string } | { readonly within: string };

/** A request belongs to the first row of the table whose rules it all fits. */
export interface RouteRules {
  /** `without-bucket`: only hosts that name no bucket. On the others a path is a key. */
  readonly hosts: 'any' | 'without-bucket';
  readonly path: PathRule;
  readonly method?: string;
  /** Media type of the body, in lower case, without parameters. */
  readonly contentType?: string;
  /** Names of services, of which the head or the query names one in the scope of a SigV4 credential. */
  readonly signedFor?: readonly string[];
}

/** What the rules look at. */
export interface RouteRequest {
  readonly method: string;
  /** The request line's target. */
  readonly uri: string;
  readonly hasBucketHost: boolean;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What routes are served with: of S3, and of all other services. */
export interface RouteDependencies {
  readonly s3: S3Dependencies;
  readonly services: ServiceDependencies;
}

export interface ServiceDependencies extends AnswerMemory {
  readonly identities: Identities;
  readonly metadata: MetadataPort;
  readonly keyring: KeyringPort;
  readonly clock: ClockPort;
  readonly random: RandomPort;
  readonly mfaCodes: MfaCodes;
  readonly passwords: Passwords;
  readonly keyUses: KeyUses;
  readonly failures: SignatureFailures;
  readonly traffic: Pick<TrafficMeter, 'note'>;
  readonly ids: RequestIds;
  /** Long work of this thread, in turns by account. */
  readonly turns: FairTurns;
  readonly log: Logger;
  /** Throw SlowDown, as for requests of S3 (pipeline-steps.ts). */
  requireRoom(exchange: Exchange): void;
  requireShare(exchange: Exchange): void;
  /** True while requests can be served; false makes load balancers look elsewhere. */
  isReady(): boolean;
  readMetrics(): Promise<{ contentType: string; text: string }>;
  /** Of answers of /metrics that are under way, by address. */
  readonly metricsAnswers: FairShare;
  /** Of other long answers to anybody: bytes, by address. */
  readonly publicAnswers: FairShare;
  readonly shedding: Shedding;
  readonly operatorApi: JsonService<OperatorCaller>;
  /** Absent: none of its rows is in use. */
  readonly managementApi?: ManagementApi;
  /** Secrets are taken over connections that others may read, too. */
  readonly takesSecretsOverHttp: boolean;
  hostsOf(exchange: Exchange): SignedHosts;
  /** Of bodies that are read before it is known whether their sender has the secret: bytes, by address. */
  readonly unverifiedBodies: FairShare;
  /** Of bodies that are read whole once it is known who asks, until the answer is out: bytes, by tenant. */
  readonly provedBodies: FairShare;
}

export interface ServiceRoute extends RouteRules {
  readonly name: string;
  /** Name of the authentication policy. */
  readonly authentication: string;
  /** `bucketLabel`: the bucket that the host names. Rejects only by a fault of ours. */
  serve(deps: RouteDependencies, exchange: Exchange, bucketLabel: string | undefined): Promise<void>;
}

/** What the log says of a request beside what its answer shows. */
export interface RequestRecord {
  readonly requestId: string;
  accountId?: string;
  accessKey?: string;
  /** What was asked for, as policies name it: `iam:GetUser`. */
  action?: string;
  /** What of it was refused, and by what: for the operator, as of S3 (access-record.ts). */
  refusedAccess?: { action: string; resource: string; rule: string };
  errorCode?: string;
}

export const JSON_TYPE = 'application/json';

export interface RouteAnswer {
  readonly status: number;
  readonly contentType: string;
  /** '' for none. */
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Whose signature a request bears. */
export interface SignedCaller {
  readonly account: AccountRecord;
  /** Root, user or session, with the policies that allow and limit it. */
  readonly principal: Principal;
  readonly accessKey: string;
  /** All of it: its digest fits the signature. */
  readonly body: Buffer;
}

export interface JsonRequest<Authenticated> {
  readonly method: string;
  /** The request line's target, as sent: path and query. */
  readonly url: string;
  /** JSON in UTF-8, or nothing. */
  readonly body: Buffer;
  readonly caller: Authenticated;
  /** Whose turns a long answer takes while it is written. */
  readonly payer?: string;
  /** Aborts when the client has gone. */
  gone?(): AbortSignal;
}

/** A service that takes and gives JSON (json-service.ts). It has no listener: who asks has been checked before. */
export interface JsonService<Authenticated> {
  /** Throws AppError for what is not to be answered, and whatever its handlers throw. */
  answer(request: JsonRequest<Authenticated>): Promise<RouteAnswer>;
  /** Compiles routes and schemas, which keeps the thread for a while: before the first client is served. */
  ready?(): Promise<void>;
}

/** How a service authenticates; `Authenticated` is what the service gets to know. */
export interface AuthenticationPolicy<Authenticated> {
  readonly name: string;
  /** Reads what it needs of the request's body. Throws AppError for those who may not ask. */
  authenticate(deps: ServiceDependencies, exchange: Exchange, record: RequestRecord): Promise<Authenticated>;
}

/** A service that answers with small bodies, S3 being the one that does not. */
export interface Service<Authenticated> {
  readonly authentication: AuthenticationPolicy<Authenticated>;
  /** Level of the line that each request leaves in the log. */
  readonly logLevel: 'info' | 'debug';
  /** Its requests count for the account that signs them. */
  readonly isMetered?: true;
  /** Throws AppError, which `renderError` turns into an answer, like those of the authentication. */
  answer(options: {
    deps: ServiceDependencies;
    exchange: Exchange;
    caller: Authenticated;
    record: RequestRecord;
  }): Promise<RouteAnswer>;
  renderError(error: AppError, requestId: string): RouteAnswer;
}

/** The first row that takes the request. Every request has one: the last row takes all. */
export function findRoute(rows: readonly ServiceRoute[], request: RouteRequest): ServiceRoute | undefined {
  const path = pathOf(request.uri);
  return rows.find((row) => fits(row, request, path));
}

/** Without the query. */
export function pathOf(uri: string): string {
  const question = uri.indexOf('?');
  return question === -1 ? uri : uri.slice(0, question);
}

function fits(rules: RouteRules, request: RouteRequest, path: string): boolean {
  if (rules.hosts === 'without-bucket' && request.hasBucketHost) return false;
  if (!fitsPath(rules.path, path)) return false;
  if (rules.method !== undefined && rules.method !== request.method) return false;
  if (rules.contentType !== undefined && rules.contentType !== mediaTypeOf(request)) return false;
  return rules.signedFor === undefined || rules.signedFor.includes(signedServiceOf(request) ?? '');
}

function fitsPath(rule: PathRule, path: string): boolean {
  if (rule === 'any') return true;
  if ('exact' in rule) return path === rule.exact;
  return (
    path.startsWith(rule.within) && (path.length === rule.within.length || path[rule.within.length] === '/')
  );
}

function mediaTypeOf({ headers }: RouteRequest): string {
  return headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/**
 * AWS "Elements of an AWS API request signature": `key/date/region/service/aws4_request`. Nothing of it is checked here. It is
 * looked for at one place, which is short: a search in all of a long header would take time by the square of its length.
 */
const CREDENTIAL_SERVICE = /^Credential=[^,\s]*\/([^/,\s]+)\/aws4_request/;
const CREDENTIAL_CHARACTERS_MAX = 512;
/** The same of a presigned request, whose slashes may be encoded. Where it begins, and then what it says. */
const PRESIGNED_CREDENTIAL = /[?&]X-Amz-Credential=/i;
const PRESIGNED_SERVICE =
  /^[?&]X-Amz-Credential=[^&#]*(?:\/|%2F)([a-z0-9-]{1,32})(?:\/|%2F)aws4_request(?:[&#]|$)/i;

function signedServiceOf({ headers, uri }: RouteRequest): string | undefined {
  const { authorization = '' } = headers;
  const at = authorization.indexOf('Credential=');
  const credential = at === -1 ? '' : authorization.slice(at, at + CREDENTIAL_CHARACTERS_MAX);
  const service = CREDENTIAL_SERVICE.exec(credential)?.[1];
  if (service !== undefined) return service;
  const presignedAt = uri.search(PRESIGNED_CREDENTIAL);
  if (presignedAt === -1) return undefined;
  return PRESIGNED_SERVICE.exec(uri.slice(presignedAt, presignedAt + CREDENTIAL_CHARACTERS_MAX))?.[1];
}
