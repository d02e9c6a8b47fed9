// Ports for processes that are told where to listen: free now, and below those that the kernel gives to connections, so
// that nobody's connection has taken one by the time that its process listens.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

const HOST = '127.0.0.1';
const [FIRST, LAST] = [12_000, 32_000];
const TRIES = 50;

/** So many in a row. */
export async function freePorts(count: number): Promise<number[]> {
  for (let tries = TRIES; tries > 0; tries--) {
    const first = randomInt(FIRST, LAST - count);
    const ports = Array.from({ length: count }, (_, index) => first + index);
    const tried = await Promise.allSettled(ports.map(listen));
    const servers = tried.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    if (servers.length === count) return ports;
  }
  throw new Error(`no ${count} free ports in a row`);
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

async function listen(port: number): Promise<Server> {
  const server = createServer().listen(port, HOST);
  await once(server, 'listening');
  return server;
}
