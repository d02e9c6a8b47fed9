// What the load (load.ts) does to one key: each kind of change, made with a value of its own that can be told from
// every other one, or with another key's. A change says beforehand which values its keys may hold afterwards.
import { createHash } from 'node:crypto';
import { seededBytes } from '../clients/tree.ts';
import type { RawAnswer, RawRequest } from '../servers/raw-s3.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const PART_SOURCE_BYTES = 6 * MiB;

/** A value by its label, which its metadata carries; null: the key is absent. */
export type Label = string | null;

export interface KeyState {
  /** Percent-encoded, with the bucket: also what a copy names as its source. */
  readonly path: string;
  /** What a read may find: one value when all is known, more after a request without an answer. */
  possible: Set<Label>;
  /** Likewise of its one tag; null: it has none. */
  possibleTags: Set<Label>;
}

/** A connection's keys, chance, and way to the server. Nobody else touches its keys. */
export interface Worker {
  readonly name: string;
  readonly keys: readonly KeyState[];
  random(): number;
  call(wanted: RawRequest): Promise<RawAnswer>;
  /** The bytes of every value by its label. */
  readonly values: Map<string, () => Buffer>;
}

export interface Change {
  readonly kind: string;
  /** `tag` is null by default. */
  readonly outcomes: readonly { key: KeyState; label: Label; tag?: Label }[];
  /** Resolves when it is acknowledged; throws WrongAnswer for an answer that is no success. */
  send(): Promise<void>;
}

export type MakeChange = (worker: Worker, key: KeyState) => Change;

export class WrongAnswer extends Error {}

/** The one value that a key holds, while nothing is under way. */
export const labelOf = (key: KeyState): Label => [...key.possible][0] ?? null;
const tagOf = (key: KeyState): Label => [...key.possibleTags][0] ?? null;

const labelled = (label: string) => ({ 'x-amz-meta-label': encodeURIComponent(label) });

/** The answer, which must be a success; Complete and Copy may find an error after they have begun to answer 200. */
async function succeed(worker: Worker, wanted: RawRequest, needle = ''): Promise<RawAnswer> {
  const answer = await worker.call(wanted);
  if (answer.status < 200 || answer.status > 299 || !answer.body.includes(needle)) {
    throw new WrongAnswer(`${wanted.method} ${wanted.path}: ${answer.status} ${answer.body}`);
  }
  return answer;
}

function newValue(worker: Worker, sizeBytes: number): { label: string; bytes: Buffer } {
  const label = `${worker.name} ${worker.values.size} of ${sizeBytes}`;
  worker.values.set(label, () => seededBytes(label, sizeBytes));
  return { label, bytes: seededBytes(label, sizeBytes) };
}

function put(kind: string, sizeOf: (random: number) => number): MakeChange {
  return (worker, key) => {
    const { label, bytes } = newValue(worker, Math.floor(sizeOf(worker.random())));
    return {
      kind,
      outcomes: [{ key, label }],
      async send() {
        await succeed(worker, { method: 'PUT', path: key.path, headers: labelled(label), body: bytes });
      },
    };
  };
}

const putSmall = put('put small', (random) => random * 64 * KiB);
const putChunked = put('put chunked', (random) => 64 * KiB + random * 2 * MiB);
const putPartSource = put('put', () => PART_SOURCE_BYTES);

async function createUpload(worker: Worker, key: KeyState, label: string): Promise<string> {
  const wanted = { method: 'POST', path: `${key.path}?uploads=`, headers: labelled(label) };
  const { body } = await succeed(worker, wanted, '<UploadId>');
  return encodeURIComponent(/<UploadId>(.*?)<\/UploadId>/.exec(body.toString())?.[1] ?? '');
}

async function uploadPart(
  worker: Worker,
  part: { key: KeyState; uploadId: string; number: number; body: Buffer },
): Promise<string> {
  const path = `${part.key.path}?partNumber=${part.number}&uploadId=${part.uploadId}`;
  const { headers } = await succeed(worker, { method: 'PUT', path, body: part.body });
  return String(headers.etag);
}

