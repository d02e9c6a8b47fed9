// From the text of a policy document to the form in which requests are judged by it. The text itself is the caller's to keep,
// byte for byte. Nothing here depends on the time or on a request, so a compiled policy may be kept as long as its text.
import { finishAtOnce, type Steps } from '../../base/async/steps.ts';
import { ownText } from '../../base/text/own-text.ts';
import { LIMITS } from '../../types/limits.ts';
import { familyOf } from '../condition-keys.ts';
import { type Condition, makeCondition } from '../conditions/condition.ts';
import { besideWork } from '../match-work.ts';
import { matchPattern, type Pattern, parsePattern } from '../patterns.ts';
import { makePrincipalSet, type PrincipalSet, parsePrincipal } from '../principals.ts';
import { checkBucketDocument } from './check-bucket-document.ts';
import { checkIdentityDocument, checkSids, checkVersion, legacyFault } from './check-identity-document.ts';
import { checkTrustDocument } from './check-trust-document.ts';
import { memoryOf } from './policy-memory.ts';
import {
  type ConditionEntry,
  type DocumentForm,
  type PolicyVersion,
  type PrincipalList,
  readDocument,
  type StatementForm,
  type TextList,
} from './read-document.ts';
import { DocumentFault, type DocumentType, formFault, shorten } from './wording.ts';

/** Sizes as AWS has them (IAM and AWS STS quotas; "Bucket policies"). */
export const POLICY_SIZES = {
  /** Characters without white space, of all inline policies of one entity together. */
  userInlineCharactersMax: 2048,
  groupInlineCharactersMax: 5120,
  roleInlineCharactersMax: 10_240,
  managedCharactersMax: 6144,
  trustCharactersMax: 2048,
  sessionCharactersMax: 2048,
  /** Bytes without white space between tokens. */
  bucketBytesMax: LIMITS.bucketPolicyBytesMax,
  /** Characters of any document as it comes, white space and all. Longer ones are not looked at. */
  documentCharactersMax: 131_072,
} as const;

/** Characters of a document as IAM counts them: without white space. */
export function countCharacters(text: string): number {
  return text.replace(/\s+/g, '').length;
}

/** So many times as long as it may be without white space a stored document is at most. AWS has no such bound. */
const BLANKS_FACTOR = 5;

/** Whether a document has so many characters at most, as IAM counts them, and is not made of white space for the rest. */
export function hasRoom(text: string, charactersMax: number): boolean {
  return text.length <= BLANKS_FACTOR * charactersMax && countCharacters(text) <= charactersMax;
}

export interface Statement {
  /** From 0, in the document. */
  readonly index: number;
  readonly sid: string | undefined;
  readonly effect: 'Allow' | 'Deny';
  readonly actions: { readonly isNot: boolean; readonly patterns: readonly Pattern[] };
  /** undefined: of a trust policy, which is about its role alone. */
  readonly resources: { readonly isNot: boolean; readonly patterns: readonly Pattern[] } | undefined;
  /** undefined: of a policy of an identity. */
  readonly principals: { readonly isNot: boolean; readonly set: PrincipalSet } | undefined;
  readonly conditions: readonly Condition[];
  /** Condition keys and variables that it looks at, normalized (condition-keys.ts). */
  readonly keys: ReadonlySet<string>;
  /** The same, families for keys of tags. */
  readonly families: ReadonlySet<string>;
}

/** The statements that are about one action. */
export interface ActionStatements {
  readonly allows: readonly Statement[];
  readonly denies: readonly Statement[];
}

export interface CompiledPolicy {
  readonly type: DocumentType;
  readonly version: PolicyVersion;
  readonly id: string | undefined;
  readonly statements: readonly Statement[];
  /** Of all statements. */
  readonly keys: ReadonlySet<string>;
  readonly families: ReadonlySet<string>;
  /** What it takes in memory, about. */
  readonly memoryBytes: number;
  /** Found once for each action that is asked about. */
  about(action: string): ActionStatements;
}

export type CompileOutcome =
  | { readonly kind: 'compiled'; readonly policy: CompiledPolicy }
  /** `message` in AWS's words. `place`: `Statement[0].Action`, or a line and column. `detail`: as S3's error names it. */
  | {
      readonly kind: 'malformed' | 'too-large';
      readonly message: string;
      readonly place: string;
      readonly detail: string | undefined;
    };

/**
 * Validates and compiles a document that somebody gives. `bucket`, of a resource policy: the bucket that gets it. How many
 * characters policies of identities may have depends on what they are attached to, and is the caller's to check.
 */
