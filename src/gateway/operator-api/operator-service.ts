// The operator API as a service of the gateway: who may call it, how its requests are logged, and the form of its errors.
import { OPERATORS } from '../../accounts/present-places.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { anybody, renderJsonError } from '../http/serve-route.ts';
import type { Service, SignedCaller } from '../http/service-route.ts';
import { signedCaller } from '../http/signed-caller.ts';
import { callerOf } from '../identity-api/authorize-action.ts';
import { OPERATOR_BODY_BYTES_MAX, OPERATOR_SIGNED_BODY_BYTES_MAX } from './operator-api.ts';

/** For callers of the root account: its root, and others by policies that allow `holdfast:` actions (operator-api.ts). What operators do is logged like every S3 request. */
export const operatorService: Service<SignedCaller> = {
  authentication: signedCaller({
    service: 'holdfast',
    bodyBytesMax: OPERATOR_SIGNED_BODY_BYTES_MAX,
    unverifiedBytesMax: OPERATOR_BODY_BYTES_MAX,
    bodyMaxMs: LIMITS.operatorBodyMaxMs,
    // Operators must be able to act on a server with too much to do, and nobody else may ask.
    isShed: false,
    mayAsk: ({ account }) => account.isRoot,
  }),
  logLevel: 'info',
  renderError: renderJsonError,
  answer({ deps, exchange, caller, record }) {
    const { request, uri } = exchange;
    const asker = callerOf(caller, exchange, { nowMs: deps.clock.wallMs(), record });
    const asked = { method: request.method ?? '', url: uri, body: caller.body, payer: OPERATORS.payer };
    const gone = () => exchange.signal;
    return deps.operatorApi.answer({ ...asked, caller: { ...caller, asker }, gone });
  },
};

/** Other versions of it than there are. */
export const unknownOperatorVersion: Service<undefined> = {
  authentication: anybody,
  logLevel: 'info',
  renderError: renderJsonError,
  async answer() {
    throw new AppError('NoSuchEntity', { message: 'There is no such endpoint.' });
  },
};
