// The query protocol of AWS, which IAM and STS speak: a form with `Action` goes in, XML comes out (AWS "Making query
// requests"). How answers and errors look; what the actions are stands in the table of each API.
import { XML_DECLARATION, xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import type { AppError, ErrorCode } from '../../types/errors.ts';
import { redactError } from '../http/redact.ts';
import type { RouteAnswer } from '../http/service-route.ts';

/** What distinguishes one API of the protocol from another. */
export interface QueryApi {
  /** In the scope of signatures. */
  readonly service: 'iam' | 'sts';
  readonly version: string;
}

export const IAM: QueryApi = { service: 'iam', version: '2010-05-08' };

const CONTENT_TYPE = 'text/xml';

function namespaceOf({ service, version }: QueryApi): string {
  return `https://${service}.amazonaws.com/doc/${version}/`;
}

/** `result`: the elements of the result; undefined: the action has none. */
export function renderResult(
  api: QueryApi,
  { action, result, requestId }: { action: string; result: string | undefined; requestId: string },
): RouteAnswer {
  const parts = [
    ...(result === undefined ? [] : [xmlElement(`${action}Result`, result)]),
    xmlElement('ResponseMetadata', xmlText('RequestId', requestId)),
  ];
  return answer(api, { status: 200, root: `${action}Response`, parts, requestId });
}

/** Names that the protocol has for errors of the whole service. */
const RENAMED: Readonly<Partial<Record<ErrorCode, string>>> = { InternalError: 'ServiceFailure' };

export function renderQueryError(api: QueryApi, error: AppError, requestId: string): RouteAnswer {
  const { code, status } = error;
  const { message } = redactError({ message: error.message, fields: {} });
  const element = xmlElement(
    'Error',
    xmlText('Type', status < 500 ? 'Sender' : 'Receiver'),
    xmlText('Code', RENAMED[code] ?? code),
    xmlText('Message', message),
  );
  const parts = [element, xmlText('RequestId', requestId)];
  const rendered = answer(api, { status, root: 'ErrorResponse', parts, requestId });
  return { ...rendered, headers: { ...error.headers, ...rendered.headers } };
}

function answer(
  api: QueryApi,
  {
    status,
    root,
    parts,
    requestId,
  }: { status: number; root: string; parts: readonly string[]; requestId: string },
): RouteAnswer {
  const body = `${XML_DECLARATION}<${root} xmlns="${namespaceOf(api)}">${parts.join('')}</${root}>`;
  return { status, contentType: CONTENT_TYPE, body, headers: { 'x-amzn-requestid': requestId } };
}

/** A list, each item of it in a `member`. */
export function xmlMembers(name: string, members: readonly string[]): string {
  return xmlElement(name, ...members.map((member) => xmlElement('member', member)));
}

/** As the APIs write times: whole seconds of UTC. */
export function xmlTime(name: string, atMs: number): string {
  return xmlText(name, `${new Date(atMs).toISOString().slice(0, 19)}Z`);
}
