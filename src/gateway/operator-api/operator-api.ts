// The operator API, /holdfast-admin/v1: finds the endpoint, lets it answer, renders errors as JSON. Only the root
// account may call it. Signatures have been checked, and the body read, before it is asked (gateway/http/server.ts).
import { AppError } from '../../types/errors.ts';
import type { AccountRecord } from '../../types/records/rows.ts';
import { redactError } from '../http/redact.ts';
import type { Endpoint, EndpointContext, EndpointRequest } from './endpoint.ts';
import {
  changeAccessKey,
  createAccessKey,
  deleteAccessKey,
  listAccessKeys,
} from './endpoints/access-keys.ts';
import {
  changeAccount,
  createAccount,
  deleteAccount,
  getAccount,
  listAccounts,
} from './endpoints/accounts.ts';
import { acceptClock } from './endpoints/clock.ts';
import { getComposed, getComposedBehind } from './endpoints/composed.ts';
import { beginFsck, cancelFsck, getFsck } from './endpoints/fsck.ts';
import { getJobs } from './endpoints/jobs.ts';
import { getKeys, rotateKeys } from './endpoints/keys.ts';
import { getStatus } from './endpoints/status.ts';

export const OPERATOR_PREFIX = '/holdfast-admin/v1';

/** Bytes of a request body at most: the largest there is has a few short fields. */
export const OPERATOR_BODY_BYTES_MAX = 64 * 1024;

export const ENDPOINTS: readonly Endpoint[] = [
  createAccount,
  listAccounts,
  getAccount,
  changeAccount,
  deleteAccount,
  createAccessKey,
  listAccessKeys,
  changeAccessKey,
  deleteAccessKey,
  getKeys,
  rotateKeys,
  acceptClock,
  getStatus,
  getJobs,
  getComposed,
  getComposedBehind,
  beginFsck,
  getFsck,
  cancelFsck,
];

export interface OperatorRequest {
  method: string;
  /** As sent: path and query. */
  url: string;
  /** Its digest has been checked against the signature. */
  body: Uint8Array;
  /** Whose signature it was. */
  account: AccountRecord;
  /** And by which of its keys. */
  accessKey: string;
}

export interface OperatorAnswer {
  status: number;
  /** '' for none. */
  text: string;
}

/** The answer to a verified request. Throws AppError, which `errorAnswer` renders, like all that went wrong before. */
export async function answerOperator(
  context: EndpointContext,
  request: OperatorRequest,
): Promise<OperatorAnswer> {
  if (!request.account.isRoot) throw new AppError('AccessDenied');
  const { endpoint, path } = findEndpoint(request);
  const answer = await endpoint.answer(context, {
    path,
    body: parseBody(request.body),
    signedBy: request.accessKey,
  });
  return { status: answer.status, text: answer.json === undefined ? '' : JSON.stringify(answer.json) };
}

/** An error as the operator API says it. */
export function errorAnswer(error: AppError, requestId: string): OperatorAnswer {
  const { code } = error;
  const { message, fields } = redactError(error);
  return { status: error.status, text: JSON.stringify({ error: { code, message, fields }, requestId }) };
}

function findEndpoint({ method, url }: OperatorRequest): {
  endpoint: Endpoint;
  path: EndpointRequest['path'];
} {
  const [pathText = ''] = url.slice(OPERATOR_PREFIX.length).split('?');
  const candidates = ENDPOINTS.flatMap((endpoint) => {
    const path = matchPath(endpoint.path, pathText);
    return path === undefined ? [] : [{ endpoint, path }];
  });
  const found = candidates.find(({ endpoint }) => endpoint.method === method);
  if (found !== undefined) return found;
  if (candidates.length === 0) throw new AppError('NoSuchEntity', { message: 'There is no such endpoint.' });
  const allow = candidates.map(({ endpoint }) => endpoint.method).join(', ');
  throw new AppError('MethodNotAllowed', { headers: { allow } });
}

/** The values of the pattern's names, or undefined when the path is another one. */
function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return undefined;
  const values: Record<string, string> = {};
  for (const [at, segment] of wanted.entries()) {
    const text = given[at] ?? '';
    if (!segment.startsWith(':')) {
      if (segment !== text) return undefined;
      continue;
    }
    try {
      values[segment.slice(1)] = decodeURIComponent(text);
    } catch {
      throw new AppError('InvalidURI');
    }
  }
  return values;
}

function parseBody(body: Uint8Array): Readonly<Record<string, unknown>> {
  if (body.length === 0) return {};
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (cause) {
    throw new AppError('ValidationError', { message: 'The body is not JSON.', cause });
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new AppError('ValidationError', { message: 'The body must be a JSON object.' });
  }
  return json as Readonly<Record<string, unknown>>;
}
