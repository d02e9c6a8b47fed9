// What policies would decide about a request that nobody sends (AWS "SimulatePrincipalPolicy"): the decision, the statements that
// made it, and the condition keys that it would have needed. Pure, as evaluate.ts is, by which it decides.
import { finishAtOnce, type Steps } from '../base/async/steps.ts';
import { displayKey } from './condition-keys.ts';
import { type AccessQuestion, type DecidedBy, evaluate, matchingStatements } from './evaluate.ts';
import type { ContextValue } from './patterns.ts';

export type SimulatedDecision = 'allowed' | 'explicitDeny' | 'implicitDeny';

export interface SimulatedResult {
  readonly decision: SimulatedDecision;
  /** Those that allow what is allowed, or deny what is denied; none where nothing allows. */
  readonly statements: readonly DecidedBy[];
  /** Whether the boundary, by itself, allows it; undefined: there is none. */
  readonly isAllowedByBoundary: boolean | undefined;
  /** What each side says by itself, where the resource is of another account than the caller. */
  readonly sides: { readonly identity: SimulatedDecision; readonly resource: SimulatedDecision } | undefined;
}

/** `context`: by key, all of it in lower case. */
export type Simulation = Omit<AccessQuestion, 'contextOf' | 'aclGrant' | 'objectAccount'> & {
  readonly context: ReadonlyMap<string, ContextValue>;
};

export function simulate(simulation: Simulation): SimulatedResult {
  return finishAtOnce(simulateInSteps(simulation));
}

/** The same in steps, each of which compares no more than one decision may. */
export function* simulateInSteps({ context, ...asked }: Simulation): Steps<SimulatedResult> {
  const question: AccessQuestion = { ...asked, contextOf: (key) => context.get(key.toLowerCase()) };
  const decided = evaluate(question);
  const decision = decided.isAllowed
    ? 'allowed'
    : decided.reason === 'explicit-deny'
      ? 'explicitDeny'
      : 'implicitDeny';
  yield;
  const matching = matchingStatements(question);
  const isAcross =
    question.caller.kind !== 'anonymous' && question.caller.accountId !== question.resourceAccount;
  return {
    decision,
    statements: matching.filter(({ kind, effect }) =>
      decision === 'explicitDeny'
        ? effect === 'Deny'
        : decision === 'allowed' && effect === 'Allow' && (kind === 'identity' || kind === 'resource'),
    ),
    isAllowedByBoundary:
      question.policies.boundary &&
      decisionOf(matching.filter(({ kind }) => kind === 'boundary')) === 'allowed',
    sides: isAcross
      ? {
          identity: decisionOf(matching.filter(({ kind }) => kind === 'identity')),
          resource: decisionOf(matching.filter(({ kind }) => kind === 'resource')),
        }
      : undefined,
  };
}

function decisionOf(matching: readonly { readonly effect: 'Allow' | 'Deny' }[]): SimulatedDecision {
  if (matching.some(({ effect }) => effect === 'Deny')) return 'explicitDeny';
  return matching.length > 0 ? 'allowed' : 'implicitDeny';
}

/**
 * Names of condition keys that statements about the action look at, and that have no value: `countMax` of them at most, in
 * alphabetical order.
 */
export function missingKeys(
  {
    policies,
    resourcePolicy,
    action,
    context,
  }: Pick<Simulation, 'policies' | 'resourcePolicy' | 'action' | 'context'>,
  countMax: number,
): string[] {
  const { identity, boundary, session = [] } = policies;
  const all = [
    ...identity,
    ...session,
    ...(boundary ? [boundary] : []),
    ...(resourcePolicy ? [resourcePolicy] : []),
  ];
  const missing = new Set<string>();
  for (const { policy } of all) {
    const { allows, denies } = policy.about(action);
    for (const { keys } of [...denies, ...allows]) {
      for (const key of keys) {
        if (missing.size < countMax && !context.has(key.toLowerCase())) missing.add(displayKey(key));
      }
    }
  }
  return [...missing].sort();
}
