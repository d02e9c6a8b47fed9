// A balancer in front of several servers that are one service: each new connection goes to the next of them, whoever the
// client is. It passes bytes on and knows nothing of HTTP. It keeps no process alive. A server that closes on bytes it has
// not read may lose its answer here, when the break is met by a write before the answer is read: Node ends a socket whole.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

const HOST = '127.0.0.1';

/** Resolves with its endpoint, of the same scheme as the first one's. */
export async function startBalancer(endpoints: readonly string[]): Promise<string> {
  const targets = endpoints.map((endpoint) => new URL(endpoint));
  let turn = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const target = targets[turn++ % targets.length];
    if (target === undefined) return void near.destroy();
    const { hostname: host, port } = target;
    const far = connect({ host, port: Number(port), allowHalfOpen: true, noDelay: true });
    join(near, far);
    join(far, near);
  });
  server.listen(0, HOST);
  await once(server, 'listening');
  server.unref();
  return `${targets[0]?.protocol}//${HOST}:${(server.address() as AddressInfo).port}`;
}

/** What one says goes to the other, with its end and its break. */
function join(from: Socket, to: Socket): void {
  from.unref();
  from.pipe(to);
  from.on('error', () => {});
  from.on('close', (hasFailed) => (hasFailed ? to.resetAndDestroy() : to.destroySoon()));
}
