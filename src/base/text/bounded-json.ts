// JSON of clients, parsed once its values are counted: JSON.parse takes a second for some documents of a few MiB, in one piece,
// whatever they mean. The count takes 2 ms for each MiB.

/** Thrown where the text has more values than allowed. */
export class TooManyValues extends Error {
  override name = 'TooManyValues';
}

/** Throws TooManyValues, SyntaxError. */
export function parseBoundedJson(text: string, valuesMax: number): unknown {
  if (countValues(text, valuesMax) > valuesMax) throw new TooManyValues(`more than ${valuesMax} values`);
  return JSON.parse(text);
}

const [QUOTE, COMMA, BACKSLASH, LIST, OBJECT] = [0x22, 0x2c, 0x5c, 0x5b, 0x7b];

/**
 * At least as many as there are, and about two for each list or object; it stops behind `enough`. Each value but the first
 * follows a comma or what opens a list or an object. Of text that is no JSON it says nothing.
 */
function countValues(text: string, enough: number): number {
  // What is shorter cannot have so many.
  if (text.length <= enough) return 1;
  let count = 1;
  for (let at = 0; at < text.length && count <= enough; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if (unit === COMMA || unit === LIST || unit === OBJECT) count++;
  }
  return count;
}

/** Of the quote that ends it; the text's end where none does. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return at;
    if (unit === BACKSLASH) at++;
  }
  return text.length;
}
