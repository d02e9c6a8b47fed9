// What parameters of an action must be, and their values once they are: one rule for each, by which the form is read as a
// whole. What is wrong is said in AWS's words, all of it at once.
import { AppError } from '../../types/errors.ts';
import type { SentParameters } from './sent-parameters.ts';

/** Where a value stands: as it was sent, and as messages name it. */
interface Place {
  readonly sent: SentParameters;
  /** `Tags.member.1.Key` */
  readonly name: string;
  /** `tags.1.member.key` */
  readonly at: string;
}

export interface Rule<T> {
  /** Adds what is wrong to the problems; what it gives then is not used. */
  read(place: Place, problems: Problems): T;
}

export type Rules = Readonly<Record<string, Rule<unknown>>>;
/** The values of parameters, by name. */
export type ValuesOf<R extends Rules> = {
  readonly [Name in keyof R]: R[Name] extends Rule<infer T> ? T : never;
};

interface Problems {
  /** Members that do not satisfy a constraint of the model. */
  readonly constraints: string[];
  /** What AWS says in other words, and only if no constraint is broken. */
  readonly others: string[];
}

/** Throws ValidationError. */
export function readValues<R extends Rules>(rules: R, sent: SentParameters): ValuesOf<R> {
  const problems: Problems = { constraints: [], others: [] };
  const values = readMembers(rules, { sent, problems, name: (name) => name, at: (name) => name });
  const { constraints, others } = problems;
  if (constraints.length > 0) {
    const count = constraints.length === 1 ? '1 validation error' : `${constraints.length} validation errors`;
    throw validationError(`${count} detected: ${constraints.join('; ')}`);
  }
  if (others[0] !== undefined) throw validationError(others[0]);
  return values;
}

export function validationError(message: string): AppError {
  return new AppError('ValidationError', { message });
}

/** The error for one value, as readValues has it; for what only the action can see. */
export function constraintError(parameter: string, value: string | undefined, constraint: string): AppError {
  return validationError(`1 validation error detected: ${broken(toAt(parameter), { value, constraint })}`);
}

function readMembers<R extends Rules>(
  rules: R,
  {
    sent,
    problems,
    name,
    at,
  }: { sent: SentParameters; problems: Problems; name(member: string): string; at(member: string): string },
): ValuesOf<R> {
  const entries = Object.entries(rules).map(([member, rule]) => [
    member,
    rule.read({ sent, name: name(member), at: at(toAt(member)) }, problems),
  ]);
  return Object.fromEntries(entries);
}

function toAt(parameter: string): string {
  return parameter.charAt(0).toLowerCase() + parameter.slice(1);
}

function broken(
  at: string,
  { value, constraint }: { value?: string | undefined; constraint: string },
): string {
  const shown = value === undefined ? 'Value' : value === NULL ? 'Value null' : `Value '${value}'`;
  return `${shown} at '${at}' failed to satisfy constraint: Member must ${constraint}`;
}

/** Cannot be sent. */
const NULL = '\u0000null';

interface TextOptions {
  readonly charactersMin?: number;
  readonly charactersMax: number;
  /** Of the whole text. */
  readonly pattern?: RegExp;
  /** How AWS refuses what does not fit the pattern, where it has words of its own. */
  patternMessage?(at: string): string;
  /** Is not repeated. */
  readonly isSecret?: boolean;
}

export function text(options: TextOptions): Rule<string | undefined> {
  const { charactersMin = 1, charactersMax, pattern, patternMessage, isSecret = false } = options;
  return {
    read({ sent, name, at }, { constraints, others }) {
      const value = sent.get(name);
      if (value === undefined) return undefined;
      const shown = isSecret ? undefined : value;
      const fail = (constraint: string) => constraints.push(broken(at, { value: shown, constraint }));
      if (value.length > charactersMax) fail(`have length less than or equal to ${charactersMax}`);
      else if (value.length < charactersMin) fail(`have length greater than or equal to ${charactersMin}`);
      else if (pattern !== undefined && !pattern.test(value)) {
        if (patternMessage !== undefined) others.push(patternMessage(at));
        else fail(`satisfy regular expression pattern: ${sourceOf(pattern)}`);
      }
      return value;
    },
  };
}

/** Without what makes it one of the whole text. */
function sourceOf(pattern: RegExp): string {
  return pattern.source.replace(/^\^|\$$/g, '').replaceAll('\\/', '/');
}

export function integer({ min, max }: { min: number; max: number }): Rule<number | undefined> {
  return {
    read({ sent, name, at }, { constraints }) {
      const value = sent.get(name);
      if (value === undefined) return undefined;
      const fail = (constraint: string) => constraints.push(broken(at, { value, constraint }));
      const number = /^-?\d{1,15}$/.test(value) ? Number(value) : undefined;
      if (number === undefined) fail('be an integer');
      else if (number < min) fail(`have value greater than or equal to ${min}`);
      else if (number > max) fail(`have value less than or equal to ${max}`);
      return number;
    },
  };
}

export const boolean: Rule<boolean | undefined> = {
  read({ sent, name, at }, { constraints }) {
    const value = sent.get(name)?.toLowerCase();
    if (value === undefined) return undefined;
    if (value !== 'true' && value !== 'false') {
      constraints.push(broken(at, { value: sent.get(name), constraint: 'be a boolean' }));
    }
    return value === 'true';
  },
};

