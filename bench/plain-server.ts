// The least that a Node HTTP server can do: the bound for everything that goes over HTTP. Runs in a worker thread.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort } from 'node:worker_threads';

const PIECE = Buffer.alloc(1024 * 1024, 7);

const server = createServer((request, response) => {
  if (request.method === 'GET') {
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
server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port));
