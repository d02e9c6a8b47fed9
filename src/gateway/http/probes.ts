// What probes and scrapers ask for: health and metrics, for anybody who reaches the server.
import { AppError } from '../../types/errors.ts';
import { anybody, renderJsonError } from './serve-route.ts';
import { JSON_TYPE, type RouteAnswer, type Service } from './service-route.ts';
import { takePlaces } from './shedding.ts';

type Probe = Service<undefined>;
type Answering = Probe['answer'];

/** They come every few seconds: their lines are for debugging. */
function probe(answer: Answering): Probe {
  return { authentication: anybody, logLevel: 'debug', renderError: renderJsonError, answer };
}

export const liveness = probe(readOnly(async () => healthAnswer(true)));

export const readiness = probe(readOnly(async ({ deps }) => healthAnswer(deps.isReady())));

/**
 * Not for clients of a proxy: those may be anybody, and a proxy cannot distinguish this path from a key of a bucket in the
 * host. The answer is large and public, so the answers under way are bounded, by address too.
 */
export const metrics = probe(
  readOnly(async ({ deps, exchange }) => {
    if (exchange.client.isProxied) throw new AppError('NoSuchEntity');
    takePlaces(deps.shedding, deps.metricsAnswers, { exchange, units: 1, until: exchange.closed });
    const { contentType, text } = await deps.readMetrics();
    return { status: 200, contentType, body: text };
  }),
);

export const unknownProbe = probe(async () => {
  throw new AppError('NoSuchEntity');
});

function healthAnswer(isOk: boolean): RouteAnswer {
  const body = JSON.stringify({ status: isOk ? 'ok' : 'unavailable' });
  return { status: isOk ? 200 : 503, contentType: JSON_TYPE, body };
}

function readOnly(answer: Answering): Answering {
  return (options) => {
    const { method } = options.exchange.request;
    if (method === 'GET' || method === 'HEAD') return answer(options);
    return Promise.reject(new AppError('MethodNotAllowed', { headers: { Allow: 'GET, HEAD' } }));
  };
}
