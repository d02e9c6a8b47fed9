// The workloads: what is written beforehand, and what one worker does again and again.
import { createHash, randomBytes } from 'node:crypto';
import type { LoadClient, LoadRequest, LoadResponse } from './client.ts';
import type { LoadSpec, WorkloadName } from './spec.ts';

/** What one operation moved, for the counts. */
export interface Moved {
  bytes: number;
  keys: number;
}

export interface WorkerContext {
  spec: LoadSpec;
  client: LoadClient;
  /** 0 to concurrency - 1. */
  worker: number;
  /** Counts this worker's operations. */
  step: number;
  payload: Payload;
}

export interface Workload {
  /** Objects `prep/<n>` that must be there first. */
  needsObjects: boolean;
  run(context: WorkerContext): Promise<Moved>;
}

/** Bytes that no compression can shrink, and their digest when it is sent. */
export class Payload {
  readonly bytes: Buffer;
  readonly #sha256: string | undefined;

  constructor(spec: LoadSpec) {
    this.bytes = randomBytes(spec.sizeBytes);
    this.#sha256 =
      spec.payload === 'signed' ? createHash('sha256').update(this.bytes).digest('hex') : undefined;
  }

  asBody(): Pick<LoadRequest, 'body' | 'bodySha256'> {
    return this.#sha256 === undefined ? { body: this.bytes } : { body: this.bytes, bodySha256: this.#sha256 };
  }
}

export function preparedPath(spec: LoadSpec, index: number): string {
  return `/${spec.bucket}/prep/${String(index).padStart(8, '0')}`;
}

/** Sends, and throws with the answer's code unless it is a success. */
export async function succeed(client: LoadClient, request: LoadRequest): Promise<LoadResponse> {
  const response = await client.send(request);
  if (response.status >= 300) {
    const code = /<Code>([^<]*)/.exec(response.body?.toString() ?? '')?.[1] ?? '';
    throw new Error(`${request.method} ${request.path}: ${response.status} ${code}`);
  }
  return response;
}

function anyPrepared(context: WorkerContext): string {
  return preparedPath(context.spec, Math.floor(Math.random() * context.spec.preparedCount));
}

/** 64 keys per worker are overwritten in turn: the store stays of one size however long a run is. */
function ownPath({ spec, worker, step }: WorkerContext): string {
  return `/${spec.bucket}/w${worker}/${step % 64}`;
}

async function put(context: WorkerContext, path = ownPath(context)): Promise<Moved> {
  await succeed(context.client, { method: 'PUT', path, ...context.payload.asBody() });
  return { bytes: context.spec.sizeBytes, keys: 1 };
}

async function get(context: WorkerContext): Promise<Moved> {
  const response = await succeed(context.client, { method: 'GET', path: anyPrepared(context) });
  if (response.bodyBytes !== context.spec.sizeBytes) throw new Error(`GET: ${response.bodyBytes} bytes`);
  return { bytes: response.bodyBytes, keys: 1 };
}

async function head(context: WorkerContext): Promise<Moved> {
  await succeed(context.client, { method: 'HEAD', path: anyPrepared(context) });
  return { bytes: 0, keys: 1 };
}

async function list(context: WorkerContext): Promise<Moved> {
  const pages = Math.max(1, context.spec.preparedCount - 1000);
  const after = `prep/${String(Math.floor(Math.random() * pages)).padStart(8, '0')}`;
  const query = `list-type=2&max-keys=1000&prefix=prep%2F&start-after=${encodeURIComponent(after)}`;
  const response = await succeed(context.client, {
    method: 'GET',
    path: `/${context.spec.bucket}`,
    query,
    keepBody: true,
  });
  const count = Number(/<KeyCount>(\d+)/.exec(response.body?.toString('latin1') ?? '')?.[1] ?? 0);
  return { bytes: response.bodyBytes, keys: count };
}

/** Deletes what was prepared, each key once: the run ends early when none is left. */
async function remove(context: WorkerContext): Promise<Moved> {
  await succeed(context.client, {
    method: 'DELETE',
    path: `/${context.spec.bucket}/prep/${nextPrepared(context)}`,
  });
  return { bytes: 0, keys: 1 };
}

