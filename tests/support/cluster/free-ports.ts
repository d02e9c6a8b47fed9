// Ports for processes that are told where to listen: free now, and below those that the kernel gives to connections, so
// that nobody's connection has taken one by the time that its process listens. No port is given twice: a caller asks for
// all ports of a cluster before the first process listens. Test files run in several processes, of several runs too: each
// process holds ranges of ports, and a range is held by listening on its first port until the process ends.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

const HOST = '127.0.0.1';
const FIRST = 12_000;
const RANGES = 100;
const RANGE_SIZE = 200;

/** Ports of the held range that are not given yet. */
let left: number[] = [];
let ranges = Promise.resolve();

/** So many in a row. */
export async function freePorts(count: number): Promise<number[]> {
  if (count >= RANGE_SIZE) throw new Error(`${count} ports are more than a range has`);
  for (;;) {
    while (left.length >= count) {
      const ports = left.splice(0, count);
      if (await areFree(ports)) return ports;
    }
    // Callers at the same time take one range after the other.
    const next = ranges.then(async () => {
      if (left.length < count) left = await holdRange();
    });
    ranges = next.catch(() => undefined);
    await next;
  }
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** Takes a range that no process holds, and gives its ports. */
async function holdRange(): Promise<number[]> {
  const start = randomInt(RANGES);
  for (let index = 0; index < RANGES; index++) {
    const guard = FIRST + ((start + index) % RANGES) * RANGE_SIZE;
    const server = await listen(guard).catch(() => undefined);
    if (server === undefined) continue;
    server.unref();
    return Array.from({ length: RANGE_SIZE - 1 }, (_, offset) => guard + 1 + offset);
  }
  throw new Error('other processes hold all ranges of ports');
}

async function areFree(ports: readonly number[]): Promise<boolean> {
  const tried = await Promise.allSettled(ports.map(listen));
  const servers = tried.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return servers.length === ports.length;
}

async function listen(port: number): Promise<Server> {
  const server = createServer().listen(port, HOST);
  await once(server, 'listening');
  return server;
}
