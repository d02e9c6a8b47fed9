// The form of a policy document (AWS "Grammar of the IAM JSON policy language"): which elements there are, of which types, and
// each one once. What the elements say is checked behind it, by what the document is for.
import { findOperator, type NamedOperator } from '../conditions/operators.ts';
import { JsonFault, type JsonValue, placeOf, readJson } from './read-json.ts';
import { type DocumentType, type FormFault, formFault } from './wording.ts';

export type PolicyVersion = '2008-10-17' | '2012-10-17';

/** A text of the document, and where it stands there. */
export interface PlacedText {
  readonly text: string;
  readonly place: string;
}

/** An element that has a negated form, as Action and NotAction. */
export interface TextList {
  readonly isNot: boolean;
  readonly texts: readonly PlacedText[];
  readonly place: string;
}

export interface PrincipalList {
  readonly isNot: boolean;
  readonly names: readonly (PlacedText & { readonly type: string })[];
  readonly place: string;
}

export interface ConditionEntry {
  /** As the document has it. */
  readonly name: string;
  readonly operator: NamedOperator;
  readonly key: string;
  readonly values: readonly string[];
  readonly place: string;
}

export interface StatementForm {
  readonly index: number;
  readonly place: string;
  readonly sid: string | undefined;
  /** Allow or Deny in some case; documents of IAM must have it right as well. */
  readonly effect: string;
  readonly principals: PrincipalList | undefined;
  readonly actions: TextList | undefined;
  readonly resources: TextList | undefined;
  readonly conditions: readonly ConditionEntry[];
}

export interface DocumentForm {
  /** Of UTF-8, without the white space between tokens. */
  readonly sizeBytes: number;
  /** As the document says; undefined: it says nothing. */
  readonly version: PolicyVersion | undefined;
  readonly id: string | undefined;
  readonly statements: readonly StatementForm[];
}

const DOCUMENT_ELEMENTS = new Set(['Version', 'Id', 'Statement']);
const STATEMENT_ELEMENTS = new Set([
  'Sid',
  'Effect',
  'Principal',
  'NotPrincipal',
  'Action',
  'NotAction',
  'Resource',
  'NotResource',
  'Condition',
]);
const PRINCIPAL_TYPES = new Set(['AWS', 'CanonicalUser', 'Federated', 'Service']);

/** Throws DocumentFault. */
export function readDocument(text: string, type: DocumentType): DocumentForm {
  const { value, blanksCount } = readValue(text, type);
  const form = new DocumentReader(type).document(value);
  return { ...form, sizeBytes: Buffer.byteLength(text) - blanksCount };
}

function readValue(text: string, type: DocumentType): ReturnType<typeof readJson> {
  try {
    return readJson(text);
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    throw formFault(type, 'json', { place: placeOf(text, error.at) });
  }
}

type Members = ReadonlyMap<string, JsonValue>;

class DocumentReader {
  readonly #type: DocumentType;

  constructor(type: DocumentType) {
    this.#type = type;
  }

  document(value: JsonValue): Omit<DocumentForm, 'sizeBytes'> {
    const members = this.#members(value, 'document', DOCUMENT_ELEMENTS);
    const version = members.get('Version');
    const id = members.get('Id');
    return {
      version: version && this.#version(version),
      id: id && this.#text(id, 'Id'),
      statements: this.#statements(members.get('Statement')),
    };
  }

