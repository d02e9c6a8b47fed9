// What the property tests of parsers share: what an attempt may end in, texts that are nearly valid, and time that grows
// with the length of the text and no faster.
import fc from 'fast-check';
import { expect } from 'vitest';
import { AppError } from '../../../src/types/errors.ts';
import { withinOneTurn } from './loop-watch.ts';

/**
 * What `act` gives, or the code of the client's error that it ends in. Anything else is a fault, and thrown; so is an
 * input that keeps the thread for long.
 */
export function outcomeOf<Value>(act: () => Value): { value: Value } | { code: string } {
  try {
    return { value: withinOneTurn(act) };
  } catch (error) {
    if (!(error instanceof AppError) || (error.status >= 500 && error.code !== 'NotImplemented')) throw error;
    return { code: error.code };
  }
}

/** Characters of bytes: as header values have them. */
export const byteText = fc.string({
  unit: fc.integer({ min: 1, max: 255 }).map((byte) => String.fromCharCode(byte)),
});

/** Characters of all planes, without halves of pairs; not empty. */
export const anyText = fc.string({
  unit: fc
    .integer({ min: 1, max: 0x10ffff - 0x800 })
    .map((at) => String.fromCodePoint(at < 0xd800 ? at : at + 0x800)),
  minLength: 1,
});

/** Valid texts with pieces cut out, doubled or put in; and texts of pieces alone. */
export function nearly(valid: readonly string[], pieces: readonly string[]): fc.Arbitrary<string> {
  const change = fc.tuple(fc.nat(), fc.nat({ max: 6 }), fc.constantFrom('', ...pieces), fc.boolean());
  const changed = fc
    .tuple(fc.constantFrom(...valid), fc.array(change, { maxLength: 3 }))
    .map(([text, changes]) => changes.reduce(applyChange, text));
  const ofPieces = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join(''));
  return fc.oneof(changed, ofPieces, byteText);
}

function applyChange(
  text: string,
  [place, length, piece, isDoubled]: [number, number, string, boolean],
): string {
  const at = place % (text.length + 1);
  const cut = text.slice(at, at + length);
  return text.slice(0, at) + (isDoubled ? cut + cut : piece) + text.slice(at + length);
}

const LENGTH = 16_000;
/** Below it nothing can be told from chance. */
const NOTHING_MS = 25;

/** Twice the text takes about twice the time, whatever piece it is made of, behind each of the beginnings. */
export function expectLinear(
  act: (text: string) => unknown,
  options: { pieces: readonly string[]; starts?: readonly string[]; end?: string },
): void {
  const { pieces, starts = [''], end = '\x01' } = options;
  for (const start of starts) {
    for (const piece of pieces) {
      const timeOf = (length: number) => {
        const text = start + piece.repeat(Math.ceil(length / piece.length)) + end;
        return Math.min(...[1, 2, 3].map(() => timeMs(() => act(text))));
      };
      const twiceMs = timeOf(2 * LENGTH);
      if (twiceMs < NOTHING_MS) continue;
      expect(twiceMs, `of ${JSON.stringify(start + piece)} again and again`).toBeLessThan(3 * timeOf(LENGTH));
    }
  }
}

/** Of this thread alone: others of the machine take nothing from it. */
function timeMs(act: () => unknown): number {
  const started = process.threadCpuUsage();
  try {
    act();
  } catch {
    // Refused, in whatever time it took.
  }
  const { user, system } = process.threadCpuUsage(started);
  return (user + system) / 1000;
}