function nextPrepared({ spec, worker, step }: WorkerContext): string {
  const index = step * spec.concurrency + worker;
  if (index >= spec.preparedCount) throw new NoneLeft();
  return String(index).padStart(8, '0');
}

/** Ends a measurement early: everything that was prepared is used up. */
export class NoneLeft extends Error {
  override name = 'NoneLeft';
}

const DELETE_BATCH = 1000;

async function removeMany(context: WorkerContext): Promise<Moved> {
  const { spec, worker, step } = context;
  const first = (step * spec.concurrency + worker) * DELETE_BATCH;
  if (first + DELETE_BATCH > spec.preparedCount) throw new NoneLeft();
  let objects = '';
  for (let index = first; index < first + DELETE_BATCH; index++) {
    objects += `<Object><Key>prep/${String(index).padStart(8, '0')}</Key></Object>`;
  }
  const body = Buffer.from(
    `<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>${objects}</Delete>`,
  );
  const response = await succeed(context.client, {
    method: 'POST',
    path: `/${spec.bucket}`,
    query: 'delete=',
    headers: { 'content-md5': createHash('md5').update(body).digest('base64') },
    body,
    keepBody: true,
  });
  if (response.body?.includes('<Error>')) throw new Error('DeleteObjects answered with errors');
  return { bytes: 0, keys: DELETE_BATCH };
}

async function copy(context: WorkerContext): Promise<Moved> {
  const headers = { 'x-amz-copy-source': anyPrepared(context) };
  await succeed(context.client, { method: 'PUT', path: ownPath(context), headers });
  return { bytes: 0, keys: 1 };
}

const PARTS = 4;

async function multipart(context: WorkerContext): Promise<Moved> {
  const { client, payload, spec } = context;
  const path = ownPath(context);
  const created = await succeed(client, { method: 'POST', path, query: 'uploads=', keepBody: true });
  const uploadId = encodeURIComponent(/<UploadId>([^<]*)/.exec(created.body?.toString() ?? '')?.[1] ?? '');
  let parts = '';
  for (let number = 1; number <= PARTS; number++) {
    const query = `partNumber=${number}&uploadId=${uploadId}`;
    const { headers } = await succeed(client, { method: 'PUT', path, query, ...payload.asBody() });
    parts += `<Part><PartNumber>${number}</PartNumber><ETag>${String(headers.etag)}</ETag></Part>`;
  }
  const body = Buffer.from(`<CompleteMultipartUpload>${parts}</CompleteMultipartUpload>`);
  await succeed(client, { method: 'POST', path, query: `uploadId=${uploadId}`, body });
  return { bytes: PARTS * spec.sizeBytes, keys: 1 };
}

/** Of a hundred: 45 GET, 30 HEAD, 15 PUT, 10 DELETE of what was put. */
async function mixed(context: WorkerContext): Promise<Moved> {
  const dice = Math.random() * 100;
  if (dice < 45) return get(context);
  if (dice < 75) return head(context);
  if (dice < 90) return put(context);
  await succeed(context.client, { method: 'DELETE', path: ownPath(context) });
  return { bytes: 0, keys: 1 };
}

export const WORKLOAD_TABLE: Record<WorkloadName, Workload> = {
  put: { needsObjects: false, run: put },
  get: { needsObjects: true, run: get },
  head: { needsObjects: true, run: head },
  list: { needsObjects: true, run: list },
  delete: { needsObjects: true, run: remove },
  'delete-objects': { needsObjects: true, run: removeMany },
  copy: { needsObjects: true, run: copy },
  multipart: { needsObjects: false, run: multipart },
  mixed: { needsObjects: true, run: mixed },
  // Against the bare HTTP server of machine.ts: the bound that client and kernel set.
  'plain-put': { needsObjects: false, run: put },
  'plain-get': {
    needsObjects: false,
    async run(context) {
      const { bodyBytes } = await succeed(context.client, {
        method: 'GET',
        path: `/plain/${context.spec.sizeBytes}`,
      });
      return { bytes: bodyBytes, keys: 1 };
    },
  },
};
