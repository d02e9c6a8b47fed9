// The answer of a simulation, made a few ms at a time: a request may ask for a thousand decisions by a hundred policies, and each
// of them may have thousands of statements to show.
import type { Steps } from '../../base/async/steps.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { displayKey } from '../../policy/condition-keys.ts';
import { positionsOfStatements } from '../../policy/documents/statement-positions.ts';
import type { DecidedBy } from '../../policy/evaluate.ts';
import { matchWork } from '../../policy/match-work.ts';
import type { ContextValue } from '../../policy/patterns.ts';
import type { Caller } from '../../policy/principals.ts';
import {
  missingKeys,
  type SimulatedDecision,
  type SimulatedResult,
  simulateInSteps,
} from '../../policy/simulate.ts';
import { type PageRequest, pageEndXml, pageOf } from './list-pages.ts';
import { xmlMembers } from './query-protocol.ts';
import type { SourcePolicy } from './simulation-policies.ts';

/** What all decisions of a simulation go by. */
export interface Scene {
  readonly identity: readonly SourcePolicy[];
  readonly boundary: SourcePolicy | undefined;
  readonly resourcePolicy: SourcePolicy | undefined;
  readonly caller: Exclude<Caller, { kind: 'anonymous' }>;
  readonly resourceAccount: string;
  readonly context: ReadonlyMap<string, ContextValue>;
}

/** Evaluations of an answer, and statements in them: an action that would go beyond begins the next page. */
const EVALUATIONS_MAX = 2000;
const STATEMENTS_JUDGED_MAX = 200_000;
/** Of one result: a document may have thousands that say the same. */
const STATEMENTS_SHOWN_MAX = 50;
const MISSING_KEYS_SHOWN_MAX = 1000;
/** The action that goes beyond is the last of its page, and its further results have their decision alone. */
const ANSWER_CHARACTERS_MAX = 4 * 1024 * 1024;

/** Some ms, in the units of `matchWork`. */
const WORK_OF_STEP = 1_000_000;
/** To write a character of the answer, or to read one of a document; to look at a key. */
const CHARACTER_WORK = 3;
const KEY_WORK = 30;

/** Says when a step has lasted long enough: by what was compared in it, and by what else is noted. */
class Pace {
  #noted = 0;
  #beganAt = matchWork();

  note(work: number): void {
    this.#noted += work;
  }

  /** Ends the step where it is time to. */
  *rest(): Steps<void> {
    if (matchWork() - this.#beganAt + this.#noted < WORK_OF_STEP) return;
    yield;
    this.#noted = 0;
    this.#beganAt = matchWork();
  }

  /** Those steps, several of them in one where they are short. */
  *join<T>(steps: Steps<T>): Steps<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      yield* this.rest();
    }
  }
}

export interface AskedSimulation extends PageRequest {
  readonly actions: readonly string[];
  /** At least one. */
  readonly resources: readonly string[];
}

/** The elements of the result: an evaluation for each action, and whether there are more. */
export function* answerInSteps(
  scene: Scene,
  { actions, resources, ...asked }: AskedSimulation,
): Steps<string> {
  const pace = new Pace();
  const positions = yield* positionsInSteps(scene, pace);
  const numbered = actions.map((action, at) => ({ action, key: String(at).padStart(6, '0') }));
  const costOfOne = sourcesOf(scene).reduce((sum, { policy }) => sum + policy.statements.length, 1);
  const evaluationsMax = Math.min(EVALUATIONS_MAX, STATEMENTS_JUDGED_MAX / costOfOne);
  const MaxItems = Math.max(1, Math.min(asked.MaxItems, Math.floor(evaluationsMax / resources.length)));
  const { items, next } = pageOf(numbered, ({ key }) => key, { ...asked, MaxItems });
  const members: string[] = [];
  let charactersLeft = ANSWER_CHARACTERS_MAX;
  for (const { action, key } of items) {
    const member = yield* evaluationInSteps({ scene, positions, action, resources, charactersLeft, pace });
    members.push(member);
    charactersLeft -= member.length;
    if (charactersLeft > 0 || key === items.at(-1)?.key) continue;
    return xmlMembers('EvaluationResults', members) + pageEndXml(key);
  }
  return xmlMembers('EvaluationResults', members) + pageEndXml(next);
}

/** The element with the names of all condition keys that the policies look at. */
export function* keysInSteps(policies: readonly SourcePolicy[]): Steps<string> {
  const pace = new Pace();
  const keys = new Set<string>();
  for (const { policy } of policies) {
    for (const key of policy.keys) keys.add(displayKey(key));
    pace.note(KEY_WORK * policy.keys.size);
    yield* pace.rest();
  }
  let xml = '';
  for (const key of keys) {
    const member = xmlText('member', key);
    xml += member;
    pace.note(KEY_WORK + CHARACTER_WORK * member.length);
    yield* pace.rest();
  }
  return xmlElement('ContextKeyNames', xml);
}

function questionOf({ identity, boundary, resourcePolicy, caller, resourceAccount, context }: Scene) {
  return { policies: { identity, boundary }, resourcePolicy, caller, resourceAccount, context };
}

