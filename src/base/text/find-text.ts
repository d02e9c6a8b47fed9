// Finds one text in another in time linear in both, whatever they are. V8 prepares a search with the last 250 characters of what is
// sought: where these fit everywhere and what is before them nowhere, it looks at them all again for each character of the other.

/** V8 finds so many in linear time (kBMMaxShift in its string-search.h). A longer part is looked at as a whole beforehand. */
export const NATIVE_UNITS_MAX = 250;

/** As `text.indexOf(part, from)`. */
export function findText(text: string, part: string, from: number): number {
  if (part.length <= NATIVE_UNITS_MAX) return text.indexOf(part, from);
  if (part.length > text.length - from) return -1;
  const { codes, borders } = prepare(part);
  let fits = 0;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    while (fits > 0 && codes[fits] !== code) fits = borders[fits - 1] as number;
    if (codes[fits] === code) fits++;
    if (fits === part.length) return at + 1 - fits;
  }
  return -1;
}

interface Prepared {
  readonly codes: Uint16Array;
  /** Of each beginning of the part, how much of its end is its beginning, too (Knuth, Morris and Pratt). */
  readonly borders: Int32Array;
}

let known: { readonly part: string; readonly prepared: Prepared } | undefined;

/** The last one is kept: a listing has one for all its keys. */
function prepare(part: string): Prepared {
  if (known?.part === part) return known.prepared;
  const codes = new Uint16Array(part.length);
  for (let at = 0; at < part.length; at++) codes[at] = part.charCodeAt(at);
  const borders = new Int32Array(part.length);
  let fits = 0;
  for (let at = 1; at < part.length; at++) {
    while (fits > 0 && codes[fits] !== codes[at]) fits = borders[fits - 1] as number;
    if (codes[fits] === codes[at]) fits++;
    borders[at] = fits;
  }
  known = { part, prepared: { codes, borders } };
  return known.prepared;
}