export function compilePolicy(
  text: string,
  options: { type: Exclude<DocumentType, 'resource'> } | { type: 'resource'; bucket: string },
): CompileOutcome {
  return finishAtOnce(compileInSteps(text, options));
}

/** The same in steps of a few ms. */
export function compileInSteps(
  text: string,
  options: Parameters<typeof compilePolicy>[1],
): Steps<CompileOutcome> {
  return outcomeOf(function* () {
    if (options.type === 'resource') {
      const form = readBucketDocument(text);
      yield;
      yield* checkBucketDocument(form, options);
      yield;
      return yield* compile(form, options.type);
    }
    const { type } = options;
    const form = readIdentityDocument(text, type);
    checkVersion(form, type);
    const policy = yield* compile(form, type);
    if (type === 'trust') {
      checkTrustDocument(form);
      checkSids(form.statements, type);
    } else checkIdentityDocument(form, type);
    return policy;
  });
}

/**
 * Compiles a document that was valid when it was stored: its bucket may have another name by now, and rules may have become
 * stricter. One that is malformed all the same must count as denying everything.
 */
export function compileStoredPolicy(text: string, type: DocumentType): CompileOutcome {
  return finishAtOnce(compileStoredInSteps(text, type));
}

/** The same in steps of a few ms. */
export function compileStoredInSteps(text: string, type: DocumentType): Steps<CompileOutcome> {
  return outcomeOf(function* () {
    const form = readDocument(text, type);
    yield;
    return yield* compile(form, type);
  });
}

function* outcomeOf(act: () => Steps<CompiledPolicy>): Steps<CompileOutcome> {
  try {
    return { kind: 'compiled', policy: yield* act() };
  } catch (error) {
    if (!(error instanceof DocumentFault)) throw error;
    const { message, place, detail, isTooLarge } = error;
    return { kind: isTooLarge ? 'too-large' : 'malformed', message, place: shorten(place), detail };
  }
}

function bucketFault(): DocumentFault {
  const message = `Normalized policy document exceeds the maximum allowed size of ${POLICY_SIZES.bucketBytesMax} bytes`;
  return new DocumentFault(message, { place: 'document' });
}

function readBucketDocument(text: string): DocumentForm {
  if (!text.startsWith('{')) {
    const message = "Policies must be valid JSON and the first byte must be '{'";
    throw new DocumentFault(message, { place: 'line 1, column 1' });
  }
  if (text.length > POLICY_SIZES.documentCharactersMax) throw bucketFault();
  const form = readDocument(text, 'resource');
  if (form.sizeBytes > POLICY_SIZES.bucketBytesMax) throw bucketFault();
  return form;
}

/** What no entity may have is not read. */
function readIdentityDocument(text: string, type: DocumentType): DocumentForm {
  const { documentCharactersMax, roleInlineCharactersMax, managedCharactersMax } = POLICY_SIZES;
  if (text.length <= documentCharactersMax && countCharacters(text) <= roleInlineCharactersMax)
    return readDocument(text, type);
  const message = `Cannot exceed quota for PolicySize: ${managedCharactersMax}`;
  throw new DocumentFault(message, { place: 'document', isTooLarge: true });
}

function* compile(
  { version = '2008-10-17', id, statements: forms }: DocumentForm,
  type: DocumentType,
): Steps<CompiledPolicy> {
  const hasVariables = version === '2012-10-17';
  const statements: Statement[] = [];
  const pace = { textsLeft: TEXTS_OF_STEP };
  for (const form of forms) {
    statements.push(yield* compileStatement(form, { type, hasVariables, pace }));
    if (--pace.textsLeft <= 0) yield* endStep(pace);
  }
  return makePolicy({ type, version, id, statements });
}

/** The policy of these statements. */
export function makePolicy(
  parts: Pick<CompiledPolicy, 'type' | 'version' | 'id' | 'statements'>,
): CompiledPolicy {
  const { statements } = parts;
  const known = new Map<string, ActionStatements>();
  let last: { readonly action: string; readonly about: ActionStatements } | undefined;
  return {
    ...parts,
    keys: new Set(statements.flatMap(({ keys }) => [...keys])),
    families: new Set(statements.flatMap(({ families }) => [...families])),
    memoryBytes: memoryOf(statements),
    about(action) {
      const found = known.get(action) ?? (last?.action === action ? last.about : undefined);
      if (found !== undefined) return found;
      // It is found once, and the first question must have the answer that later ones have.
      const about = besideWork(() => statements.filter((statement) => isAbout(statement, action)));
      const made = {
        allows: about.filter(({ effect }) => effect === 'Allow'),
        denies: about.filter(({ effect }) => effect === 'Deny'),
      };
      const name = ownText(action);
      last = { action: name, about: made };
      // Names that nobody knows come from simulations only, and all of them are not kept.
      if (known.size < KNOWN_ACTIONS_MAX) known.set(name, made);
      return made;
    },
  };
}