async function completeUpload(
  worker: Worker,
  upload: { key: KeyState; uploadId: string; etags: string[] },
): Promise<void> {
  const parts = upload.etags.map(
    (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
  );
  const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`);
  await succeed(
    worker,
    { method: 'POST', path: `${upload.key.path}?uploadId=${upload.uploadId}`, body },
    '<ETag>',
  );
}

const uploadInParts: MakeChange = (worker, key) => {
  const { label, bytes } = newValue(worker, 5 * MiB + Math.floor(worker.random() * MiB));
  return {
    kind: 'multipart',
    outcomes: [{ key, label }],
    async send() {
      const uploadId = await createUpload(worker, key, label);
      const bodies = [bytes.subarray(0, 5 * MiB), bytes.subarray(5 * MiB)];
      const etags = await Promise.all(
        bodies.map((body, index) => uploadPart(worker, { key, uploadId, number: index + 1, body })),
      );
      await completeUpload(worker, { key, uploadId, etags });
    },
  };
};

/** One part that is a range of another object, and one of its own. Makes the other object when there is none. */
const uploadPartCopy: MakeChange = (worker, key) => {
  const source = worker.keys.find((other) => labelOf(other)?.endsWith(` of ${PART_SOURCE_BYTES}`));
  const sourceBytes = source && worker.values.get(labelOf(source) ?? '');
  if (source === undefined || sourceBytes === undefined) return putPartSource(worker, key);
  const { label, bytes } = newValue(worker, 1000);
  worker.values.set(label, () => Buffer.concat([sourceBytes().subarray(100), bytes]));
  return {
    kind: 'part copy',
    outcomes: [{ key, label }],
    async send() {
      const uploadId = await createUpload(worker, key, label);
      const headers = {
        'x-amz-copy-source': source.path,
        'x-amz-copy-source-range': `bytes=100-${PART_SOURCE_BYTES - 1}`,
      };
      const path = `${key.path}?partNumber=1&uploadId=${uploadId}`;
      const copied = await succeed(worker, { method: 'PUT', path, headers }, '<ETag>');
      const first = /<ETag>(.*?)<\/ETag>/.exec(copied.body.toString())?.[1] ?? '';
      const second = await uploadPart(worker, { key, uploadId, number: 2, body: bytes });
      await completeUpload(worker, { key, uploadId, etags: [first, second] });
    },
  };
};

/** An upload that is never completed; every second one is aborted. */
const abandonUpload: MakeChange = (worker, key) => ({
  kind: 'abandoned upload',
  outcomes: [],
  async send() {
    const uploadId = await createUpload(worker, key, 'abandoned');
    const body = seededBytes('abandoned', Math.floor(worker.random() * 2 * MiB));
    await uploadPart(worker, { key, uploadId, number: 7, body });
    if (worker.random() < 0.5) return;
    await succeed(worker, { method: 'DELETE', path: `${key.path}?uploadId=${uploadId}` });
  },
});

const copy: MakeChange = (worker, key) => {
  const sources = worker.keys.filter((other) => other !== key && labelOf(other) !== null);
  const source = sources[Math.floor(worker.random() * sources.length)];
  if (source === undefined) return putSmall(worker, key);
  return {
    kind: 'copy',
    outcomes: [{ key, label: labelOf(source), tag: tagOf(source) }],
    async send() {
      const headers = { 'x-amz-copy-source': source.path };
      await succeed(worker, { method: 'PUT', path: key.path, headers }, '<ETag>');
    },
  };
};

/** A new tag, or none any more. */
const setTag: MakeChange = (worker, key) => {
  const label = labelOf(key);
  if (label === null) return putSmall(worker, key);
  const tag = worker.random() < 0.2 ? null : String(Math.floor(worker.random() * 1e9));
  const body = Buffer.from(
    `<Tagging><TagSet><Tag><Key>tag</Key><Value>${tag}</Value></Tag></TagSet></Tagging>`,
  );
  return {
    kind: 'tag',
    outcomes: [{ key, label, tag }],
    async send() {
      const path = `${key.path}?tagging=`;
      await succeed(worker, tag === null ? { method: 'DELETE', path } : { method: 'PUT', path, body });
    },
  };
};

/** The same bytes and tag under another label. */
const copyOntoItself: MakeChange = (worker, key) => {
  const bytes = worker.values.get(labelOf(key) ?? '');
  if (bytes === undefined) return putSmall(worker, key);
  const label = `${worker.name} ${worker.values.size} again`;
  worker.values.set(label, bytes);
  const replaced = { 'x-amz-copy-source': key.path, 'x-amz-metadata-directive': 'REPLACE' };
  return {
    kind: 'copy onto itself',
    outcomes: [{ key, label, tag: tagOf(key) }],
    async send() {
      const headers = { ...replaced, ...labelled(label) };
      await succeed(worker, { method: 'PUT', path: key.path, headers }, '<ETag>');
    },
  };
};

const remove: MakeChange = (worker, key) => ({
  kind: 'delete',
  outcomes: [{ key, label: null }],
  async send() {
    await succeed(worker, { method: 'DELETE', path: key.path });
  },
});

/** All keys of this worker in the bucket of `key`, in one request. */
const removeMany: MakeChange = (worker, key) => {
  const bucket = key.path.slice(0, key.path.indexOf('/', 1));
  const keys = worker.keys.filter((other) => other.path.startsWith(`${bucket}/`));
  const names = keys.map(({ path }) => decodeURIComponent(path.slice(bucket.length + 1)));
  const body = Buffer.from(
    `<Delete>${names.map((name) => `<Object><Key>${name}</Key></Object>`).join('')}</Delete>`,
  );
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
  return {
    kind: 'delete many',
    outcomes: keys.map((gone) => ({ key: gone, label: null })),
    async send() {
      const answer = await succeed(worker, { method: 'POST', path: `${bucket}?delete=`, headers, body });
      const text = answer.body.toString();
      if (text.split('<Deleted>').length !== keys.length + 1) throw new WrongAnswer(text);
    },
  };
};

/** Each kind as often as it stands here. */
export const CHANGES: readonly MakeChange[] = [
  putSmall,
  putSmall,
  putSmall,
  putSmall,
  putChunked,
  putChunked,
  putChunked,
  uploadInParts,
  uploadPartCopy,
  abandonUpload,
  copy,
  copy,
  copyOntoItself,
  setTag,
  setTag,
  remove,
  removeMany,
];
