// A connection between two threads of this process. Either end asks the other by name, and answers what it is asked: plain
// data, and for each question and answer one stretch of bytes beside it, which is moved where it can be and not copied. What
// one end has to say in a turn of its event loop goes in one message. Messages are never lost and never change their order: an
// answer says what became of a question, and a line that ends has taken its process's other end with it.
import { isMarkedAsUntransferable } from 'node:worker_threads';
import { assert, BrokenInvariant } from '../../base/assert.ts';
import { packPlain, unpackAll } from '../../base/record-codec.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type ErrorFigure, encodeError, reviveError } from './carry-errors.ts';

/** A MessagePort, a Worker, or what a test has in their place. */
export interface LineEnd {
  postMessage(message: Frame, moved: ArrayBuffer[]): void;
  on(event: 'message', listener: (message: Frame) => void): unknown;
  on(event: 'messageerror', listener: (error: Error) => void): unknown;
}

/** What one end has said in a turn: items, one behind the other, and the bytes of those that have some, in their order. */
export interface Frame {
  readonly items: Uint8Array;
  readonly bodies: readonly Uint8Array[];
}

export interface Said {
  /** Plain data. */
  readonly value?: unknown;
  /** Its memory is the other end's from here on, where it is all of an ArrayBuffer. */
  readonly bytes?: Uint8Array | undefined;
}

/** Answers a question. What it throws is thrown where it was asked: an AppError by its code, all else by its message. */
export type Answerer = (value: never, bytes: Uint8Array | undefined) => Said | Promise<Said>;

export interface ThreadLine {
  /** Rejects with what the other end throws, and with AppError ServiceUnavailable when the line ends before it answers. */
  ask(name: string, value?: unknown, bytes?: Uint8Array): Promise<Said>;
  /** Asks for what needs no answer. */
  tell(name: string, value?: unknown): void;
  /** False: so many questions wait for their answers, or so many bytes of them (LIMITS). Who can do without asks no more. */
  hasRoom(): boolean;
  /** What the other end may ask for from now on, by name. */
  serve(answerers: Readonly<Record<string, Answerer>>): void;
  /** Sends what waits, now. */
  flush(): void;
  /** Nothing is sent any more, and what is asked rejects. */
  end(reason: string): void;
}

const ASK = 0;
const TELL = 1;
const ANSWER = 2;
const FAILURE = 3;
/** Kind, number of the question, its name ('' of answers), value, whether it has bytes. */
type Item = readonly [kind: number, number: number, name: string, value: unknown, hasBytes: boolean];

export function createThreadLine(end: LineEnd, onBroken: (error: Error) => void): ThreadLine {
  return new Line(end, onBroken);
}

interface Asked {
  /** Of its value; bytes beside it are bounded where they come from. */
  sizeBytes: number;
  resolve(said: Said): void;
  reject(error: unknown): void;
}

class Line implements ThreadLine {
  readonly #end: LineEnd;
  readonly #onBroken: (error: Error) => void;
  readonly #answerers = new Map<string, Answerer>();
  readonly #asked = new Map<number, Asked>();
  #askedBytes = 0;
  #lastNumber = 0;
  /** To be sent at the end of this turn. */
  #packed: Uint8Array[] = [];
  #packedBytes = 0;
  #bodies: Uint8Array[] = [];
  #isScheduled = false;
  #ended: string | undefined;

  constructor(end: LineEnd, onBroken: (error: Error) => void) {
    this.#end = end;
    this.#onBroken = onBroken;
    end.on('message', (frame) => this.#take(frame));
    end.on('messageerror', onBroken);
  }

  ask(name: string, value?: unknown, bytes?: Uint8Array): Promise<Said> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) {
        reject(lineEnded(this.#ended));
        return;
      }
      do this.#lastNumber = (this.#lastNumber + 1) >>> 0;
      while (this.#asked.has(this.#lastNumber));
      const sizeBytes = this.#say([ASK, this.#lastNumber, name, value, bytes !== undefined], bytes);
      this.#asked.set(this.#lastNumber, { sizeBytes, resolve, reject });
      this.#askedBytes += sizeBytes;
    });
  }

  tell(name: string, value?: unknown): void {
    this.#say([TELL, 0, name, value, false], undefined);
  }

  hasRoom(): boolean {
    return this.#asked.size < LIMITS.callsInFlightMax && this.#askedBytes < LIMITS.lineQuestionsBytesMax;
  }

