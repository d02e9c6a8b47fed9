// The engine and the plain model give the same answer to random questions about random policies, for the same reason, and the
// statement that the engine names applies by the model, too.
import { expect, test } from 'vitest';
import {
  applying,
  type ModelDocument,
  type ModelQuestion,
  modelAnswer,
} from '../../tests/support/policy/model.ts';
import { policyWorlds } from '../../tests/support/policy/worlds.ts';
import { amountOf } from '../../tests/support/run/long-form.ts';
import { compileStoredPolicy } from './documents/compile-policy.ts';
import type { DocumentType } from './documents/wording.ts';
import {
  type AccessQuestion,
  evaluate,
  mayAllowSomewhere,
  type NamedPolicy,
  type PolicyDecision,
} from './evaluate.ts';

const QUESTIONS = amountOf({ short: 2000, long: 1_000_000 });
const SEED = 20261126;

function named(document: ModelDocument, type: DocumentType, name: string): NamedPolicy {
  const compiled = compileStoredPolicy(JSON.stringify(document), type);
  if (compiled.kind !== 'compiled') throw new Error(`${compiled.message} ${compiled.place}`);
  return { policy: compiled.policy, name };
}

function engineQuestion(world: ModelQuestion): AccessQuestion {
  const { caller, identity, boundary, session, resourcePolicy, isTrust, context, acl, ...rest } = world;
  return {
    ...rest,
    caller,
    policies: {
      identity: identity.map((document, at) => named(document, 'identity', `identity ${at}`)),
      boundary: boundary && named(boundary, 'boundary', 'boundary 0'),
      session: session?.map((document, at) => named(document, 'session', `session ${at}`)),
    },
    resourcePolicy: resourcePolicy && named(resourcePolicy, isTrust ? 'trust' : 'resource', 'resource 0'),
    mustBeAllowedByResource: isTrust,
    contextOf: (key) => context[key],
    aclGrant: () => acl,
  };
}

function answerOf(decision: PolicyDecision): string {
  if (decision.isAllowed) return 'allowed';
  return decision.reason === 'explicit-deny' ? decision.reason : `no ${decision.lacking}`;
}

function documentNamed(world: ModelQuestion, name: string): ModelDocument | undefined {
  const [kind, at] = name.split(' ');
  if (kind === 'identity') return world.identity[Number(at)];
  if (kind === 'session') return world.session?.[Number(at)];
  return kind === 'boundary' ? world.boundary : world.resourcePolicy;
}

function applies(world: ModelQuestion, decision: PolicyDecision): boolean {
  if (!('by' in decision) || typeof decision.by === 'string') return true;
  const document = documentNamed(world, decision.by.name);
  const statement = document?.Statement[decision.by.statement];
  return (
    document !== undefined &&
    statement !== undefined &&
    applying(document, decision.isAllowed ? 'Allow' : 'Deny', world).includes(statement)
  );
}

test(`the engine answers ${QUESTIONS} random questions as the model does`, { timeout: 3_600_000 }, () => {
  const seen = new Map<string, number>();
  const worlds = policyWorlds(SEED);
  for (let count = 0; count < QUESTIONS; count++) {
    const world = worlds.next().value;
    const question = engineQuestion(world);
    const decision = evaluate(question);
    const answer = answerOf(decision);
    const expected = modelAnswer(world);
    const by = decision.isAllowed && typeof decision.by !== 'string' ? decision.by.kind : undefined;
    const fault =
      (answer !== expected && `it is ${answer} and not ${expected}`) ||
      (!applies(world, decision) && 'the statement that decided does not apply') ||
      (!mayFollow(question, decision) && 'it was ruled out before');
    if (fault) expect.fail(`question ${count} of seed ${SEED}: ${fault}\n${JSON.stringify(world)}`);
    const shown = by === undefined ? answer : `${answer} by ${by}`;
    seen.set(shown, (seen.get(shown) ?? 0) + 1);
  }
  // All ends are met, and none of them by chance alone.
  for (const end of ENDS) expect(seen.get(end) ?? 0, end).toBeGreaterThan(QUESTIONS / 1000);
});

const ENDS = [
  ...['allowed', 'allowed by identity', 'allowed by resource', 'allowed by trust', 'explicit-deny'],
  ...['no identity', 'no boundary', 'no session', 'no resource', 'no trust'],
];

/** What policies allow was not ruled out before. */
function mayFollow(question: AccessQuestion, decision: PolicyDecision): boolean {
  return !decision.isAllowed || decision.by === 'acl' || mayAllowSomewhere(question);
}
