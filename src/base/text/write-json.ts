// JSON of an answer, in steps: a page of a thousand records may have megabytes, and others must not wait until all of it is made.
import type { Steps } from '../async/steps.ts';
import { freeMemory } from '../free-memory.ts';

/** Of one step: half a millisecond. */
const STEP_CHARACTERS = 64 * 1024;

/** The text of a value as JSON.stringify has it; what takes more than one step is in UTF-8. */
export function* writeJson(value: unknown): Steps<string | Buffer> {
  const parts: Buffer[] = [];
  let text = '';
  for (const piece of piecesOf(value)) {
    if (text.length >= STEP_CHARACTERS) {
      parts.push(Buffer.from(text));
      text = '';
      yield;
    }
    text += piece;
  }
  if (parts.length === 0) return text;
  const whole = Buffer.concat([...parts, Buffer.from(text)]);
  for (const part of parts) freeMemory(part);
  return whole;
}

/** Entries of a list are pieces; lists are looked for in objects that are in no list themselves. What makes entries is a list, too. */
function* piecesOf(value: unknown): Generator<string, void> {
  if (isList(value)) {
    let before = '[';
    for (const entry of value) {
      yield before + (JSON.stringify(entry) ?? 'null');
      before = ',';
    }
    yield before === '[' ? '[]' : ']';
  } else if (isPlain(value)) {
    let before = '{';
    for (const [name, field] of Object.entries(value)) {
      if (field === undefined) continue;
      yield `${before}${JSON.stringify(name)}:`;
      yield* piecesOf(field);
      before = ',';
    }
    yield before === '{' ? '{}' : '}';
  } else yield JSON.stringify(value) ?? 'null';
}

function isList(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
