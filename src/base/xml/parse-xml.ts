// Reads XML documents strictly: what is not well-formed is refused, and nothing is altered on the way. Text is text (no
// numbers, no trimming), line ends are normalised and references decoded as XML 1.0 says; references to control
// characters are taken as XML 1.1 does, because keys may hold them. DOCTYPE is refused, so nothing expands. Namespace
// prefixes are cut off and not resolved. One pass reads and refuses: it goes on where it was, so that a long document is
// read in short steps, and it ends at the first fault. Every search either takes in what it has passed or ends in an
// error, so the time is linear in the length, whatever the document holds.
import { finishAtOnce, type Steps } from '../async/steps.ts';

/** The document is not well-formed, or not what the reader asked for: 400 MalformedXML at the edge. */
export class XmlError extends Error {
  override name = 'XmlError';
}

export interface XmlElement {
  /** Without its namespace prefix. */
  readonly name: string;
  /** By name without prefix; namespace declarations are left out. */
  readonly attributes: ReadonlyMap<string, string>;
  /** The character data directly inside, in one piece and untrimmed; white space between children is left out. */
  text: string;
  readonly children: XmlElement[];
}

/** What a document may hold; it is refused at the first place where it holds more. */
export interface XmlBounds {
  depthMax: number;
  /** Elements, attributes, comments, instructions and CDATA sections. Default 100,000. */
  nodesMax?: number;
  /** Attributes of one element. Default 32. */
  attributesMax?: number;
  /** UTF-16 units of one element's text, of a run of white space, and of an attribute. Default 64 Ki. */
  textUnitsMax?: number;
}

const DEFAULT_BOUNDS = { nodesMax: 100_000, attributesMax: 32, textUnitsMax: 64 * 1024 };
const NAME_UNITS_MAX = 256;
/** `#x10ffff` and `#1114111`, and what is between `&` and `;` in general. */
const REFERENCE_UNITS_MAX = 8;
const DECLARATION_UNITS_MAX = 256;
/** Bytes that are decoded in one step. */
const DECODE_BYTES = 256 * 1024;
/** Work of one step, about 1 ms: characters, and so many of them for what makes an object. */
const STEP_WORK = 32 * 1024;
const NODE_WORK = 32;

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();
// A name ends at white space, JavaScript's, and at any ASCII mark but `-`, `.` and `_`.
const NAME_PART = '[^\\s!-@[-^`{-\\x7f][^\\s!-,/:-@[-^`{-\\x7f]*';
const NAME = new RegExp(`${NAME_PART}(?::${NAME_PART})?`, 'y');
const NOT_BLANK = /[^ \t\n\r]/;
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['lt', '<'],
  ['gt', '>'],
  ['amp', '&'],
  ['quot', '"'],
  ['apos', "'"],
]);
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML 1.0 does not allow as themselves
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/;
const DECLARATION =
  /^<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:"1\.\d"|'1\.\d')(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(?:"(?<double>[\w.-]+)"|'(?<single>[\w.-]+)'))?(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\r\n]*\?>$/;

/** The root element, read in one go. Throws {@link XmlError} for anything but one well-formed document in UTF-8. */
export function parseXml(bytes: Uint8Array, bounds: XmlBounds): XmlElement {
  return finishAtOnce(parseXmlInSteps(bytes, bounds));
}

/** As {@link parseXml}, in steps of about 1 ms; documents of a few KiB take one step. */
export function* parseXmlInSteps(bytes: Uint8Array, bounds: XmlBounds): Steps<XmlElement> {
  const reader = new Reader(yield* decode(bytes), { ...DEFAULT_BOUNDS, ...bounds });
  for (let dueAt = STEP_WORK; reader.readNext(); ) {
    if (reader.work < dueAt) continue;
    dueAt = reader.work + STEP_WORK;
    yield;
  }
  return reader.root();
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

/** All children of that name, in their order. */
export function childrenOf(parent: XmlElement, name: string): XmlElement[] {
  return parent.children.filter((child) => child.name === name);
}

/** The text of the only child of that name. Throws {@link XmlError} when it is repeated or holds elements. */
export function textOf(parent: XmlElement, name: string): string | undefined {
  const child = childOf(parent, name);
  if (child !== undefined && child.children.length > 0) throw new XmlError(`${name} holds elements`);
  return child?.text;
}

function* decode(bytes: Uint8Array): Steps<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  for (let at = 0; ; ) {
    const end = Math.min(bytes.length, at + DECODE_BYTES);
    const isLast = end === bytes.length;
    const piece = decodePiece(decoder, bytes.subarray(at, end), isLast);
    if (FORBIDDEN.test(piece)) throw new XmlError('a control character');
    text += piece;
    if (isLast) return text;
    at = end;
    yield;
  }
}

