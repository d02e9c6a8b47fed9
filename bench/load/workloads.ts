// The workloads: what is written beforehand, and what one worker does again and again.
import { createHash, randomBytes } from 'node:crypto';
import { type LoadClient, type LoadRequest, succeed } from './client.ts';
import type { LoadSpec, WorkloadName } from './spec.ts';
import { beginUpload, completeUpload } from './upload.ts';

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

/** The bucket of what has this number. Those that follow one another are in different buckets, and so in different shards. */
export function bucketOf(
  { bucket, bucketCount = 1 }: Pick<LoadSpec, 'bucket' | 'bucketCount'>,
  index: number,
): string {
  const at = index % bucketCount;
  return at === 0 ? bucket : `${bucket}-${at}`;
}

export function preparedPath(spec: Pick<LoadSpec, 'bucket' | 'bucketCount'>, index: number): string {
  return `/${bucketOf(spec, index)}/${preparedKey(index)}`;
}

const preparedKey = (index: number) => `prep/${String(index).padStart(8, '0')}`;

function anyPrepared(context: WorkerContext): string {
  return preparedPath(context.spec, Math.floor(Math.random() * context.spec.preparedCount));
}

/** 64 keys per worker are overwritten in turn, unless all is kept: the store stays of one size however long a run is. */
function ownPath({ spec, worker, step }: WorkerContext): string {
  return `/${bucketOf(spec, worker)}/w${worker}/${spec.keepsAll ? step : step % 64}`;
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

export const PAGE_KEYS = 1000;

/** One page, from anywhere that leaves a whole one. */
export async function listPage(
  client: LoadClient,
  prepared: { bucket: string; preparedCount: number },
): Promise<Moved> {
  const first = Math.floor(Math.random() * Math.max(1, prepared.preparedCount - PAGE_KEYS + 1));
  const after = first === 0 ? 'prep/' : preparedKey(first - 1);
  const query = `list-type=2&max-keys=${PAGE_KEYS}&prefix=prep%2F&start-after=${encodeURIComponent(after)}`;
  const response = await succeed(client, {
    method: 'GET',
    path: `/${prepared.bucket}`,
    query,
    keepBody: true,
  });
  const count = Number(/<KeyCount>(\d+)/.exec(response.body?.toString('latin1') ?? '')?.[1] ?? 0);
  if (count !== Math.min(PAGE_KEYS, prepared.preparedCount)) throw new Error(`a page of ${count} keys`);
  return { bytes: response.bodyBytes, keys: count };
}

/** Deletes what was prepared, each key once: the run ends early when none is left. */
async function remove(context: WorkerContext): Promise<Moved> {
  await succeed(context.client, {
    method: 'DELETE',
    path: nextPrepared(context),
  });
  return { bytes: 0, keys: 1 };
}

function nextPrepared({ spec, worker, step }: WorkerContext): string {
  const index = step * spec.concurrency + worker;
  if (index >= spec.preparedCount) throw new NoneLeft();
  return preparedPath(spec, index);
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
    objects += `<Object><Key>${preparedKey(index)}</Key></Object>`;
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
  const uploadId = await beginUpload(client, path);
  const etags: string[] = [];
  for (let number = 1; number <= PARTS; number++) {
    const query = `partNumber=${number}&uploadId=${uploadId}`;
    const { headers } = await succeed(client, { method: 'PUT', path, query, ...payload.asBody() });
    etags.push(String(headers.etag));
  }
  await completeUpload(client, { path, uploadId, etags });
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
  list: { needsObjects: true, run: ({ client, spec }) => listPage(client, spec) },
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
