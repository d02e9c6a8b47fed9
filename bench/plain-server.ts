// The least that a Node HTTP server can do: the bound for everything that goes over HTTP. With `relayTo` it has no bytes
// itself and passes on those of another one, as a gateway of a cluster does. Runs in a worker thread.
import { Agent, createServer, request as httpRequest, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

const PIECE = Buffer.alloc(1024 * 1024, 7);

const { relayTo } = workerData as { relayTo: string | undefined };
const agent = new Agent({ keepAlive: true });

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    if (relayTo !== undefined) return relay(`${relayTo}${request.url}`, response);
    let leftBytes = Number(request.url?.split('/')[2] ?? 0);
    response.writeHead(200, { 'content-length': leftBytes });
    const send = () => {
      while (leftBytes > 0) {
        const piece = leftBytes < PIECE.length ? PIECE.subarray(0, leftBytes) : PIECE;
        leftBytes -= piece.length;
        if (!response.write(piece)) return void response.once('drain', send);
      }
      response.end();
    };
    send();
    return;
  }
  request.resume();
  request.once('end', () => response.writeHead(200, { 'content-length': 0 }).end());
});

function relay(url: string, response: ServerResponse): void {
  httpRequest(url, { agent }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, { 'content-length': answer.headers['content-length'] });
    answer.pipe(response);
  }).end();
}

server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port));