export function choice<const T extends string>(values: readonly T[]): Rule<T | undefined> {
  return {
    read({ sent, name, at }, { constraints }) {
      const value = sent.get(name);
      if (value === undefined) return undefined;
      const known = values.find((each) => each === value);
      if (known === undefined) {
        const constraint = `satisfy enum value set: [${values.join(', ')}]`;
        constraints.push(broken(at, { value, constraint }));
      }
      return known;
    },
  };
}

/** The value must be there. */
export function required<T>(rule: Rule<T>): Rule<NonNullable<T>> {
  return {
    read(place, problems) {
      const value = rule.read(place, problems);
      const isSent = place.sent.has(place.name) || (Array.isArray(value) && value.length > 0);
      if (!isSent) problems.constraints.push(broken(place.at, { value: NULL, constraint: 'not be null' }));
      return value as NonNullable<T>;
    },
  };
}

/** The value of a parameter of another name than the rule has: for rows that are one for users, groups and roles. */
export function named<T>(parameter: string, rule: Rule<T>): Rule<T> {
  return {
    read: ({ sent }, problems) => rule.read({ sent, name: parameter, at: toAt(parameter) }, problems),
  };
}

/** What stands for a value that is not sent. */
export function orElse<T>(rule: Rule<T | undefined>, value: T): Rule<T> {
  return { read: (place, problems) => rule.read(place, problems) ?? value };
}

/** A list of values, as `TagKeys.member.1`; undefined: none is sent. SDKs send an empty list as an empty text. */
export function list<T>(
  rule: Rule<T>,
  { countMax }: { countMax: number },
): Rule<NonNullable<T>[] | undefined> {
  const item = required(rule);
  return {
    read: (place, problems) =>
      readItems(place, { countMax, problems, read: (itemPlace) => item.read(itemPlace, problems) }),
  };
}

/** A list of structures, as `Tags.member.1.Key`. */
export function structures<R extends Rules>(
  rules: R,
  { countMax }: { countMax: number },
): Rule<ValuesOf<R>[] | undefined> {
  return {
    read: (place, problems) =>
      readItems(place, {
        countMax,
        problems,
        read: ({ sent, name, at }) =>
          readMembers(rules, {
            sent,
            problems,
            name: (member) => `${name}.${member}`,
            at: (member) => `${at}.${member}`,
          }),
      }),
  };
}

/** One structure, as `InlinePolicyIdentifier.PolicyName`; undefined: none of its members is sent. */
export function nested<R extends Rules>(rules: R): Rule<ValuesOf<R> | undefined> {
  return {
    read({ sent, name, at }, problems) {
      if (!namesOf(sent).parents.has(name)) return undefined;
      return readMembers(rules, {
        sent,
        problems,
        name: (member) => `${name}.${member}`,
        at: (member) => `${at}.${member}`,
      });
    },
  };
}

function readItems<T>(
  { sent, name, at }: Place,
  { countMax, problems, read }: { countMax: number; problems: Problems; read(place: Place): T },
): T[] | undefined {
  const prefix = `${name}.member.`;
  const numbers = namesOf(sent).items.get(name) ?? new Set();
  if (numbers.size === 0) return sent.get(name) === '' ? [] : undefined;
  if (numbers.size > countMax) {
    const constraint = `have length less than or equal to ${countMax}`;
    problems.constraints.push(broken(at, { constraint }));
    return [];
  }
  const inOrder = [...numbers].sort((a, b) => a - b);
  return inOrder.map((number) => read({ sent, name: `${prefix}${number}`, at: `${at}.${number}.member` }));
}

/** What the names of sent parameters say: found once for all lists and structures that are looked for, which may be thousands. */
interface SentNames {
  /** Names that others begin with, before a point: `Tags`, `Tags.member`, `Tags.member.1` of `Tags.member.1.Key`. */
  readonly parents: ReadonlySet<string>;
  /** By list, the numbers of its items. */
  readonly items: ReadonlyMap<string, ReadonlySet<number>>;
}

const namesOfSent = new WeakMap<SentParameters, SentNames>();
/** Of the parts of a name: no rule is about more. */
const PARTS_MAX = 8;

function namesOf(sent: SentParameters): SentNames {
  const known = namesOfSent.get(sent);
  if (known !== undefined) return known;
  const parents = new Set<string>();
  const items = new Map<string, Set<number>>();
  for (const sentName of sent.keys()) {
    const parts = sentName.split('.', PARTS_MAX);
    const isWhole = parts.join('.').length === sentName.length;
    for (const [at, part] of parts.entries()) {
      if (at < parts.length - 1 || !isWhole) parents.add(parts.slice(0, at + 1).join('.'));
      if (at < 2 || parts[at - 1] !== 'member' || !/^[1-9]\d{0,8}$/.test(part)) continue;
      const list = parts.slice(0, at - 1).join('.');
      const numbers = items.get(list) ?? new Set();
      items.set(list, numbers.add(Number(part)));
    }
  }
  const names = { parents, items };
  namesOfSent.set(sent, names);
  return names;
}