  serve(answerers: Readonly<Record<string, Answerer>>): void {
    for (const [name, answerer] of Object.entries(answerers)) this.#answerers.set(name, answerer);
  }

  end(reason: string): void {
    this.flush();
    this.#ended ??= reason;
    for (const { reject } of this.#asked.values()) reject(lineEnded(reason));
    this.#asked.clear();
    this.#askedBytes = 0;
  }

  /** Gives the bytes of the item. */
  #say(item: Item, bytes: Uint8Array | undefined): number {
    if (this.#ended !== undefined) return 0;
    const packed = packPlain(item);
    this.#packed.push(packed);
    this.#packedBytes += packed.length;
    if (bytes !== undefined) this.#bodies.push(bytes);
    // After everything that this turn of the event loop still has to say.
    if (!this.#isScheduled) setImmediate(() => this.flush());
    this.#isScheduled = true;
    return packed.length;
  }

  flush(): void {
    this.#isScheduled = false;
    if (this.#packed.length === 0) return;
    // Memory of its own, which is moved: packed pieces lie in memory that is used for the next ones.
    const items = new Uint8Array(this.#packedBytes);
    let offset = 0;
    for (const packed of this.#packed) {
      items.set(packed, offset);
      offset += packed.length;
    }
    const moved = new Set([items.buffer]);
    const bodies = this.#bodies.map((bytes) => movable(bytes, moved));
    this.#packed = [];
    this.#packedBytes = 0;
    this.#bodies = [];
    this.#end.postMessage({ items, bodies }, [...moved]);
  }

  #take({ items, bodies }: Frame): void {
    if (this.#ended !== undefined) return;
    let bodyCount = 0;
    try {
      for (const [kind, number, name, value, hasBytes] of unpackAll(items) as Item[]) {
        const bytes = hasBytes ? bodies[bodyCount++] : undefined;
        if (kind === ASK) void this.#answer(number, name, value, bytes);
        else if (kind === TELL) void this.#run(name, value, bytes).catch(this.#onBroken);
        else this.#settle(kind, number, value, bytes);
      }
    } catch (error) {
      this.#onBroken(error as Error);
    }
  }

  #settle(kind: number, number: number, value: unknown, bytes: Uint8Array | undefined): void {
    const asked = this.#asked.get(number);
    assert(asked !== undefined, 'an answer has a question');
    this.#asked.delete(number);
    this.#askedBytes -= asked.sizeBytes;
    if (kind === ANSWER) asked.resolve(bytes === undefined ? { value } : { value, bytes });
    else asked.reject(reviveError(value as ErrorFigure));
  }

  async #answer(number: number, name: string, value: unknown, bytes: Uint8Array | undefined): Promise<void> {
    try {
      const said = await this.#run(name, value, bytes);
      this.#say([ANSWER, number, '', said.value, said.bytes !== undefined], said.bytes);
    } catch (error) {
      this.#fail(number, error);
    }
  }

  #fail(number: number, error: unknown): void {
    try {
      this.#say([FAILURE, number, '', encodeError(error), false], undefined);
    } catch (unpackable) {
      // What an error says of its request may be no plain data.
      this.#say(
        [FAILURE, number, '', encodeError(new BrokenInvariant(String(unpackable))), false],
        undefined,
      );
    }
  }

  async #run(name: string, value: unknown, bytes: Uint8Array | undefined): Promise<Said> {
    const answerer = this.#answerers.get(name);
    assert(answerer !== undefined, `somebody answers ${name}`);
    return answerer(value as never, bytes);
  }
}

/** Bytes as they go over: shared memory stays shared, a whole ArrayBuffer is moved, and of anything else a copy goes. */
function movable(bytes: Uint8Array, moved: Set<ArrayBuffer>): Uint8Array {
  const { buffer, byteLength } = bytes;
  if (!(buffer instanceof ArrayBuffer)) return bytes;
  const isWhole = byteLength === buffer.byteLength && byteLength > 0;
  if (isWhole && !isMarkedAsUntransferable(buffer) && !moved.has(buffer)) {
    moved.add(buffer);
    return new Uint8Array(buffer);
  }
  const copy = Uint8Array.from(bytes);
  moved.add(copy.buffer);
  return copy;
}

function lineEnded(reason: string): AppError {
  return new AppError('ServiceUnavailable', { cause: new Error(reason) });
}
