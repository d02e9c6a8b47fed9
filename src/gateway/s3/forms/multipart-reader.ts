// Reads a multipart/form-data body part by part (RFC 2046 5.1, RFC 7578), as it comes: it keeps what one read gave and never
// asks for more before that is used. Each byte is looked at a bounded number of times, whatever boundary the client chose. By
// hand, because the well-kept libraries push parts at their user, and call a part a file by its type.
import { AppError } from '../../../types/errors.ts';
import { type PartHead, parsePartHead } from './part-head.ts';

const [TAB, LF, CR, SPACE, DASH] = [0x09, 0x0a, 0x0d, 0x20, 0x2d];
const CRLF = Buffer.from('\r\n');
const EMPTY = Buffer.alloc(0);

/** Bytes that may still come beside the content of a file, and the error when more do. */
export interface Allowance {
  readonly bytesMax: number;
  refuse(): AppError;
}

/** Of heads. So many are read in one turn of the event loop: one read may give thousands of short parts. */
const LINES_OF_TURN = 200;

export class MultipartReader {
  readonly #read: () => Promise<Buffer | undefined>;
  readonly #turn: () => Promise<void>;
  /** CR stands at its beginning and nowhere else: a search never has to go back. */
  readonly #delimiter: Buffer;
  /** Has arrived and is not used. The first delimiter may stand at the very beginning, without a line before it. */
  #rest: Buffer = CRLF;
  #allowance: Allowance;
  /** Of each head, wherever it stands. */
  readonly #headAllowance: Allowance;
  #spentBytes = 0;
  /** What was spent before the present head. */
  #headFrom = 0;
  #linesCount = 0;

  /**
   * `read`: the next bytes of the body, undefined at its end. `turn`: resolves when others have had theirs, before each of some
   * hundred lines. `allowance`: of what comes next, and of every single head.
   */
  constructor(
    { read, turn }: { read(): Promise<Buffer | undefined>; turn(): Promise<void> },
    boundary: string,
    allowance: Allowance,
  ) {
    this.#read = read;
    this.#turn = turn;
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
    this.#allowance = allowance;
    this.#headAllowance = allowance;
  }

  /** From here on so much may come; one head may have no more than before. */
  allow(allowance: Allowance): void {
    this.#allowance = allowance;
    this.#spentBytes = 0;
  }