const KNOWN_ACTIONS_MAX = 256;

function isAbout({ actions: { isNot, patterns } }: Statement, action: string): boolean {
  const folded = action.toLowerCase();
  return patterns.some((pattern) => matchPattern(pattern, folded, () => undefined) === true) !== isNot;
}

interface CompileContext {
  readonly type: DocumentType;
  readonly hasVariables: boolean;
}

/** Texts that one step may still make patterns of. */
interface Pace {
  textsLeft: number;
}

const TEXTS_OF_STEP = 200;

function* endStep(pace: Pace): Steps<void> {
  pace.textsLeft = TEXTS_OF_STEP;
  yield;
}

function* compileStatement(
  form: StatementForm,
  { type, hasVariables, pace }: CompileContext & { pace: Pace },
): Steps<Statement> {
  const { index, sid, effect, place } = form;
  if (effect !== 'Allow' && effect !== 'Deny') throw legacyFault(`${place}.Effect`);
  const conditions: Condition[] = [];
  for (const entry of form.conditions) {
    conditions.push(compileCondition(entry, { type, hasVariables, effect }));
    pace.textsLeft -= entry.values.length;
    if (pace.textsLeft <= 0) yield* endStep(pace);
  }
  const resources = form.resources && (yield* patternsOf(form.resources, { hasVariables, pace }));
  const actions = yield* foldedPatterns(form.actions, pace);
  const keys = [
    ...(resources?.patterns ?? []).flatMap((pattern) => pattern.keys),
    ...conditions.flatMap((condition) => condition.keys),
  ];
  return {
    index,
    sid: sid || undefined,
    effect,
    actions,
    resources,
    principals:
      isOfIdentity(type) || form.principals === undefined
        ? undefined
        : compilePrincipals(form.principals, type),
    conditions,
    keys: new Set(keys),
    families: new Set(keys.map(familyOf)),
  };
}

function isOfIdentity(type: DocumentType): boolean {
  return type !== 'resource' && type !== 'trust';
}

/** Actions have no variables. */
function foldedPatterns(list: TextList | undefined, pace: Pace): Steps<Patterns> {
  const texts = (list?.texts ?? []).map(({ text, place }) => ({ text: text.toLowerCase(), place }));
  const folded = { isNot: list?.isNot ?? false, texts, place: list?.place ?? '' };
  return patternsOf(folded, { hasVariables: false, pace });
}

type Patterns = NonNullable<Statement['resources']>;

function* patternsOf(
  { isNot, texts }: TextList,
  { hasVariables, pace }: { hasVariables: boolean; pace: Pace },
): Steps<Patterns> {
  const patterns: Pattern[] = [];
  for (const { text } of texts) {
    patterns.push(parsePattern(text, { hasVariables, hasWildcards: true }));
    if (--pace.textsLeft <= 0) yield* endStep(pace);
  }
  return { isNot, patterns };
}

function compilePrincipals({ isNot, names }: PrincipalList, type: DocumentType) {
  const parsed = names.map(({ type: kind, text, place }) => {
    const name = parsePrincipal(kind, text);
    // Canonical ids are of S3 alone.
    if (name === undefined || (name.kind === 'canonical-user' && type !== 'resource')) {
      throw formFault(type, 'principal-form', {
        place,
        detail: type === 'resource' ? text : `"${kind}":"${text}"`,
      });
    }
    return name;
  });
  return { isNot, set: makePrincipalSet(parsed) };
}

function compileCondition(
  entry: ConditionEntry,
  { type, ...context }: CompileContext & { effect: 'Allow' | 'Deny' },
): Condition {
  const condition = makeCondition({ ...entry, ...context });
  if (!('badValue' in condition)) return condition;
  if (type !== 'resource') throw legacyFault(entry.place);
  const message = entry.name.includes('IpAddress')
    ? 'Invalid IP address in Conditions'
    : `Invalid value in Conditions for operator ${entry.name}`;
  throw new DocumentFault(message, { place: entry.place, detail: shorten(condition.badValue) });
}
