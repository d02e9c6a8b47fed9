// The well-behaved account beside an attack: GET and PUT of 4 KiB, PUT of 1 MiB and LIST, one after another on a
// connection each, a look at the operator API, and at the health of the server on a connection of its own each time.
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { signRequest } from '../../src/cli/sign-request.ts';
import { type Access, type RawRequest, send, sendBare } from '../../tests/support/servers/raw-s3.ts';

export const BUCKET = 'neighbour';

export interface Work {
  readonly name: string;
  /** The status of the answer; 0 where there was none. */
  run(): Promise<number>;
}

/** Makes the neighbour's bucket with what it reads and lists. */
export async function prepareNeighbour(account: Access): Promise<void> {
  await send(account, { method: 'PUT', path: `/${BUCKET}` });
  for (let at = 0; at < 100; at++) {
    await send(account, { method: 'PUT', path: `/${BUCKET}/list/${at}`, body: Buffer.from('x') });
  }
  await send(account, { method: 'PUT', path: `/${BUCKET}/small`, body: Buffer.alloc(4096, 1) });
}

/**
 * `patienceMs`: what is not answered by then counts as not answered. What it asks for, each on a kept connection of its own,
 * which is opened again where the server has ended it.
 */
export function neighbourWork(account: Access, operator: Access, patienceMs: number): Work[] {
  const statusOf = (answered: Promise<{ status: number }>) => statusWithin(answered, patienceMs);
  let number = 0;
  const s3 = (name: string, wanted: () => RawRequest): Work => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    return { name, run: () => statusOf(send(account, { ...wanted(), agent })) };
  };
  const small = Buffer.alloc(4096, 2);
  const large = Buffer.alloc(1024 * 1024, 3);
  return [
    s3('GET 4 KiB', () => ({ method: 'GET', path: `/${BUCKET}/small` })),
    s3('PUT 4 KiB', () => ({ method: 'PUT', path: `/${BUCKET}/put/${number++ % 100}`, body: small })),
    s3('PUT 1 MiB', () => ({ method: 'PUT', path: `/${BUCKET}/put-1m/${number++ % 10}`, body: large })),
    s3('LIST', () => ({ method: 'GET', path: `/${BUCKET}?list-type=2&prefix=list%2F` })),
    { name: 'operator', run: () => statusOf(askOperator(operator)) },
    { name: 'newcomer', run: () => statusOf(askAnew(account)) },
  ];
}

/** On a new connection, as a client that comes now. */
async function askAnew({ endpoint }: Access): Promise<{ status: number }> {
  const sent = get(`${endpoint}/health/live`, { agent: false });
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  await buffer(answer);
  return { status: answer.statusCode ?? 0 };
}

function askOperator(operator: Access) {
  const path = '/holdfast-admin/v1/status';
  const { host } = new URL(operator.endpoint);
  const headers = signRequest({
    method: 'GET',
    host,
    path,
    body: '',
    credentials: operator,
    nowMs: Date.now(),
  });
  return sendBare(operator, { method: 'GET', path, headers });
}

async function statusWithin(answered: Promise<{ status: number }>, patienceMs: number): Promise<number> {
  const isLate = new AbortController();
  const late = sleep(patienceMs, { status: 0 }, { signal: isLate.signal });
  const { status } = await Promise.race([answered, late]).catch(() => ({ status: 0 }));
  isLate.abort();
  late.catch(() => {});
  return status;
}
