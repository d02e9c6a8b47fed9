// Reads small XML documents strictly: what is not well-formed is refused, and nothing is altered on the way. Text is
// text (no numbers, no trimming), line ends are normalised and references decoded as XML 1.0 says; references to
// control characters are taken as XML 1.1 does, because keys may hold them. DOCTYPE is refused, so nothing expands.
// Namespace prefixes are cut off and not resolved. A parser of our own: fast-xml-parser takes 640 ms for 1.5 MB of
// DeleteObjects on the event loop (this one about 40), and needs a second pass to refuse what it lets through.
import { fromUtf8 } from './bytes.ts';

/** The document is not well-formed, or not what the reader asked for: 400 MalformedXML at the edge. */
export class XmlError extends Error {
  override name = 'XmlError';
}

export interface XmlElement {
  /** Without its namespace prefix. */
  readonly name: string;
  /** By name without prefix; namespace declarations are left out. */
  readonly attributes: ReadonlyMap<string, string>;
  /** The character data directly inside, in one piece and untrimmed. */
  text: string;
  readonly children: XmlElement[];
}

interface OpenElement {
  element: XmlElement;
  /** With its prefix: the end tag must repeat it. */
  tagName: string;
}

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();
const TAG_NAME =
  /[A-Za-z_\u0080-\uffff][\w.\-\u0080-\uffff]*(?::[A-Za-z_\u0080-\uffff][\w.\-\u0080-\uffff]*)?/y;
