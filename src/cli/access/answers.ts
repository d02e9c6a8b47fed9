// What answers of IAM and STS become for people and for scripts: tables, and JSON with the names that AWS gives.
import { Refusal } from '../../base/refusal.ts';
import { childOf, type XmlElement } from '../../base/xml/parse-xml.ts';
import type { CliContext, ConnectOptions } from '../connect.ts';
import { formatAnswer, formatForeign, formatTable } from '../format.ts';

/** Elements that are lists, so that an empty one is an empty list. */
const LISTS: ReadonlySet<string> = new Set([
  'AccessKeyMetadata',
  'AttachedPolicies',
  'EvaluationResults',
  'Groups',
  'MatchedStatements',
  'MFADevices',
  'MissingContextValues',
  'Policies',
  'PolicyNames',
  'Roles',
  'Tags',
  'Users',
  'Versions',
  'VirtualMFADevices',
]);

/** Elements that hold a document of a policy, encoded as in a URL. */
const DOCUMENTS: ReadonlySet<string> = new Set(['AssumeRolePolicyDocument', 'Document', 'PolicyDocument']);

export type Json = string | readonly Json[] | { readonly [name: string]: Json };

/** Texts, lists of `member`, and objects. */
export function jsonOf({ name, text, children }: XmlElement): Json {
  if (LISTS.has(name) || (children.length > 0 && children.every((child) => child.name === 'member')))
    return children.map(jsonOf);
  if (children.length === 0) return DOCUMENTS.has(name) ? documentOf(text) : text;
  return Object.fromEntries(children.map((child) => [child.name, jsonOf(child)]));
}

/** As it was given, byte for byte. */
export function documentOf(encoded: string): string {
  return decodeURIComponent(encoded);
}

/** The text of a child that may be missing or repeated by nobody. */
export function field(parent: XmlElement, name: string): string {
  return parent.children.find((child) => child.name === name)?.text ?? '';
}

export interface Told {
  readonly context: CliContext;
  readonly options: ConnectOptions;
}

/** A list: one row for each member, `-` where a field is empty. */
export function printList(
  { context, options }: Told,
  members: readonly XmlElement[],
  columns: Readonly<Record<string, string | ((member: XmlElement) => string)>>,
): void {
  const rows = members.map((member) =>
    Object.values(columns).map((column) => {
      const cell = typeof column === 'string' ? field(member, column) : column(member);
      return cell === '' ? '-' : formatForeign(cell);
    }),
  );
  const forPeople = () => formatTable([Object.keys(columns), ...rows]);
  context.print(formatAnswer(options, members.map(jsonOf), forPeople));
}

/** Named facts, one for each line; those without a text are left out. */
export function printFacts(
  { context, options }: Told,
  answer: object,
  rows: readonly (readonly [name: string, value: string])[],
): void {
  const told = rows.filter(([, value]) => value !== '').map(([name, value]) => [name, formatForeign(value)]);
  context.print(formatAnswer(options, answer, () => formatTable(told)));
}

/** What was done, where the answer has nothing else to tell. */
export function printDone({ context, options }: Told, sentence: string): void {
  context.print(options.json === true ? '{}' : sentence);
}

/** What each answer of the action has. */
export function requireElement(result: XmlElement, name: string): XmlElement {
  const element = childOf(result, name);
  if (element === undefined) throw new Refusal('the server did not answer as a Holdfast server does');
  return element;
}
