// A crowd: many connections that send the same bytes at the same moment. Its sockets live in a thread of their own, so
// that what they cost does not count as work of a server in the test's process.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { must } from '../../../src/base/assert.ts';

interface CrowdData {
  readonly port: number;
  readonly host: string;
  readonly count: number;
  readonly sent: string;
}

export interface Crowd {
  /** Sends from all connections, and resolves when the server has answered or ended each of them. */
  send(): Promise<void>;
  /** Ends the thread and its connections. */
  close(): Promise<void>;
}

/** Opens `count` connections to `endpoint` (an http URL), each of which will send `sent`. */
export async function openCrowd(endpoint: string, count: number, sent: string): Promise<Crowd> {
  const { hostname, port } = new URL(endpoint);
  const data: CrowdData = { host: hostname, port: Number(port), count, sent };
  const worker = new Worker(new URL(import.meta.url), { workerData: data });
  await once(worker, 'message');
  return {
    async send() {
      worker.postMessage('send');
      await once(worker, 'message');
    },
    async close() {
      await worker.terminate();
    },
  };
}

async function runCrowd({ port, host, count, sent }: CrowdData): Promise<void> {
  const thread = must(parentPort, 'the port of a thread');
  const open = async () => {
    const socket = connect(port, host);
    await once(socket, 'connect');
    return socket;
  };
  const sockets = await Promise.all(Array.from({ length: count }, open));
  thread.postMessage('open');
  await once(thread, 'message');
  const answered = sockets.map(firstAnswer);
  for (const socket of sockets) socket.write(sent);
  await Promise.all(answered);
  thread.postMessage('answered');
}

/** Resolves at the first bytes of an answer, or when the connection ends. */
function firstAnswer(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const end = () => resolve();
    socket.on('data', end).on('end', end).on('error', end).on('close', end);
  });
}

if (!isMainThread && parentPort !== null) await runCrowd(workerData as CrowdData);