const WHITE_SPACE = /[ \t\n]*/y;
const ATTRIBUTE_VALUE = /[ \t\n]*=[ \t\n]*(?:"([^"<]*)"|'([^'<]*)')/y;
const REFERENCE = /&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(\w+));/y;
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML 1.0 does not allow as themselves
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/;
const DECLARATION =
  /^<\?xml[ \t\n]+version[ \t\n]*=[ \t\n]*(?:"1\.\d"|'1\.\d')(?:[ \t\n]+encoding[ \t\n]*=[ \t\n]*(?:"(?<double>[\w.-]+)"|'(?<single>[\w.-]+)'))?(?:[ \t\n]+standalone[ \t\n]*=[ \t\n]*(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\n]*\?>/;

/** The root element. Throws {@link XmlError} for anything but one well-formed document in UTF-8. */
export function parseXml(bytes: Uint8Array, options: { depthMax: number }): XmlElement {
  return new Reader(decode(bytes), options.depthMax).readDocument();
}

/** The only child of that name; undefined when there is none. Throws {@link XmlError} when it is repeated. */
export function childOf(parent: XmlElement, name: string): XmlElement | undefined {
  let found: XmlElement | undefined;
  for (const child of parent.children) {
    if (child.name !== name) continue;
    if (found !== undefined) throw new XmlError(`more than one ${name} in ${parent.name}`);
    found = child;
  }
  return found;
}

export function childrenOf(parent: XmlElement, name: string): XmlElement[] {
  return parent.children.filter((child) => child.name === name);
}

/** The text of the only child of that name. Throws {@link XmlError} when it is repeated or holds elements. */
export function textOf(parent: XmlElement, name: string): string | undefined {
  const child = childOf(parent, name);
  if (child !== undefined && child.children.length > 0) throw new XmlError(`${name} holds elements`);
  return child?.text;
}

function decode(bytes: Uint8Array): string {
  let text: string;
  try {
    text = fromUtf8(bytes);
  } catch {
    throw new XmlError('not UTF-8');
  }
  if (text.startsWith('\ufeff')) text = text.slice(1);
  if (FORBIDDEN.test(text)) throw new XmlError('a control character');
  return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;
}

/** A cursor over one document. The open elements are a list, not the call stack, so depth costs nothing. */
class Reader {
  readonly #text: string;
  readonly #depthMax: number;
  readonly #open: OpenElement[] = [];
  #root: XmlElement | undefined;
  #at = 0;

  constructor(text: string, depthMax: number) {
    this.#text = text;
    this.#depthMax = depthMax;
  }

  readDocument(): XmlElement {
    this.#readDeclaration();
    while (this.#at < this.#text.length) {
      const next = this.#text.indexOf('<', this.#at);
      const end = next === -1 ? this.#text.length : next;
      if (end > this.#at) this.#addText(this.#text.slice(this.#at, end));
      this.#at = end;
      if (next !== -1) this.#readMarkup();
    }
    if (this.#root === undefined || this.#open.length > 0) throw new XmlError('the document is not complete');
    return this.#root;
  }

  #readDeclaration(): void {
    if (!/^<\?xml[ \t\n?]/.test(this.#text)) return;
    const found = DECLARATION.exec(this.#text);
    if (found === null) throw new XmlError('a malformed XML declaration');
    const encoding = found.groups?.double ?? found.groups?.single ?? 'UTF-8';
    if (!/^(?:utf-?8|us-ascii)$/i.test(encoding)) throw new XmlError('not declared as UTF-8');
    this.#at = found[0].length;
  }

  #readMarkup(): void {
    const kind = this.#text.charCodeAt(this.#at + 1);
    if (kind === SLASH) this.#readEndTag();
    else if (kind === QUESTION) this.#readInstruction();
    else if (kind === EXCLAMATION) this.#readCommentOrCharacterData();
    else this.#readStartTag();
  }

  #readStartTag(): void {
    const tagName = this.#match(TAG_NAME, this.#at + 1);
    if (tagName === '') throw new XmlError('a malformed tag');
    const attributes = this.#readAttributes();
    const element: XmlElement = { name: withoutPrefix(tagName), attributes, text: '', children: [] };
    const parent = this.#open.at(-1);
    if (parent !== undefined) parent.element.children.push(element);
    else if (this.#root === undefined) this.#root = element;
    else throw new XmlError('more than one root element');
    if (this.#text.startsWith('/>', this.#at)) {
      this.#at += 2;
    } else if (this.#text.startsWith('>', this.#at)) {
      this.#at += 1;
      this.#open.push({ element, tagName });
      if (this.#open.length > this.#depthMax) throw new XmlError('too deep');
    } else {
      throw new XmlError('a malformed tag');
    }
  }

  /** Stops behind the last attribute and the white space after it. */
  #readAttributes(): ReadonlyMap<string, string> {
    let attributes: Map<string, string> | undefined;
    const names = new Set<string>();
    for (;;) {
      const space = this.#match(WHITE_SPACE, this.#at);
      const name = this.#match(TAG_NAME, this.#at);
      if (name === '') return attributes ?? NO_ATTRIBUTES;
      if (space === '') throw new XmlError('no space before an attribute');
      ATTRIBUTE_VALUE.lastIndex = this.#at;
      const found = ATTRIBUTE_VALUE.exec(this.#text);
      if (found === null || names.has(name)) throw new XmlError(`a malformed attribute ${name}`);
      this.#at = ATTRIBUTE_VALUE.lastIndex;
      names.add(name);
      if (name === 'xmlns' || name.startsWith('xmlns:')) continue;
      attributes ??= new Map();
      const value = (found[1] ?? found[2] ?? '').replace(/[\t\n]/g, ' ');
      attributes.set(withoutPrefix(name), decodeReferences(value));
    }
  }

  #readEndTag(): void {
    const tagName = this.#match(TAG_NAME, this.#at + 2);
    this.#match(WHITE_SPACE, this.#at);
    const open = this.#open.pop();
    if (open?.tagName !== tagName || this.#text[this.#at] !== '>') throw new XmlError('a wrong end tag');
    this.#at += 1;
  }

  #readInstruction(): void {
    const target = this.#match(TAG_NAME, this.#at + 2);
    if (target === '' || target.toLowerCase() === 'xml') throw new XmlError('a misplaced instruction');
    this.#skipBehind('?>', this.#at);
  }

  #readCommentOrCharacterData(): void {
    if (this.#text.startsWith('<!--', this.#at)) {
      this.#skipBehind('--', this.#at + 4);
      if (this.#text[this.#at] !== '>') throw new XmlError('"--" in a comment');
      this.#at += 1;
    } else if (this.#text.startsWith('<![CDATA[', this.#at) && this.#open.length > 0) {
      const start = this.#at + 9;
      this.#skipBehind(']]>', start);
      this.#append(this.#text.slice(start, this.#at - 3));
    } else {
      throw new XmlError('a declaration');
    }
  }

  #addText(text: string): void {
    if (this.#open.length === 0) {
      if (/[^ \t\n]/.test(text)) throw new XmlError('text outside of the root element');
      return;
    }
    if (text.includes(']]>')) throw new XmlError('"]]>" in text');
    this.#append(decodeReferences(text));
  }

  #append(text: string): void {
    const open = this.#open.at(-1);
    if (open !== undefined) open.element.text += text;
  }

  #match(pattern: RegExp, from: number): string {
    pattern.lastIndex = from;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at = from + found.length;
    return found;
  }

  #skipBehind(mark: string, from: number): void {
    const found = this.#text.indexOf(mark, from);
    if (found === -1) throw new XmlError('the document is not complete');
    this.#at = found + mark.length;
  }
}

const SLASH = 0x2f;
const QUESTION = 0x3f;
const EXCLAMATION = 0x21;

function withoutPrefix(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

function decodeReferences(text: string): string {
  let at = text.indexOf('&');
  if (at === -1) return text;
  let decoded = '';
  let done = 0;
  while (at !== -1) {
    REFERENCE.lastIndex = at;
    const found = REFERENCE.exec(text);
    if (found === null) throw new XmlError('a malformed reference');
    const [, decimal, hex, entity] = found;
    decoded += text.slice(done, at) + (entity === undefined ? byCode(decimal, hex) : byName(entity));
    done = REFERENCE.lastIndex;
    at = text.indexOf('&', done);
  }
  return decoded + text.slice(done);
}

function byCode(decimal: string | undefined, hex: string | undefined): string {
  const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  if (!isCharacter) throw new XmlError('a reference to no character');
  return String.fromCodePoint(code);
}

function byName(entity: string): string {
  const character = Object.hasOwn(ENTITIES, entity) ? ENTITIES[entity] : undefined;
  if (character === undefined) throw new XmlError(`an unknown entity ${entity}`);
  return character;
}