  #version(value: JsonValue): PolicyVersion {
    const text = value.kind === 'string' ? value.text : '';
    if (text === '2008-10-17' || text === '2012-10-17') return text;
    throw this.#fault('version', 'Version', text);
  }

  #statements(value: JsonValue | undefined): StatementForm[] {
    if (value === undefined) throw this.#fault('no-statement', 'document');
    const items = value.kind === 'array' ? value.items : [value];
    if (items.length === 0) throw this.#fault('empty-statement', 'Statement');
    const sids = new Set<string>();
    return items.map((item, index) => {
      const statement = this.#statement(item, index);
      const { sid } = statement;
      // IAM looks at this later, behind the form of all statements.
      if (this.#type === 'resource' && sid) {
        if (sids.has(sid)) throw this.#fault('sid-twice', `${statement.place}.Sid`, sid);
        sids.add(sid);
      }
      return statement;
    });
  }

  #statement(value: JsonValue, index: number): StatementForm {
    const place = `Statement[${index}]`;
    const members = this.#members(value, place, STATEMENT_ELEMENTS);
    const sid = members.get('Sid');
    const condition = members.get('Condition');
    return {
      index,
      place,
      sid: sid && this.#text(sid, `${place}.Sid`),
      effect: this.#effect(members.get('Effect'), `${place}.Effect`),
      principals: this.#principals(members, place),
      actions: this.#either(members, place, 'Action'),
      resources: this.#either(members, place, 'Resource'),
      conditions: condition === undefined ? [] : this.#conditions(condition, `${place}.Condition`),
    };
  }

  #effect(value: JsonValue | undefined, place: string): string {
    if (value === undefined) throw this.#fault('no-effect', place);
    const text = this.#text(value, place);
    if (text === 'Allow' || text === 'Deny') return text;
    const isInOtherCase = /^(?:allow|deny)$/i.test(text);
    if (!isInOtherCase || this.#type === 'resource') throw this.#fault('effect', place, text);
    return text;
  }

  /** An element or its negation, never both: a text or a list of them. */
  #either(members: Members, place: string, name: string): TextList | undefined {
    const [isNot, value] = this.#one(members, place, name);
    if (value === undefined) return undefined;
    const at = `${place}.${isNot ? 'Not' : ''}${name}`;
    return { isNot, texts: this.#texts(value, at), place: at };
  }

  #one(members: Members, place: string, name: string): readonly [isNot: boolean, JsonValue | undefined] {
    const value = members.get(name);
    const negated = members.get(`Not${name}`);
    if (value !== undefined && negated !== undefined) throw this.#fault('syntax', `${place}.Not${name}`);
    return [negated !== undefined, value ?? negated];
  }

  #principals(members: Members, place: string): PrincipalList | undefined {
    const [isNot, value] = this.#one(members, place, 'Principal');
    if (value === undefined) return undefined;
    const at = `${place}.${isNot ? 'Not' : ''}Principal`;
    if (value.kind === 'string') {
      if (value.text !== '*') throw this.#fault('principal-form', at, value.text);
      return { isNot, place: at, names: [{ type: 'AWS', text: '*', place: at }] };
    }
    const byType = this.#members(value, at, PRINCIPAL_TYPES);
    const names = [...byType].flatMap(([type, listed]) =>
      this.#texts(listed, `${at}.${type}`).map((text) => ({ ...text, type })),
    );
    return { isNot, place: at, names };
  }

  #conditions(value: JsonValue, place: string): ConditionEntry[] {
    return [...this.#members(value, place)].flatMap(([name, block]) => {
      const at = `${place}.${name}`;
      const keys = this.#members(block, at);
      const operator = findOperator(name);
      // IAM takes an operator that there is not, as long as nothing is asked of it.
      if (operator === undefined && (keys.size > 0 || this.#type === 'resource'))
        throw this.#fault('operator', at, name);
      if (operator === undefined) return [];
      return [...keys].map(([key, listed]) => {
        const keyPlace = `${at}.${key}`;
        return { name, operator, key, values: this.#values(listed, keyPlace), place: keyPlace };
      });
    });
  }

  /** Texts, numbers and truth values, one or a list. */
  #values(value: JsonValue, place: string): string[] {
    const items = value.kind === 'array' ? value.items : [value];
    return items.map((item) => {
      if (item.kind === 'string' || item.kind === 'number') return item.text;
      if (item.kind === 'boolean') return String(item.isTrue);
      throw this.#fault('syntax', place);
    });
  }

  #members(value: JsonValue, place: string, known?: ReadonlySet<string>): Members {
    if (value.kind !== 'object') throw this.#fault('syntax', place);
    if (known === undefined) return value.members;
    for (const name of value.members.keys()) {
      if (!known.has(name)) throw this.#fault('unknown', `${place}.${name}`, name);
    }
    return value.members;
  }

  #texts(value: JsonValue, place: string): PlacedText[] {
    if (value.kind !== 'array') return [{ text: this.#text(value, place), place }];
    return value.items.map((item, at) => {
      const itemPlace = `${place}[${at}]`;
      return { text: this.#text(item, itemPlace), place: itemPlace };
    });
  }

  #text(value: JsonValue, place: string): string {
    if (value.kind !== 'string') throw this.#fault('syntax', place);
    return value.text;
  }

  #fault(fault: FormFault, place: string, detail?: string) {
    return formFault(this.#type, fault, detail === undefined ? { place } : { place, detail });
  }
}
