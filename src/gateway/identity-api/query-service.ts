// A service that speaks the query protocol: who asks, which action, and what comes of it. IAM and STS are two of them.
import { AppError, type ErrorCode } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { formatTimestamp, parseTimestamp } from '../auth/signing-dates.ts';
import { withAnswerMemory } from '../http/answer-memory.ts';
import type {
  AuthenticationPolicy,
  Service,
  ServiceDependencies,
  SignedCaller,
} from '../http/service-route.ts';
import { signedCaller } from '../http/signed-caller.ts';
import { callerOf, type IdentityCaller } from './authorize-action.ts';
import { type QueryApi, renderQueryError, renderResult } from './query-protocol.ts';
import { readParameters, type SentParameters } from './sent-parameters.ts';

export interface QueryRequest {
  readonly deps: ServiceDependencies;
  readonly caller: IdentityCaller;
  readonly sent: SentParameters;
}

/** One action of an API. */
export interface QueryAction {
  /** As requests name it. */
  readonly name: string;
  /**
   * It answers with a page of a list, or reads all policies of somebody: their texts take up to LIMITS.identityPageMemoryBytes
   * until it is answered.
   */
  readonly isLarge?: boolean;
  /** Resolves with the elements of the result, or nothing for an action that has none. Throws AppError. */
  perform(request: QueryRequest): Promise<string | undefined>;
}

export function createQueryService(api: QueryApi, actions: readonly QueryAction[]): Service<SignedCaller> {
  const byName = new Map(actions.map((action) => [action.name, action]));

  function findAction(sent: SentParameters): QueryAction {
    const name = sent.get('Action');
    if (!name) throw new AppError('MissingAction');
    const version = sent.get('Version') ?? api.version;
    const action = byName.get(name);
    if (action !== undefined && version === api.version) return action;
    throw new AppError('InvalidAction', {
      message: `Could not find operation ${name} for version ${version}`,
    });
  }

  return {
    authentication: inQueryWords(
      signedCaller({
        service: api.service,
        bodyBytesMax: LIMITS.identityBodyBytesMax,
        bodyMaxMs: LIMITS.identityBodyMaxMs,
        isShed: true,
        mayAsk: () => true,
      }),
    ),
    logLevel: 'info',
    isMetered: true,
    async answer({ deps, exchange, caller, record }) {
      const { uri } = exchange;
      const question = uri.indexOf('?');
      const query = question === -1 ? '' : uri.slice(question + 1);
      const sent = readParameters([query, caller.body.toString('latin1')]);
      const action = findAction(sent);
      record.action = `${api.service}:${action.name}`;
      const asker = callerOf(caller, exchange, { nowMs: deps.clock.wallMs(), record });
      const perform = async () => {
        const result = await action.perform({ deps, caller: asker, sent });
        return renderResult(api, { action: action.name, result, requestId: record.requestId });
      };
      if (action.isLarge !== true) return perform();
      const needs = { exchange, sizeBytes: LIMITS.identityPageMemoryBytes };
      return exchange.inTime(withAnswerMemory(deps, needs, perform));
    },
    renderError: (error, requestId) => renderQueryError(api, error, requestId),
  };
}

/** S3's errors of authentication → what the query protocol calls them (AWS "Common errors"). */
const AUTHENTICATION_ERRORS: Readonly<Partial<Record<ErrorCode, ErrorCode>>> = {
  AuthorizationHeaderMalformed: 'IncompleteSignature',
  AuthorizationQueryParametersError: 'IncompleteSignature',
  InvalidAccessKeyId: 'InvalidClientTokenId',
  InvalidToken: 'InvalidClientTokenId',
};

function inQueryWords<T>(policy: AuthenticationPolicy<T>): AuthenticationPolicy<T> {
  return {
    name: policy.name,
    async authenticate(...asked) {
      try {
        return await policy.authenticate(...asked);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        const code = AUTHENTICATION_ERRORS[error.code];
        if (code !== undefined) {
          const isMalformed = code === 'IncompleteSignature';
          throw new AppError(code, { cause: error, ...(isMalformed && { message: error.message }) });
        }
        if (error.code !== 'RequestTimeTooSkewed') throw error;
        throw new AppError('SignatureDoesNotMatch', { message: skewMessage(error), cause: error });
      }
    },
  };
}

/** What IAM and STS say of a signature that is of another time, presigned ones as well: they know no X-Amz-Expires. */
function skewMessage({ fields }: AppError): string {
  const serverMs = Date.parse(String(fields.ServerTime));
  const sent = String(fields.RequestTime);
  const sentMs = parseTimestamp(sent) ?? Date.parse(sent);
  const minutes = LIMITS.clockSkewMaxMs / 60_000;
  const server = formatTimestamp(serverMs);
  if (sentMs > serverMs) {
    const latest = formatTimestamp(serverMs + LIMITS.clockSkewMaxMs);
    return `Signature not yet current: ${sent} is still later than ${latest} (${server} + ${minutes} min.)`;
  }
  const earliest = formatTimestamp(serverMs - LIMITS.clockSkewMaxMs);
  return `Signature expired: ${sent} is now earlier than ${earliest} (${server} - ${minutes} min.)`;
}