function decodePiece(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array, isLast: boolean): string {
  try {
    return decoder.decode(bytes, { stream: !isLast });
  } catch {
    throw new XmlError('not UTF-8');
  }
}

/** An element whose end tag has not come. */
interface OpenElement {
  readonly element: XmlElement;
  /** With its prefix: the end tag must repeat it. */
  readonly tag: string;
  /** It has text that is not white space. */
  hasText: boolean;
}

/** Reads a document from tag to tag. */
class Reader {
  /** Characters looked at, and {@link NODE_WORK} for each node. */
  work = 0;
  readonly #text: string;
  readonly #bounds: Required<XmlBounds>;
  readonly #open: OpenElement[] = [];
  #root: XmlElement | undefined;
  #nodeCount = 0;
  #at = 0;

  constructor(text: string, bounds: Required<XmlBounds>) {
    this.#text = text;
    this.#bounds = bounds;
    if (/^<\?xml[ \t\r\n?]/.test(text)) this.#readDeclaration();
  }

  /** Reads text up to the next tag, or that tag; false at the end of the document. */
  readNext(): boolean {
    const text = this.#text;
    if (this.#at >= text.length) return false;
    if (text[this.#at] !== '<') this.#readText();
    else if (text[this.#at + 1] === '/') this.#readEndTag();
    else this.#readNode();
    return true;
  }

  root(): XmlElement {
    if (this.#root === undefined || this.#open.length > 0) throw new XmlError('the document is not complete');
    return this.#root;
  }

  #readDeclaration(): void {
    const end = this.#find('?>', 'a malformed XML declaration') + 2;
    const found = end <= DECLARATION_UNITS_MAX ? DECLARATION.exec(this.#text.slice(0, end)) : null;
    if (found === null) throw new XmlError('a malformed XML declaration');
    const encoding = found.groups?.double ?? found.groups?.single ?? 'UTF-8';
    if (!/^(?:utf-?8|us-ascii)$/i.test(encoding)) throw new XmlError('not declared as UTF-8');
    this.#at = end;
  }

  #readText(): void {
    const next = this.#text.indexOf('<', this.#at);
    const end = next === -1 ? this.#text.length : next;
    this.work += end - this.#at;
    this.#requireShort(end - this.#at);
    const piece = this.#text.slice(this.#at, end);
    this.#at = end;
    const open = this.#open.at(-1);
    if (open === undefined) {
      if (NOT_BLANK.test(piece)) throw new XmlError('text outside of the root element');
      return;
    }
    if (piece.includes(']]>')) throw new XmlError('"]]>" in text');
    this.#addText(open, piece, decodeReferences);
  }

  #addText(open: OpenElement, piece: string, read: (text: string) => string): void {
    if (NOT_BLANK.test(piece)) open.hasText = true;
    else if (open.element.children.length > 0) return;
    open.element.text += read(piece.includes('\r') ? piece.replace(/\r\n?/g, '\n') : piece);
    this.#requireShort(open.element.text.length);
  }

  #readNode(): void {
    this.#countNode();
    const second = this.#text[this.#at + 1];
    if (second === '?') this.#readInstruction();
    else if (second !== '!') this.#readStartTag();
    else if (this.#text.startsWith('<!--', this.#at)) this.#readComment();
    else if (this.#text.startsWith('<![CDATA[', this.#at)) this.#readCharacterData();
    else throw new XmlError('a declaration');
  }

  #readStartTag(): void {
    this.#at += 1;
    const tag = this.#readName();
    const parent = this.#open.at(-1);
    if (parent === undefined && this.#root !== undefined) throw new XmlError('more than one root element');
    const attributes = this.#readAttributes();
    const isEmpty = this.#text[this.#at] === '/';
    if (isEmpty) this.#at += 1;
    this.#require('>');
    const element: XmlElement = { name: withoutPrefix(tag), attributes, text: '', children: [] };
    this.#root ??= element;
    if (parent !== undefined) {
      if (!parent.hasText) parent.element.text = '';
      parent.element.children.push(element);
    }
    if (isEmpty) return;
    this.#open.push({ element, tag, hasText: false });
    if (this.#open.length > this.#bounds.depthMax) throw new XmlError('too deep');
  }

  /** Up to the end of the tag. */
  #readAttributes(): ReadonlyMap<string, string> {
    let names: Set<string> | undefined;
    let attributes: Map<string, string> | undefined;
    for (;;) {
      const isApart = this.#skipBlanks() > 0;
      const next = this.#text[this.#at];
      if (next === '>' || next === '/') return attributes ?? NO_ATTRIBUTES;
      if (!isApart) throw new XmlError('malformed markup');
      this.#countNode();
      const name = this.#readName();
      names ??= new Set();
      if (names.has(name)) throw new XmlError(`more than one attribute ${name}`);
      names.add(name);
      if (names.size > this.#bounds.attributesMax) throw new XmlError('too many attributes');
      this.#skipBlanks();
      this.#require('=');
      this.#skipBlanks();
      const value = this.#readValue();
      if (name === 'xmlns' || name.startsWith('xmlns:')) continue;
      attributes ??= new Map();
      attributes.set(withoutPrefix(name), value);
    }
  }

  #readValue(): string {
    const quote = this.#text[this.#at] ?? '';
    if (quote !== '"' && quote !== "'") throw new XmlError('malformed markup');
    this.#at += 1;
    const end = this.#find(quote, 'malformed markup');
    const value = this.#text.slice(this.#at, end);
    this.#requireShort(value.length);
    if (value.includes('<')) throw new XmlError('"<" in an attribute');
    this.#at = end + 1;
    return decodeReferences(value.replace(/\r\n|[\t\n\r]/g, ' '));
  }

  #readEndTag(): void {
    this.#at += 2;
    const tag = this.#readName();
    this.#skipBlanks();
    this.#require('>');
    if (tag !== this.#open.pop()?.tag) throw new XmlError('a wrong end tag');
  }

  #readComment(): void {
    this.#at += 4;
    this.#at = this.#find('--', 'an open comment') + 2;
    this.#require('>');
  }

  #readCharacterData(): void {
    const open = this.#open.at(-1);
    if (open === undefined) throw new XmlError('text outside of the root element');
    this.#at += 9;
    const end = this.#find(']]>', 'an open CDATA section');
    this.#requireShort(end - this.#at);
    this.#addText(open, this.#text.slice(this.#at, end), (text) => text);
    this.#at = end + 3;
  }

  #readInstruction(): void {
    this.#at += 2;
    const name = this.#readName();
    if (name.toLowerCase() === 'xml') throw new XmlError('an XML declaration inside of the document');
    const isApart = this.#skipBlanks() > 0;
    const end = this.#find('?>', 'an open instruction');
    if (!isApart && end !== this.#at) throw new XmlError('malformed markup');
    this.#at = end + 2;
  }

  #readName(): string {
    NAME.lastIndex = this.#at;
    if (!NAME.test(this.#text)) throw new XmlError('malformed markup');
    const from = this.#at;
    this.#at = NAME.lastIndex;
    this.work += this.#at - from;
    if (this.#at - from > NAME_UNITS_MAX) throw new XmlError('a long name');
    return this.#text.slice(from, this.#at);
  }

  /** How many there were. */
  #skipBlanks(): number {
    const from = this.#at;
    while (isBlank(this.#text.charCodeAt(this.#at))) this.#at += 1;
    const count = this.#at - from;
    this.work += count;
    this.#requireShort(count);
    return count;
  }

  /** Where `needle` begins, from here on. */
  #find(needle: string, fault: string): number {
    const at = this.#text.indexOf(needle, this.#at);
    this.work += (at === -1 ? this.#text.length : at) - this.#at;
    if (at === -1) throw new XmlError(fault);
    return at;
  }

  #require(character: string): void {
    if (this.#text[this.#at] !== character) throw new XmlError('malformed markup');
    this.#at += 1;
  }

  #requireShort(units: number): void {
    if (units > this.#bounds.textUnitsMax) throw new XmlError('a long text');
  }

  #countNode(): void {
    this.#nodeCount += 1;
    this.work += NODE_WORK;
    if (this.#nodeCount > this.#bounds.nodesMax) throw new XmlError('too many elements');
  }
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function withoutPrefix(name: string): string {
  const colon = name.indexOf(':');
  return colon === -1 ? name : name.slice(colon + 1);
}

/** Ends at the first that is none. */
function decodeReferences(text: string): string {
  let decoded = '';
  let from = 0;
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', from)) {
    const reference = text.slice(at + 1, at + 2 + REFERENCE_UNITS_MAX);
    const end = reference.indexOf(';');
    if (end === -1) throw new XmlError('a "&" that begins no reference');
    decoded += text.slice(from, at) + characterOf(reference.slice(0, end));
    from = at + 2 + end;
  }
  return from === 0 ? text : decoded + text.slice(from);
}

function characterOf(reference: string): string {
  if (!reference.startsWith('#')) {
    const character = ENTITIES.get(reference);
    if (character === undefined) throw new XmlError('an unknown entity');
    return character;
  }
  const [, decimal, hex] = /^#(?:(\d{1,7})|x([0-9a-fA-F]{1,6}))$/.exec(reference) ?? [];
  const code = decimal === undefined ? Number.parseInt(hex ?? '0', 16) : Number(decimal);
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  if (!isCharacter) throw new XmlError('a reference to no character');
  return String.fromCodePoint(code);
}