  /**
   * The head of the next part; what is left of the present one is passed over. Undefined behind the last one. Throws
   * MalformedPOSTRequest, the allowances' errors, and what `read` throws.
   */
  async next(): Promise<PartHead | undefined> {
    for await (const piece of this.content()) this.#spend(piece.length);
    this.#take(this.#delimiter.length);
    this.#headFrom = this.#spentBytes;
    while (this.#rest.length < 2) await this.#more();
    if (this.#rest[0] === DASH && this.#rest[1] === DASH) return undefined;
    if (!/^[ \t]*$/.test(await this.#line())) throw malformed();
    const lines: string[] = [];
    for (let line = await this.#line(); line !== ''; line = await this.#line()) lines.push(line);
    return parsePartHead(lines);
  }

  /** The content of the present part, piece by piece; before the first part: what must be passed over. */
  async *content(): AsyncGenerator<Buffer, void> {
    for (;;) {
      const { at, isWhole } = this.#findDelimiter();
      if (at > 0) {
        const piece = this.#rest.subarray(0, at);
        this.#rest = at === this.#rest.length ? EMPTY : this.#rest.subarray(at);
        yield piece;
      }
      if (isWhole) return;
      await this.#more();
    }
  }

  /** The same as one text of bytes, one character each. Counts against the allowance. */
  async text(): Promise<string> {
    const pieces: Buffer[] = [];
    for await (const piece of this.content()) {
      this.#spend(piece.length);
      pieces.push(piece);
    }
    return Buffer.concat(pieces).toString('latin1');
  }

  /** Reads what stands behind the last part, to the end of the body. */
  async finish(): Promise<void> {
    for (let rest: Buffer | undefined = this.#rest; rest !== undefined; rest = await this.#read()) {
      this.#spend(rest.length);
    }
    this.#rest = EMPTY;
  }

  /** Where the delimiter begins in what has arrived, or may begin: its end is still to come. Behind all of it: nowhere. */
  #findDelimiter(): { at: number; isWhole: boolean } {
    const rest = this.#rest;
    const delimiter = this.#delimiter;
    for (let at = nextCr(rest, 0); ; ) {
      if (at === rest.length) return { at, isWhole: false };
      let length = 1;
      while (length < delimiter.length && rest[at + length] === delimiter[length]) length++;
      const end = at + length;
      const kind = length === delimiter.length ? kindOfEnd(rest, end) : 'other';
      if (kind === 'whole') return { at, isWhole: true };
      if (kind === 'cut' || end >= rest.length) return { at, isWhole: false };
      // What has been compared holds no CR.
      at = nextCr(rest, end);
    }
  }

  /** A line without its end. */
  async #line(): Promise<string> {
    if (++this.#linesCount % LINES_OF_TURN === 0) await this.#turn();
    let room: Buffer = EMPTY;
    for (let searchedBytes = 0; ; ) {
      const end = this.#rest.indexOf(CRLF, searchedBytes);
      // Before it is gathered: a line without an end has no other bound.
      this.#requireHeadAllowed(end === -1 ? this.#rest.length : end + CRLF.length);
      if (end !== -1) {
        const line = this.#rest.toString('latin1', 0, end);
        this.#take(end + CRLF.length);
        return line;
      }
      // The last one may be the CR.
      searchedBytes = Math.max(0, this.#rest.length - 1);
      room = await this.#gather(room);
    }
  }

  /** As `#more`, into `room`, of which `#rest` is the beginning; doubled where it is full. So short reads do not copy it all. */
  async #gather(room: Buffer): Promise<Buffer> {
    const buffer = await this.#read();
    if (buffer === undefined) throw malformed();
    const restBytes = this.#rest.length;
    const sizeBytes = restBytes + buffer.length;
    let target = room;
    if (sizeBytes > room.length) {
      target = Buffer.alloc(Math.max(sizeBytes, Math.min(2 * sizeBytes, this.#headAllowance.bytesMax)));
      this.#rest.copy(target);
    }
    buffer.copy(target, restBytes);
    this.#rest = target.subarray(0, sizeBytes);
    return target;
  }

  async #more(): Promise<void> {
    const buffer = await this.#read();
    if (buffer === undefined) throw malformed();
    this.#rest = this.#rest.length === 0 ? buffer : Buffer.concat([this.#rest, buffer]);
  }

  #take(bytes: number): void {
    this.#spend(bytes);
    this.#rest = this.#rest.subarray(bytes);
  }

  #spend(bytes: number): void {
    this.#requireAllowed(bytes);
    this.#spentBytes += bytes;
  }

  #requireHeadAllowed(bytes: number): void {
    const headBytes = this.#spentBytes - this.#headFrom + bytes;
    if (headBytes > this.#headAllowance.bytesMax) throw this.#headAllowance.refuse();
    this.#requireAllowed(bytes);
  }

  #requireAllowed(bytes: number): void {
    if (this.#spentBytes + bytes > this.#allowance.bytesMax) throw this.#allowance.refuse();
  }
}

export function malformed(): AppError {
  return new AppError('MalformedPOSTRequest');
}

/** The length where there is none. A run of them is not worth a call for each. */
function nextCr(bytes: Buffer, from: number): number {
  if (bytes[from] === CR) return from;
  const at = bytes.indexOf(CR, from);
  return at === -1 ? bytes.length : at;
}

/** Whether what follows the boundary makes it a delimiter: the end of the line, blanks before that, or two dashes. */
function kindOfEnd(bytes: Buffer, at: number): 'whole' | 'cut' | 'other' {
  const [first, second] = [bytes[at], bytes[at + 1]];
  if (first === undefined) return 'cut';
  if (first === SPACE || first === TAB) return 'whole';
  if (first !== CR && first !== DASH) return 'other';
  if (second === undefined) return 'cut';
  return second === (first === CR ? LF : DASH) ? 'whole' : 'other';
}
