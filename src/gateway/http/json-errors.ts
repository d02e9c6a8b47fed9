// An error as health, metrics and the operator API say it: JSON, without secrets, with the request's id.
import type { AppError } from '../../types/errors.ts';
import { redactError } from './redact.ts';
import { JSON_TYPE, type RouteAnswer } from './service-route.ts';

/** The body of an error: `fields` has a message for each field of the request that is wrong, and details of others. */
export interface JsonError {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly fields: Readonly<Record<string, string | number>>;
  };
  readonly requestId: string;
}

export function renderJsonError(error: AppError, requestId: string): RouteAnswer {
  const { code, status, headers } = error;
  const { message, fields } = redactError(error);
  const json: JsonError = { error: { code, message, fields }, requestId };
  return { status, contentType: JSON_TYPE, body: JSON.stringify(json), headers };
}
