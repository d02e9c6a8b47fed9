// Texts that are kept beyond the request that they came with. V8 cuts a text out of a longer one without a copy: a name of twenty
// characters out of a header of 30 KB keeps all of the header as long as it is kept itself.

/** What V8 copies anyway. */
const COPIED_UNITS_MAX = 12;
const BEYOND_BYTES = /[^\p{ASCII}\u0080-\u00ff]/u;

/** The same text, in memory of its own. */
export function ownText(text: string): string {
  if (text.length <= COPIED_UNITS_MAX) return text;
  const encoding = BEYOND_BYTES.test(text) ? 'utf16le' : 'latin1';
  return Buffer.from(text, encoding).toString(encoding);
}
