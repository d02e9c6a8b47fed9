// POST /api/v1/password-resets: a customer sets the password of its console by the link of a mail. Who has the link's token may;
// nothing else is asked for.
import { must } from '../../base/assert.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { readWhole } from '../http/read-whole.ts';
import { anybody } from '../http/serve-route.ts';
import { JSON_TYPE, type RouteAnswer, type Service } from '../http/service-route.ts';
import { type Envelope, renderEnvelopeError } from './envelope.ts';

const BODY_BYTES_MAX = 4096;

export const passwordResets: Service<undefined> = {
  authentication: anybody,
  logLevel: 'info',
  renderError: renderEnvelopeError,
  async answer({ deps, exchange }): Promise<RouteAnswer> {
    if (exchange.request.method !== 'POST')
      throw new AppError('MethodNotAllowed', { headers: { Allow: 'POST' } });
    deps.requireRoom(exchange);
    if (!exchange.client.isPrivate && !deps.takesSecretsOverHttp)
      throw new AppError('InvalidRequest', { message: 'Passwords are taken over HTTPS only.' });
    const bounds = { bodyBytesMax: BODY_BYTES_MAX, bodyMaxMs: LIMITS.operatorBodyMaxMs, clock: deps.clock };
    const { mails } = must(deps.managementApi, 'without it none of its rows is in use');
    await mails.resetPassword(readGiven(await readWhole(exchange, bounds)));
    const done: Envelope<null> = { success: true, message: 'The password is set.', data: null, errors: null };
    return { status: 200, contentType: JSON_TYPE, body: JSON.stringify(done) };
  },
};

/** Throws ValidationError. */
function readGiven(body: Buffer): { token: string; password: string } {
  let given: unknown;
  try {
    given = JSON.parse(body.toString('utf8'));
  } catch (cause) {
    throw new AppError('ValidationError', { message: 'The body is not JSON.', cause });
  }
  const { token, password } = (given ?? {}) as { token?: unknown; password?: unknown };
  const wrong = { ...textProblem('token', token), ...textProblem('password', password) };
  if (typeof token !== 'string' || typeof password !== 'string')
    throw new AppError('ValidationError', { message: 'The body has token and password.', fields: wrong });
  return { token, password };
}

function textProblem(name: string, value: unknown): Record<string, string> {
  return typeof value === 'string' ? {} : { [name]: 'must be a string' };
}
