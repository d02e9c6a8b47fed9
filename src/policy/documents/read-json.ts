// JSON with places: strict as RFC 8259 has it, no member twice, bounded in depth, each value with where it begins. JSON.parse
// keeps the last of two members silently and knows no places, and libraries that know them go deeper than the stack.

/** The longest way into a policy is 6 deep: document, Statement, statement, Condition, operator, list. */
const DEPTH_MAX = 16;

export type JsonValue =
  | {
      readonly kind: 'object';
      readonly at: number;
      /** Behind its brace. */
      readonly end: number;
      readonly members: ReadonlyMap<string, JsonValue>;
    }
  | { readonly kind: 'array'; readonly at: number; readonly items: readonly JsonValue[] }
  | { readonly kind: 'string'; readonly at: number; readonly text: string }
  /** As it is written. */
  | { readonly kind: 'number'; readonly at: number; readonly text: string }
  | { readonly kind: 'boolean'; readonly at: number; readonly isTrue: boolean }
  | { readonly kind: 'null'; readonly at: number };

/** Thrown where the text is no such JSON; `at`: the index of the first character that is wrong. */
export class JsonFault extends Error {
  override name = 'JsonFault';
  readonly at: number;

  constructor(reason: string, at: number) {
    super(reason);
    this.at = at;
  }
}

/** Both from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** The position of an index in words. */
export function placeOf(text: string, at: number): string {
  const lines = text.slice(0, at).split('\n');
  return `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
}

/** `blanksCount`: characters of white space between its tokens. */
export function readJson(text: string): { value: JsonValue; blanksCount: number } {
  const reader = new JsonReader(text);
  const value = reader.value(0);
  return { value, blanksCount: reader.end() };
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const BLANKS = /[ \t\n\r]*/y;
/** Up to what ends a string or needs a closer look. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these may not be in JSON's strings
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

class JsonReader {
  readonly #text: string;
  #at = 0;
  #blanksCount = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): JsonValue {
    this.#blanks();
    const at = this.#at;
    if (depth > DEPTH_MAX) throw new JsonFault('too deep', at);
    switch (this.#text[at]) {
      case '{':
        return this.#object(depth);
      case '[':
        return this.#array(depth);
      case '"':
        return { kind: 'string', at, text: this.#string() };
      case 't':
        return this.#word('true', { kind: 'boolean', at, isTrue: true });
      case 'f':
        return this.#word('false', { kind: 'boolean', at, isTrue: false });
      case 'n':
        return this.#word('null', { kind: 'null', at });
      default: {
        const text = this.#take(NUMBER);
        if (text === '') throw new JsonFault('no value', at);
        return { kind: 'number', at, text };
      }
    }
  }

  end(): number {
    this.#blanks();
    if (this.#at < this.#text.length) throw new JsonFault('more than one value', this.#at);
    return this.#blanksCount;
  }

  #blanks(): void {
    this.#blanksCount += this.#take(BLANKS).length;
  }

  #object(depth: number): JsonValue {
    const at = this.#at++;
    const members = new Map<string, JsonValue>();
    if (this.#skip('}')) return { kind: 'object', at, end: this.#at, members };
    do {
      this.#blanks();
      const nameAt = this.#at;
      const name = this.#string();
      if (members.has(name)) throw new JsonFault(`${name} twice`, nameAt);
      this.#expect(':');
      members.set(name, this.value(depth + 1));
    } while (this.#skip(','));
    this.#expect('}');
    return { kind: 'object', at, end: this.#at, members };
  }

  #array(depth: number): JsonValue {
    const at = this.#at++;
    const items: JsonValue[] = [];
    if (this.#skip(']')) return { kind: 'array', at, items };
    do {
      items.push(this.value(depth + 1));
    } while (this.#skip(','));
    this.#expect(']');
    return { kind: 'array', at, items };
  }

  /** Halves of surrogate pairs become U+FFFD: UTF-8 has none, so no request could have them. */
  #string(): string {
    const from = this.#at;
    if (this.#text[from] !== '"') throw new JsonFault('no string', from);
    this.#at++;
    let isPlain = true;
    for (;;) {
      this.#take(PLAIN);
      const character = this.#text[this.#at];
      if (character === '"') break;
      if (character !== '\\' || this.#take(ESCAPE) === '') throw new JsonFault('no string', this.#at);
      isPlain = false;
    }
    this.#at++;
    const text = isPlain
      ? this.#text.slice(from + 1, this.#at - 1)
      : String(JSON.parse(this.#text.slice(from, this.#at)));
    return text.toWellFormed();
  }

  #word(word: string, value: JsonValue): JsonValue {
    if (!this.#text.startsWith(word, this.#at)) throw new JsonFault('no value', this.#at);
    this.#at += word.length;
    return value;
  }

  #take(what: RegExp): string {
    what.lastIndex = this.#at;
    const [found = ''] = what.exec(this.#text) ?? [];
    this.#at += found.length;
    return found;
  }

  #skip(character: string): boolean {
    this.#blanks();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #expect(character: string): void {
    if (!this.#skip(character)) throw new JsonFault(`no ${character}`, this.#at);
  }
}
