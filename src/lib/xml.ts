// Reads small XML documents strictly: what is not well-formed is refused, and nothing is altered on the way. Text is
// text (no numbers, no trimming), line ends are normalised and references decoded as XML 1.0 says; references to
// control characters are taken as XML 1.1 does, because keys may hold them. DOCTYPE is refused, so nothing expands.
// Namespace prefixes are cut off and not resolved. fast-xml-parser builds the tree; since it lets through much that is
// no XML, a check of our own goes before it, and our own decoding of references after it.
import { XMLParser } from 'fast-xml-parser';
import { assert } from './assert.ts';
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

/** A node as the library gives it: one property bears its name, and holds the nodes inside in their order. */
interface ParsedNode {
  readonly '#text'?: string;
  readonly '#cdata'?: readonly ParsedNode[];
  readonly ':@'?: Readonly<Record<string, string>>;
  readonly [name: string]: unknown;
}

/** Tags, attributes, comments and the like: they make the library slow (0.2 s). The longest part list has 80,000. */
const MARKUP_COUNT_MAX = 200_000;

const library = new XMLParser({
  // Node by node: without it siblings are regrouped by name, and it takes a third longer.
  preserveOrder: true,
  // On the third level, where the long lists have their texts, what an element holds is cut out whole, markup and all.
  // Elsewhere the library gathers text character by character, which takes fifteen times as long.
  stopNodes: ['*.*.*'],
  // Apart from text, because a `&` in it is only that.
  cdataPropName: '#cdata',
  // Ends the text before it, so that no reference reaches across a comment.
  commentPropName: '#comment',
  removeNSPrefix: true,
  ignoreAttributes: false,
  attributeNamePrefix: '',
  processEntities: false,
  // Else it makes a decoder for each document, and asks it for nothing.
  entityDecoder: {
    setExternalEntities() {},
    addInputEntities() {},
    reset() {},
    setXmlVersion() {},
    decode: (text) => text,
  },
  parseTagValue: false,
  trimValues: false,
  // Undefined means: as it is, without a look at it.
  tagValueProcessor: () => undefined,
  // Names are kept. It refuses three, `__proto__`, `constructor` and `prototype`, which no document here has.
  onDangerousProperty: (name) => name,
  maxNestedTags: Number.POSITIVE_INFINITY,
  // Otherwise the path of every node is written out.
  jPath: false,
});

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();
const SPACE = '[ \\t\\n]';
// A name ends at white space, JavaScript's as in the library, and at any ASCII mark but `-`, `.` and `_`.
const NAME_PART = '[^\\s!-@[-^`{-\\x7f][^\\s!-,/:-@[-^`{-\\x7f]*';
const NAME = `${NAME_PART}(?::${NAME_PART})?`;
const VALUE = `${SPACE}*=${SPACE}*(?:"[^"<]*"|'[^'<]*')`;
const START_TAG = new RegExp(`<(${NAME})((?:${SPACE}+${NAME}${VALUE})*)${SPACE}*(/?)>`, 'y');
const ATTRIBUTE = new RegExp(`(${NAME})${VALUE}`, 'g');
const END_TAG = new RegExp(`</(${NAME})${SPACE}*>`, 'y');
const INSTRUCTION = new RegExp(`<\\?(?!xml[ \\t\\n?])${NAME}(?:${SPACE}.*?)?\\?>`, 'isy');
const COMMENT = /<!--.*?--(>?)/sy;
const CHARACTER_DATA = /<!\[CDATA\[.*?\]\]>/sy;
/** With nothing captured: a `&` that begins none. */
const REFERENCE = /&(?:#(\d{1,7});|#x([0-9a-fA-F]{1,6});|(\w+);)?/g;
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML 1.0 does not allow as themselves
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/;
const DECLARATION =
  /^<\?xml[ \t\n]+version[ \t\n]*=[ \t\n]*(?:"1\.\d"|'1\.\d')(?:[ \t\n]+encoding[ \t\n]*=[ \t\n]*(?:"(?<double>[\w.-]+)"|'(?<single>[\w.-]+)'))?(?:[ \t\n]+standalone[ \t\n]*=[ \t\n]*(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\n]*\?>/;

/** The root element. Throws {@link XmlError} for anything but one well-formed document in UTF-8. */
export function parseXml(bytes: Uint8Array, options: { depthMax: number }): XmlElement {
  const nodes = parseChecked(new Check(decode(bytes), options.depthMax).run());
  const root = nodes.find((node) => !nameOf(node).startsWith('#'));
  assert(root !== undefined, 'a checked document has a root element');
  return toElement(root);
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

/** One pass over a document, which refuses what is not well-formed. References are checked where they are decoded. */
class Check {
  readonly #text: string;
  readonly #depthMax: number;
  /** The names of the open tags, with their prefixes: end tags must repeat them. */
  readonly #open: string[] = [];
  #hasRoot = false;
  #markupCount = 0;
  #at = 0;
  /** What the library is to read, up to `#keptFrom`. */
  #kept = '';
  #keptFrom = 0;

  constructor(text: string, depthMax: number) {
    this.#text = text;
    this.#depthMax = depthMax;
  }

  /** The document for the library: without the declaration, and with empty comments in place of instructions. */
  run(): string {
    this.#cutDeclaration();
    while (this.#at < this.#text.length) {
      const next = this.#text.indexOf('<', this.#at);
      this.#checkText(next === -1 ? this.#text.length : next);
      if (next !== -1) this.#checkMarkup();
    }
    if (!this.#hasRoot || this.#open.length > 0) throw new XmlError('the document is not complete');
    return this.#kept + this.#text.slice(this.#keptFrom);
  }

  #cutDeclaration(): void {
    if (!/^<\?xml[ \t\n?]/.test(this.#text)) return;
    const found = DECLARATION.exec(this.#text);
    if (found === null) throw new XmlError('a malformed XML declaration');
    const encoding = found.groups?.double ?? found.groups?.single ?? 'UTF-8';
    if (!/^(?:utf-?8|us-ascii)$/i.test(encoding)) throw new XmlError('not declared as UTF-8');
    this.#at = found[0].length;
    this.#keptFrom = this.#at;
  }

  #checkText(end: number): void {
    if (end === this.#at) return;
    const text = this.#text.slice(this.#at, end);
    this.#at = end;
    const isAllowed = this.#open.length === 0 ? !/[^ \t\n]/.test(text) : !text.includes(']]>');
    if (!isAllowed) throw new XmlError('text outside of the root element, or "]]>" in text');
  }

  #checkMarkup(): void {
    this.#countMarkup();
    const second = this.#text[this.#at + 1];
    if (second === '/') this.#checkEndTag();
    else if (second === '?') this.#cutInstruction();
    else if (second !== '!') this.#checkStartTag();
    else if (this.#text.startsWith('<!--', this.#at)) this.#checkComment();
    else if (this.#open.length > 0) this.#match(CHARACTER_DATA);
    else throw new XmlError('a declaration');
  }

  #checkStartTag(): void {
    const [, name = '', attributes = '', slash] = this.#match(START_TAG);
    if (this.#open.length === 0 && this.#hasRoot) throw new XmlError('more than one root element');
    this.#hasRoot = true;
    if (attributes !== '') this.#checkAttributes(attributes);
    if (slash === '/') return;
    this.#open.push(name);
    if (this.#open.length > this.#depthMax) throw new XmlError('too deep');
  }

  #checkAttributes(attributes: string): void {
    const names = new Set<string>();
    for (const [, name = ''] of attributes.matchAll(ATTRIBUTE)) {
      if (names.has(name)) throw new XmlError(`more than one attribute ${name}`);
      names.add(name);
      this.#countMarkup();
    }
  }

  #checkEndTag(): void {
    const [, name] = this.#match(END_TAG);
    if (name !== this.#open.pop()) throw new XmlError('a wrong end tag');
  }

  #checkComment(): void {
    const [, end] = this.#match(COMMENT);
    if (end !== '>') throw new XmlError('"--" in a comment');
  }

  /** The library takes an apostrophe in an instruction for the begin of a value. */
  #cutInstruction(): void {
    const start = this.#at;
    this.#match(INSTRUCTION);
    this.#kept += `${this.#text.slice(this.#keptFrom, start)}<!---->`;
    this.#keptFrom = this.#at;
  }

  #match(pattern: RegExp): RegExpExecArray {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) throw new XmlError('malformed markup');
    this.#at = pattern.lastIndex;
    return found;
  }

  #countMarkup(): void {
    this.#markupCount += 1;
    if (this.#markupCount > MARKUP_COUNT_MAX) throw new XmlError('too much markup');
  }
}

function parseChecked(text: string): readonly ParsedNode[] {
  try {
    return library.parse(text);
  } catch (cause) {
    throw new XmlError('the library refuses it', { cause });
  }
}

function toElement(node: ParsedNode): XmlElement {
  const name = nameOf(node);
  const element: XmlElement = { name, attributes: toAttributes(node[':@']), text: '', children: [] };
  fill(element, node[name] as readonly ParsedNode[]);
  return element;
}

function fill(element: XmlElement, nodes: readonly ParsedNode[]): void {
  for (const node of nodes) {
    const kind = nameOf(node);
    if (kind === '#cdata') element.text += node['#cdata']?.[0]?.['#text'] ?? '';
    else if (kind === '#text') fillWithText(element, node['#text'] ?? '');
    else if (kind !== '#comment') element.children.push(toElement(node));
  }
}

/** Text, or what an element of the third level holds: only there can a `<` be in it. */
function fillWithText(element: XmlElement, text: string): void {
  if (!text.includes('<')) element.text += decodeReferences(text);
  else fill(element, parseChecked(`<a>${text}</a>`)[0]?.a as readonly ParsedNode[]);
}

function nameOf(node: ParsedNode): string {
  return Object.keys(node)[0] ?? '';
}

function toAttributes(values: ParsedNode[':@']): ReadonlyMap<string, string> {
  if (values === undefined) return NO_ATTRIBUTES;
  return new Map(
    Object.entries(values).map(([name, value]) => [name, decodeReferences(value.replace(/[\t\n]/g, ' '))]),
  );
}

function decodeReferences(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(REFERENCE, (_, decimal?: string, hex?: string, entity?: string) =>
    entity === undefined ? byCode(decimal, hex) : byName(entity),
  );
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
