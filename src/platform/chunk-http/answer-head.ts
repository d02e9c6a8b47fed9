// The head of an answer, from the bytes of a peer: strict, because both ends are of this program, and what is read loosely
// here could be taken for the end of another answer.
import { trimBlanks } from '../../base/text/trim-blanks.ts';
import { parseWhole } from './wire.ts';

export interface AnswerHead {
  status: number;
  /** Names in lower case, each once. */
  headers: ReadonlyMap<string, string>;
  /** As announced; undefined: absent, so that the end of the answer cannot be known. */
  sizeBytes: number | undefined;
  /** The peer ends the connection after it. */
  isLast: boolean;
}

/** What ends a head. */
export const HEAD_END = Buffer.from('\r\n\r\n', 'latin1');

const STATUS_LINE = /^HTTP\/1\.1 ([2-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const HEADER_LINE = /^([!#$%&'*+\-.^_`|~\w]+):([\t\x20-\x7e\x80-\xff]*)$/;

/** Of the text (latin1) before {@link HEAD_END}; undefined: no head of an answer. */
export function parseAnswerHead(text: string): AnswerHead | undefined {
  const [first = '', ...lines] = text.split('\r\n');
  const status = STATUS_LINE.exec(first)?.[1];
  if (status === undefined) return undefined;
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    const key = name.toLowerCase();
    // Which of two counts is a question that peers must not answer differently.
    if (headers.has(key)) return undefined;
    headers.set(key, trimBlanks(value));
  }
  const length = headers.get('content-length');
  const sizeBytes = parseWhole(length);
  if (length !== undefined && sizeBytes === undefined) return undefined;
  return {
    status: Number(status),
    headers,
    sizeBytes: sizeOf(Number(status), { sizeBytes, isChunked: headers.has('transfer-encoding') }),
    isLast: headers.get('connection')?.toLowerCase() === 'close',
  };
}

function sizeOf(
  status: number,
  { sizeBytes, isChunked }: { sizeBytes: number | undefined; isChunked: boolean },
): number | undefined {
  if (isChunked) return undefined;
  // It never has a body, and need not declare that.
  if (status === 204) return sizeBytes === undefined || sizeBytes === 0 ? 0 : undefined;
  return sizeBytes;
}
