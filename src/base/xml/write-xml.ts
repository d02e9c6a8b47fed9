// Writes XML by concatenation: listings are long, and a builder would cost more than all the rest of a page.
// Callers give element names from their own source text; only contents are escaped. No reading (parse-xml.ts).

export const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be written as references
const SPECIAL = /[&<>"\r\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;
const NAMED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\r': '&#13;',
  // Of this one XML has no form at all.
  '\u0000': '\ufffd',
};
/** By character code, of up to 127: what stands for it; undefined: itself. */
const REFERENCES = Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  return SPECIAL.test(character) ? referenceTo(character) : undefined;
});

function referenceTo(character: string): string {
  return NAMED[character] ?? `&#x${character.charCodeAt(0).toString(16)};`;
}

/** Text for the inside of an element or a quoted attribute. Control characters become references, as AWS writes them. */
export function escapeXml(text: string): string {
  if (!SPECIAL.test(text)) return text;
  // All of a long name may be special: a loop takes a fifth of what replacing each takes.
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const reference = code >= 0xfffe ? referenceTo(text[at] as string) : REFERENCES[code];
    if (reference === undefined) continue;
    if (from < at) parts.push(text.slice(from, at));
    parts.push(reference);
    from = at + 1;
  }
  parts.push(text.slice(from));
  return parts.join('');
}

/** `<name>value</name>` with the value escaped; nothing at all for undefined. */
export function xmlText(name: string, value: string | number | boolean | undefined): string {
  if (value === undefined) return '';
  return `<${name}>${typeof value === 'string' ? escapeXml(value) : value}</${name}>`;
}

/** An element around parts that are XML already. */
export function xmlElement(name: string, ...parts: readonly string[]): string {
  return `<${name}>${parts.join('')}</${name}>`;
}
