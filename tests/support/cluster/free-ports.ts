// Ports for processes that are told where to listen: free now, and below those that the kernel gives to connections, so
// that nobody's connection has taken one by the time that its process listens. No port is given twice: a caller asks for
// all ports of a cluster before the first process listens. Each worker of vitest has a range of its own for that reason.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

const HOST = '127.0.0.1';
const [FIRST, LAST] = [12_000, 32_000];
const RANGES = 16;
const RANGE_SIZE = (LAST - FIRST) / RANGES;
const TRIES = 50;

const given = new Set<number>();

/** So many in a row. */
export async function freePorts(count: number): Promise<number[]> {
  for (let tries = TRIES; tries > 0; tries--) {
    const start = rangeStart();
    const first = randomInt(start, start + RANGE_SIZE - count);
    const ports = Array.from({ length: count }, (_, index) => first + index);
    if (ports.some((port) => given.has(port))) continue;
    const tried = await Promise.allSettled(ports.map(listen));
    const servers = tried.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    if (servers.length < count) continue;
    for (const port of ports) given.add(port);
    return ports;
  }
  throw new Error(`no ${count} free ports in a row`);
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** Of this worker's range; outside of vitest, of the last one. */
function rangeStart(): number {
  const worker = Number(process.env.VITEST_POOL_ID ?? RANGES - 1);
  return FIRST + (worker % RANGES) * RANGE_SIZE;
}

async function listen(port: number): Promise<Server> {
  const server = createServer().listen(port, HOST);
  await once(server, 'listening');
  return server;
}
