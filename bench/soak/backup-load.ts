// What backup programs ask of a store, mixed: packs of 16 MiB, small files, multipart uploads, reads that compare each byte,
// listings and deletes. What is there grows to a size and then keeps it.
import { createHash } from 'node:crypto';
import { LoadClient, succeed } from '../load/client.ts';
import type { Target } from '../load/spec.ts';
import { beginUpload, completeUpload } from '../load/upload.ts';
import { Bodies, type StoredObject, StoredObjects } from './bodies.ts';
import { Pacer } from './pacer.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const PACK_BYTES = 16 * MiB;
const FILE_BYTES_MAX = 64 * KiB;
const PART_BYTES = 8 * MiB;
const PART_COUNT = 4;
/** Files are deleted so many at a time. */
const BATCH_COUNT = 100;
const FOLDER_COUNT = 64;
const ERRORS_SHOWN = 10;

/** How often each is chosen, of all. */
const MIX = {
  'pack PUT': 40,
  'pack GET': 20,
  'file PUT': 800,
  'file GET': 400,
  multipart: 4,
  LIST: 20,
} as const;
export const KINDS = [...Object.keys(MIX), 'DELETE', 'DeleteObjects'];
const DICE = Object.entries(MIX).flatMap(([kind, weight]) => Array<string>(weight).fill(kind));

export interface BackupLoadSpec {
  target: Target;
  bucket: string;
  concurrency: number;
  mibPerSecond: number | undefined;
  /** Of packs and multipart uploads. */
  packBytesMax: number;
  fileCountMax: number;
}

/** Of the time since it was asked for last. */
export interface LoadFigures {
  bytes: number;
  latenciesMs: Map<string, number[]>;
  errorCount: number;
}

export class BackupLoad {
  readonly #spec: BackupLoadSpec;
  readonly #pacer: Pacer;
  readonly #bodies = new Bodies();
  readonly #packs = new StoredObjects();
  readonly #files = new StoredObjects();
  /** With those that are being written. */
  #packBytes = 0;
  #fileBytes = 0;
  #fileCount = 0;
  #nextNumber = 1;
  #figures: LoadFigures = { bytes: 0, latenciesMs: new Map(), errorCount: 0 };
  #isOver = false;
  /** The first few, for people. */
  readonly errors: string[] = [];

  constructor(spec: BackupLoadSpec) {
    this.#spec = spec;
    this.#pacer = new Pacer(spec.mibPerSecond);
  }

  get liveBytes(): number {
    return this.#packBytes + this.#fileBytes;
  }