function sourcesOf({ identity, boundary, resourcePolicy }: Scene): SourcePolicy[] {
  return [...identity, ...(boundary ? [boundary] : []), ...(resourcePolicy ? [resourcePolicy] : [])];
}

type Positions = ReadonlyMap<SourcePolicy, ReturnType<typeof positionsOfStatements>>;

function* positionsInSteps(scene: Scene, pace: Pace): Steps<Positions> {
  const positions = new Map<SourcePolicy, ReturnType<typeof positionsOfStatements>>();
  for (const source of sourcesOf(scene)) {
    positions.set(source, positionsOfStatements(source.text));
    pace.note(READING_WORK * source.text.length);
    yield* pace.rest();
  }
  return positions;
}

/** Of a character of JSON. */
const READING_WORK = 20;

interface Evaluation {
  readonly scene: Scene;
  readonly positions: Positions;
  readonly action: string;
  readonly resources: readonly string[];
  readonly charactersLeft: number;
  readonly pace: Pace;
}

/** The one that is worst for the caller stands for all resources. */
const WORST_FIRST: readonly SimulatedDecision[] = ['explicitDeny', 'implicitDeny', 'allowed'];

function* evaluationInSteps(asked: Evaluation): Steps<string> {
  const { scene, action, resources, pace } = asked;
  // Of each policy by itself: a hundred may have many statements and long patterns of actions.
  for (const { policy } of sourcesOf(scene)) {
    policy.about(action);
    yield* pace.rest();
  }
  const missing = missingXml(missingKeys({ ...questionOf(scene), action }, MISSING_KEYS_SHOWN_MAX));
  pace.note(CHARACTER_WORK * missing.length);
  const decisions = new Set<SimulatedDecision>();
  const shown: { resource: string; result: SimulatedResult; details: string }[] = [];
  const specific: string[] = [];
  let charactersLeft = asked.charactersLeft;
  const isSingle = resources.length === 1;
  for (const resource of resources) {
    const result = yield* pace.join(simulateInSteps({ ...questionOf(scene), action, resource }));
    decisions.add(result.decision);
    const details = charactersLeft > 0 ? statementsXml(result.statements, asked) + missing : NO_DETAILS;
    const each = [
      xmlText('EvalResourceName', resource),
      xmlText('EvalResourceDecision', result.decision),
      details,
      sidesXml(result),
      boundaryXml(result),
    ].join('');
    if (isSingle) shown.push({ resource, result, details });
    specific.push(each);
    charactersLeft -= each.length;
    pace.note(CHARACTER_WORK * each.length);
    yield* pace.rest();
  }
  const [one] = shown;
  const isOfAny = one?.resource === '*';
  return [
    xmlText('EvalActionName', action),
    xmlText('EvalResourceName', one?.resource ?? '*'),
    xmlText(
      'EvalDecision',
      WORST_FIRST.find((each) => decisions.has(each)),
    ),
    one?.details ?? NO_DETAILS,
    one === undefined ? '' : boundaryXml(one.result),
    ...(isOfAny
      ? []
      : [one === undefined ? '' : sidesXml(one.result), xmlMembers('ResourceSpecificResults', specific)]),
  ].join('');
}

function statementsXml(
  statements: readonly DecidedBy[],
  { scene, positions }: Pick<Evaluation, 'scene' | 'positions'>,
): string {
  return xmlMembers(
    'MatchedStatements',
    statements.slice(0, STATEMENTS_SHOWN_MAX).map((each) => statementXml(each, scene, positions)),
  );
}

function statementXml({ kind, name, statement }: DecidedBy, scene: Scene, positions: Positions): string {
  const sources =
    kind === 'identity' ? scene.identity : kind === 'boundary' ? [scene.boundary] : [scene.resourcePolicy];
  const source = sources.find((each) => each?.name === name);
  const position = source && positions.get(source)?.[statement];
  const point = (element: string, at: { line: number; column: number } | undefined) =>
    at === undefined ? '' : xmlElement(element, xmlText('Line', at.line), xmlText('Column', at.column));
  return [
    xmlText('SourcePolicyId', name),
    xmlText('SourcePolicyType', source?.sourceType),
    point('StartPosition', position?.start),
    point('EndPosition', position?.end),
  ].join('');
}

function missingXml(keys: readonly string[]): string {
  return xmlElement('MissingContextValues', ...keys.map((key) => xmlText('member', key)));
}

const NO_DETAILS = xmlMembers('MatchedStatements', []) + missingXml([]);

function boundaryXml({ isAllowedByBoundary }: SimulatedResult): string {
  if (isAllowedByBoundary === undefined) return '';
  return xmlElement(
    'PermissionsBoundaryDecisionDetail',
    xmlText('AllowedByPermissionsBoundary', isAllowedByBoundary),
  );
}

/** Empty within one account. */
function sidesXml(result: SimulatedResult | undefined): string {
  const entry = (key: string, value: string | undefined) =>
    value === undefined ? '' : xmlElement('entry', xmlText('key', key), xmlText('value', value));
  const { sides } = result ?? {};
  return xmlElement(
    'EvalDecisionDetails',
    entry('IAM Policy', sides?.identity),
    entry('Resource Policy', sides?.resource),
  );
}
