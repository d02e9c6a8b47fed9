// OPTIONS on every level: the fixed CORS answer (service 4.4), for any caller and any bucket. The headers themselves are on
// every answer to a request with an Origin (cors.ts).
import { AppError } from '../../../types/errors.ts';
import { ANY_PARAMETER } from '../matcher.ts';
import { defineOperation, type Level } from '../operation.ts';

export const preflightService = preflight('PreflightService', 'service');
export const preflightBucket = preflight('PreflightBucket', 'bucket');
export const preflightObject = preflight('PreflightObject', 'object');

function preflight<const Name extends string>(name: Name, on: Level) {
  return defineOperation({
    name,
    match: { method: 'OPTIONS', on },
    logName: 'REST.OPTIONS.PREFLIGHT',
    body: 'none',
    // It asks about another request, whose parameters are not for this one to judge.
    parameters: [ANY_PARAMETER],
    auth: 'none',
    needsBucket: false,
    errors: ['BadRequest'],
    parse: ({ headers }) => {
      // s3-behaviour 13.
      if (headers.origin === undefined) {
        const message = 'Insufficient information. Origin request header needed.';
        throw new AppError('BadRequest', { message });
      }
    },
    access: () => [],
    run: async () => ({ status: 200 }),
  });
}