  /** Resolves after {@link end}, when all requests have ended. */
  async run(): Promise<void> {
    const { target, bucket, concurrency } = this.#spec;
    const first = new LoadClient(target);
    await succeed(first, { method: 'PUT', path: `/${bucket}` });
    await first.close();
    await Promise.all(Array.from({ length: concurrency }, () => this.#work(new LoadClient(target))));
  }

  end(): void {
    this.#isOver = true;
  }

  takeFigures(): LoadFigures {
    const taken = this.#figures;
    this.#figures = { bytes: 0, latenciesMs: new Map(), errorCount: 0 };
    return taken;
  }

  /** Keys that are there and should not be, or the other way round, once it is over. */
  async wrongKeys(): Promise<string[]> {
    const { target, bucket } = this.#spec;
    const client = new LoadClient(target);
    const wrong = new Set([...this.#packs.paths(), ...this.#files.paths()]);
    for (let after = ''; ; ) {
      const query = `list-type=2&start-after=${encodeURIComponent(after)}`;
      const { body } = await succeed(client, { method: 'GET', path: `/${bucket}`, query, keepBody: true });
      const keys = [...(body?.toString() ?? '').matchAll(/<Key>([^<]*)/g)].map(([, key = '']) => key);
      for (const key of keys) {
        const path = `/${bucket}/${key}`;
        if (!wrong.delete(path)) wrong.add(path);
      }
      if (keys.length === 0) break;
      after = keys.at(-1) ?? '';
    }
    await client.close();
    return [...wrong];
  }

  async #work(client: LoadClient): Promise<void> {
    while (!this.#isOver) await this.#once(client);
    await client.close();
  }

  #once(client: LoadClient): Promise<void> {
    const kind = DICE[Math.floor(Math.random() * DICE.length)] ?? 'LIST';
    if (kind === 'pack PUT') return this.#putPack(client, { kind, sizeBytes: PACK_BYTES });
    if (kind === 'multipart') return this.#putPack(client, { kind, sizeBytes: PART_COUNT * PART_BYTES });
    if (kind === 'file PUT') return this.#putFile(client);
    if (kind === 'pack GET') return this.#read(client, kind, this.#packs.any());
    if (kind === 'file GET') return this.#read(client, kind, this.#files.any());
    return this.#list(client);
  }

  async #putPack(
    client: LoadClient,
    { kind, sizeBytes }: { kind: string; sizeBytes: number },
  ): Promise<void> {
    this.#packBytes += sizeBytes;
    while (this.#packBytes > this.#spec.packBytesMax) {
      const old = this.#packs.take();
      if (old === undefined) break;
      this.#packBytes -= old.sizeBytes;
      await this.#timed('DELETE', 0, () => succeed(client, { method: 'DELETE', path: old.path }));
    }
    const object = this.#newObject('packs', sizeBytes);
    const put = () =>
      kind === 'multipart' ? this.#upload(client, object) : this.#bodies.put(client, object);
    if (await this.#timed(kind, sizeBytes, put)) this.#packs.add(object);
    else this.#packBytes -= sizeBytes;
  }

  async #upload(client: LoadClient, object: StoredObject): Promise<void> {
    const { path } = object;
    const body = this.#bodies.bytesOf(object);
    const uploadId = await beginUpload(client, path);
    const etags: string[] = [];
    for (let index = 0; index < PART_COUNT; index++) {
      const { headers } = await succeed(client, {
        method: 'PUT',
        path,
        query: `partNumber=${index + 1}&uploadId=${uploadId}`,
        body: body.subarray(index * PART_BYTES, (index + 1) * PART_BYTES),
      });
      etags.push(String(headers.etag));
    }
    await completeUpload(client, { path, uploadId, etags });
  }

  async #putFile(client: LoadClient): Promise<void> {
    const sizeBytes = 1 + Math.floor(Math.random() * FILE_BYTES_MAX);
    this.#fileCount++;
    this.#fileBytes += sizeBytes;
    if (this.#fileCount > this.#spec.fileCountMax + BATCH_COUNT) await this.#deleteFiles(client);
    const object = this.#newObject('files', sizeBytes);
    if (await this.#timed('file PUT', sizeBytes, () => this.#bodies.put(client, object))) {
      this.#files.add(object);
    } else {
      this.#fileCount--;
      this.#fileBytes -= sizeBytes;
    }
  }

  async #deleteFiles(client: LoadClient): Promise<void> {
    const { bucket } = this.#spec;
    const old = Array.from({ length: BATCH_COUNT }, () => this.#files.take()).filter(
      (file) => file !== undefined,
    );
    this.#fileCount -= old.length;
    this.#fileBytes -= old.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const keys = old.map(({ path }) => `<Object><Key>${path.slice(bucket.length + 2)}</Key></Object>`);
    const body = Buffer.from(
      `<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>${keys.join('')}</Delete>`,
    );
    const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
    await this.#timed('DeleteObjects', 0, async () => {
      const path = `/${bucket}`;
      const answer = await succeed(client, {
        method: 'POST',
        path,
        query: 'delete=',
        headers,
        body,
        keepBody: true,
      });
      if (answer.body?.includes('<Error>')) throw new Error('DeleteObjects answered with errors');
    });
  }

  async #read(client: LoadClient, kind: string, object: StoredObject | undefined): Promise<void> {
    if (object === undefined) return this.#putFile(client);
    object.readerCount++;
    await this.#timed(kind, object.sizeBytes, () => this.#bodies.check(client, object));
    object.readerCount--;
  }

  async #list(client: LoadClient): Promise<void> {
    const prefix = `files/${Math.floor(Math.random() * FOLDER_COUNT)}/`;
    const query = `list-type=2&prefix=${encodeURIComponent(prefix)}`;
    await this.#timed('LIST', 0, () =>
      succeed(client, { method: 'GET', path: `/${this.#spec.bucket}`, query, keepBody: true }),
    );
  }

  #newObject(folder: string, sizeBytes: number): StoredObject {
    const number = this.#nextNumber++;
    const path = `/${this.#spec.bucket}/${folder}/${number % FOLDER_COUNT}/${number}`;
    return { path, number, sizeBytes, readerCount: 0 };
  }

  /** Whether it went well. It waits for its turn before the clock runs. */
  async #timed(kind: string, bytes: number, work: () => Promise<unknown>): Promise<boolean> {
    await this.#pacer.turn(bytes);
    const startedAt = performance.now();
    try {
      await work();
      const { latenciesMs } = this.#figures;
      const ofKind = latenciesMs.get(kind) ?? [];
      latenciesMs.set(kind, ofKind);
      ofKind.push(performance.now() - startedAt);
      this.#figures.bytes += bytes;
      return true;
    } catch (error) {
      this.#figures.errorCount++;
      if (this.errors.length < ERRORS_SHOWN) this.errors.push(`${kind}: ${String(error)}`);
      return false;
    }
  }
}
