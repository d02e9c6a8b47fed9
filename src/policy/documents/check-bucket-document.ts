// What S3 asks of a bucket policy: principals, actions that there are, resources of this bucket, condition keys that there
// are, and that they go together. In S3's words.
import type { Steps } from '../../base/async/steps.ts';
import { ACTIONS, type ActionRow, type ResourceType } from '../actions.ts';
import { type ConditionKeyName, findConditionKey, normalizeKey } from '../condition-keys.ts';
import { NULL_OPERATOR } from '../conditions/operators.ts';
import { matchPattern, mayMatch, parsePattern } from '../patterns.ts';
import type { ConditionEntry, DocumentForm, StatementForm, TextList } from './read-document.ts';
import { DocumentFault, shorten } from './wording.ts';

/** service 4.6: not to be asked for by Null. */
const NOT_UNDER_NULL = normalizeKey('s3:x-amz-server-side-encryption-customer-algorithm');
const S3_ACTIONS = ACTIONS.filter(({ action }) => action.startsWith('s3:'));
const NO_VARIABLES = { hasVariables: false, hasWildcards: true };

/** To find the actions that one text means, and to judge its conditions, takes some 50 µs. */
const ACTIONS_OF_STEP = 100;

/** Behind the form. `bucket`: the name of the bucket that gets the policy. Throws DocumentFault. */
export function* checkBucketDocument(form: DocumentForm, { bucket }: { bucket: string }): Steps<void> {
  const checker = new BucketChecker(bucket, form.version === '2012-10-17');
  for (const statement of form.statements) yield* checker.check(statement);
}

class BucketChecker {
  readonly #arn: string;
  readonly #hasVariables: boolean;
  /** Patterns of actions by their text in lower case: large documents repeat them. */
  readonly #actions = new Map<string, readonly ActionRow[]>();
  /** Those that mean the same actions have the same list. By the actions' names. */
  readonly #lists = new Map<string, readonly ActionRow[]>();
  /** Actions looked at. */
  #count = 0;

  constructor(bucket: string, hasVariables: boolean) {
    this.#arn = `arn:aws:s3:::${bucket}`;
    this.#hasVariables = hasVariables;
  }

  *check(statement: StatementForm): Steps<void> {
    const { place, principals } = statement;
    if (principals === undefined) throw new DocumentFault('Missing required field Principal', { place });
    if (principals.names.length === 0) {
      const message = 'Missing required field Principal cannot be empty!';
      throw new DocumentFault(message, { place: principals.place });
    }
    if (principals.isNot && statement.effect === 'Allow')
      throw new DocumentFault('Allow with NotPrincipal is not allowed.', { place: principals.place });
    const actions = required(statement.actions, { place, name: 'Action' });
    const resources = required(statement.resources, { place, name: 'Resource' });
    const matched: (readonly ActionRow[])[] = [];
    for (const { text, place: at } of actions.texts) {
      matched.push(this.#actionsOf(text, at));
      if (this.#isStepDone()) yield;
    }
    const types = this.#typesOf(resources);
    for (const condition of statement.conditions) checkKey(condition);
    const groups = actions.isNot ? [othersThan(matched)] : matched;
    const checked = new Set<readonly ActionRow[]>();
    const conditions = conditionsOfS3(statement.conditions);
    for (const [at, rows] of groups.entries()) {
      // Other texts that mean the same actions are refused, or not, as the first of them.
      if (checked.has(rows)) continue;
      checked.add(rows);
      const applicable = rows.filter((row) => row.resources.some((type) => types.has(type)));
      if (applicable.length === 0) {
        const message = 'Action does not apply to any resource(s) in statement';
        throw new DocumentFault(message, { place: actions.texts[at]?.place ?? actions.place });
      }
      checkConditionsApply(conditions, applicable);
      if (this.#isStepDone()) yield;
    }
  }

  #isStepDone(): boolean {
    this.#count++;
    return this.#count % ACTIONS_OF_STEP === 0;
  }

  #actionsOf(text: string, place: string): readonly ActionRow[] {
    const folded = text.toLowerCase();
    const known = this.#actions.get(folded);
    if (known !== undefined) return known;
    const pattern = parsePattern(folded, NO_VARIABLES);
    const rows = S3_ACTIONS.filter(
      ({ action }) => matchPattern(pattern, action.toLowerCase(), () => undefined) === true,
    );
    if (rows.length === 0)
      throw new DocumentFault('Policy has invalid action', { place, detail: shorten(text) });
    const names = rows.map(({ action }) => action).join();
    const list = this.#lists.get(names) ?? rows;
    this.#lists.set(names, list);
    this.#actions.set(folded, list);
    return list;
  }

  /** What the resources of a statement are: the bucket, objects in it, or both. */
  #typesOf(resources: TextList): ReadonlySet<ResourceType> {
    const types = new Set<ResourceType>();
    for (const { text, place } of resources.texts) {
      const pattern = parsePattern(text, { hasVariables: this.#hasVariables, hasWildcards: true });
      const isBucket = mayMatch(pattern, this.#arn).itself;
      const below = mayMatch(pattern, `${this.#arn}/`);
      const isObject = below.itself || below.longer;
      if (!isBucket && !isObject)
        throw new DocumentFault('Policy has invalid resource', { place, detail: shorten(text) });
      if (isBucket) types.add('bucket');
      if (isObject) types.add('object');
    }
    return resources.isNot ? new Set(['bucket', 'object']) : types;
  }
}

function required(list: TextList | undefined, { place, name }: { place: string; name: string }): TextList {
  if (list === undefined || list.texts.length === 0)
    throw new DocumentFault(`Missing required field ${name}`, { place });
  return list;
}

/** Keys of S3 must be there; of the global ones AWS takes any, which then no request has. */
function checkKey({ name, key, place }: ConditionEntry): void {
  const normalized = normalizeKey(key);
  const isKnown = normalized.startsWith('aws:') || findConditionKey(normalized) !== undefined;
  const isOfS3 = normalized.startsWith('aws:') || normalized.startsWith('s3:');
  const isRefused = normalized === NOT_UNDER_NULL && name.endsWith(NULL_OPERATOR);
  if (!isKnown || !isOfS3 || isRefused)
    throw new DocumentFault('Policy has an invalid condition key', { place, detail: shorten(key) });
}

function othersThan(matched: readonly (readonly ActionRow[])[]): ActionRow[] {
  const named = new Set([...new Set(matched)].flat());
  return S3_ACTIONS.filter((row) => !named.has(row));
}

/** A condition with a key of S3. */
interface ConditionOfS3 {
  name: ConditionKeyName;
  condition: ConditionEntry;
}

/** The first condition with each key of S3, all tags being one: whether it applies is the same each time. */
function conditionsOfS3(conditions: readonly ConditionEntry[]): ConditionOfS3[] {
  const byName = new Map<string, ConditionOfS3>();
  for (const condition of conditions) {
    const name = findConditionKey(normalizeKey(condition.key))?.name;
    if (name?.startsWith('s3:') && !byName.has(name)) byName.set(name, { name, condition });
  }
  return [...byName.values()];
}

/** Of the actions that one pattern means, at least one must have each key of S3. */
function checkConditionsApply(conditions: readonly ConditionOfS3[], rows: readonly ActionRow[]): void {
  if (conditions.length === 0) return;
  const names = new Set(rows.flatMap(({ keys }) => keys));
  for (const { name, condition } of conditions) {
    if (names.has(name)) continue;
    const message = 'Conditions do not apply to combination of actions and resources in statement';
    throw new DocumentFault(message, { place: condition.place, detail: shorten(condition.key) });
  }
}
