// Bodies of a long run: stretches of one piece of seeded memory, so that they cost nothing to make and each read is compared
// byte by byte.
import { type LoadClient, type LoadRequest, succeed } from '../load/client.ts';
import { seededBytes } from '../load/seeded-bytes.ts';

const MiB = 1024 * 1024;
const POOL_BYTES = 96 * MiB;
/** Odd and large: numbers that follow each other begin far apart. */
const SPREAD = 40_503_721;

/** One object that is there. */
export interface StoredObject {
  path: string;
  /** Says which bytes it has. */
  number: number;
  sizeBytes: number;
  /** It is not deleted before they end. */
  readerCount: number;
}

export class Bodies {
  readonly #pool = seededBytes('bench/soak.ts', { offsetBytes: 0, sizeBytes: POOL_BYTES });

  /** Of no more than 64 MiB. It is lent: nobody writes to it. */
  bytesOf({ number, sizeBytes }: Pick<StoredObject, 'number' | 'sizeBytes'>): Buffer {
    const offset = (number * SPREAD) % (POOL_BYTES - sizeBytes);
    return this.#pool.subarray(offset, offset + sizeBytes);
  }

  async put(client: LoadClient, object: StoredObject): Promise<void> {
    await succeed(client, { method: 'PUT', path: object.path, body: this.bytesOf(object) });
  }

  /** Throws unless the answer has the object's bytes. */
  async check(client: LoadClient, object: StoredObject): Promise<void> {
    const expected = this.bytesOf(object);
    let at = 0;
    let isRight = true;
    const request: LoadRequest = {
      method: 'GET',
      path: object.path,
      onPiece(piece) {
        isRight &&= piece.equals(expected.subarray(at, at + piece.length));
        at += piece.length;
      },
    };
    await succeed(client, request);
    if (!isRight || at !== object.sizeBytes) throw new Error(`GET ${object.path}: wrong bytes`);
  }
}

/** Objects that are there, of which a random one is read or deleted. */
export class StoredObjects {
  readonly #objects: StoredObject[] = [];

  get count(): number {
    return this.#objects.length;
  }

  add(object: StoredObject): void {
    this.#objects.push(object);
  }

  any(): StoredObject | undefined {
    return this.#objects[Math.floor(Math.random() * this.#objects.length)];
  }

  /** Takes one out that nobody reads; undefined: none was found. */
  take(): StoredObject | undefined {
    for (let tries = 0; tries < 20; tries++) {
      const index = Math.floor(Math.random() * this.#objects.length);
      const object = this.#objects[index];
      if (object === undefined) return undefined;
      if (object.readerCount > 0) continue;
      const last = this.#objects.pop();
      if (last !== undefined && last !== object) this.#objects[index] = last;
      return object;
    }
    return undefined;
  }

  paths(): string[] {
    return this.#objects.map(({ path }) => path);
  }
}
