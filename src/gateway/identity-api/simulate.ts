// What policies would decide, before anybody sends the request (SimulatePrincipalPolicy, SimulateCustomPolicy), and which
// condition keys they look at. The deciding is src/policy/simulate.ts's.
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { displayKey } from '../../policy/condition-keys.ts';
import { positionsOfStatements } from '../../policy/documents/statement-positions.ts';
import type { DecidedBy } from '../../policy/evaluate.ts';
import type { ContextValue } from '../../policy/patterns.ts';
import { type Caller, parsePrincipal } from '../../policy/principals.ts';
import { type SimulatedDecision, type SimulatedResult, simulate } from '../../policy/simulate.ts';
import { AppError } from '../../types/errors.ts';
import { turnOfDecision } from '../decision-turns.ts';
import { type ActionContext, ANY_RESOURCE, defineIamAction } from './iam-action.ts';
import { identityArn, paging, policyArn, policyName } from './identity-parameters.ts';
import { pageEndXml, pageOf } from './list-pages.ts';
import { choice, list, nested, required, structures, text, type ValuesOf } from './parameter-rules.ts';
import { policyDocument } from './policy-documents.ts';
import type { PolicyHolder } from './policy-holders.ts';
import { xmlMembers } from './query-protocol.ts';
import type { QueryAction } from './query-service.ts';
import {
  givenPolicies,
  givenResourcePolicy,
  type PrincipalPolicies,
  policiesOfPrincipal,
  type SourcePolicy,
} from './simulation-policies.ts';

const ITEMS_MAX = 1000;
const documents = list(policyDocument, { countMax: 100 });
const arn = text({ charactersMax: 2048 });
const actionNames = required(list(text({ charactersMin: 3, charactersMax: 128 }), { countMax: ITEMS_MAX }));

const CONTEXT_TYPES = ['string', 'numeric', 'boolean', 'ip', 'binary', 'date'] as const;
const contextEntries = structures(
  {
    ContextKeyName: required(text({ charactersMin: 5, charactersMax: 256 })),
    ContextKeyValues: list(text({ charactersMin: 0, charactersMax: 8192 }), { countMax: ITEMS_MAX }),
    ContextKeyType: required(choice(CONTEXT_TYPES.flatMap((type) => [type, `${type}List` as const]))),
  },
  { countMax: ITEMS_MAX },
);

/** Of both simulations. */
const SIMULATION = {
  PermissionsBoundaryPolicyInputList: documents,
  ActionNames: actionNames,
  ResourceArns: list(arn, { countMax: ITEMS_MAX }),
  ResourcePolicy: policyDocument,
  ResourceOwner: arn,
  CallerArn: arn,
  ContextEntries: contextEntries,
  ResourceHandlingOption: text({ charactersMax: 64 }),
  ...paging,
} as const;

type Simulated = ValuesOf<typeof SIMULATION>;

/** Evaluations of an answer, and statements in them: an action that would go beyond begins the next page. */
const EVALUATIONS_MAX = 2000;
const STATEMENTS_JUDGED_MAX = 200_000;
/** Of one result: a document may have thousands that say the same. */
const STATEMENTS_SHOWN_MAX = 50;
/** After so many statements others have their turn. */
const STATEMENTS_AT_ONCE = 2000;

interface Scene {
  readonly identity: readonly SourcePolicy[];
  readonly boundary: SourcePolicy | undefined;
  readonly resourcePolicy: SourcePolicy | undefined;
  readonly caller: Exclude<Caller, { kind: 'anonymous' }>;
  readonly resourceAccount: string;
  readonly context: ReadonlyMap<string, ContextValue>;
}

async function runSimulation(
  { deps, store: { accountId } }: ActionContext,
  values: Simulated,
  scene: Scene,
): Promise<string> {
  const { ActionNames, ResourceArns } = values;
  const resources = ResourceArns === undefined || ResourceArns.length === 0 ? ['*'] : ResourceArns;
  const numbered = ActionNames.map((action, at) => ({ action, key: String(at).padStart(6, '0') }));
  const costOfOne = sourcesOf(scene).reduce((sum, { policy }) => sum + policy.statements.length, 1);
  const evaluationsMax = Math.min(EVALUATIONS_MAX, STATEMENTS_JUDGED_MAX / costOfOne);
  const MaxItems = Math.max(1, Math.min(values.MaxItems, Math.floor(evaluationsMax / resources.length)));
  const { items, next } = pageOf(numbered, ({ key }) => key, { ...values, MaxItems });
  const positions = createPositions();
  const members: string[] = [];
  let cost = 0;
  for (const { action } of items) {
    const results: { resource: string; result: SimulatedResult }[] = [];
    for (const resource of resources) {
      await turnOfDecision(deps.turns, accountId);
      results.push({ resource, result: simulate({ ...questionOf(scene), action, resource }) });
      cost += costOfOne;
      if (cost < STATEMENTS_AT_ONCE) continue;
      cost = 0;
      await deps.turns.take(`simulations of ${accountId}`);
    }
    members.push(evaluationXml({ action, results, scene, positions }));
  }
  return xmlMembers('EvaluationResults', members) + pageEndXml(next);
}

function questionOf({ identity, boundary, resourcePolicy, caller, resourceAccount, context }: Scene) {
  return { policies: { identity, boundary }, resourcePolicy, caller, resourceAccount, context };
}

function sourcesOf({ identity, boundary, resourcePolicy }: Scene): SourcePolicy[] {
  return [...identity, ...(boundary ? [boundary] : []), ...(resourcePolicy ? [resourcePolicy] : [])];
}

type Positions = (source: SourcePolicy) => ReturnType<typeof positionsOfStatements>;

function createPositions(): Positions {
  const known = new Map<SourcePolicy, ReturnType<typeof positionsOfStatements>>();
  return (source) => {
    const found = known.get(source) ?? positionsOfStatements(source.text);
    known.set(source, found);
    return found;
  };
}

interface Evaluated {
  readonly action: string;
  readonly results: readonly { resource: string; result: SimulatedResult }[];
  readonly scene: Scene;
  readonly positions: Positions;
}

/** The one that is worst for the caller stands for all resources. */
const WORST_FIRST: readonly SimulatedDecision[] = ['explicitDeny', 'implicitDeny', 'allowed'];

function evaluationXml({ action, results, scene, positions }: Evaluated): string {
  const decision = WORST_FIRST.find((each) => results.some(({ result }) => result.decision === each));
  const [first] = results;
  const isSingle = results.length === 1;
  const isOfAny = isSingle && first?.resource === '*';
  const shown = isSingle ? first?.result : undefined;
  return [
    xmlText('EvalActionName', action),
    xmlText('EvalResourceName', isSingle ? first?.resource : '*'),
    xmlText('EvalDecision', decision),
    statementsXml(shown?.statements ?? [], scene, positions),
    missingXml(shown?.missingKeys ?? []),
    shown === undefined ? '' : boundaryXml(shown),
    ...(isOfAny
      ? []
      : [
          isSingle ? sidesXml(shown) : '',
          xmlMembers(
            'ResourceSpecificResults',
            results.map(({ resource, result }) =>
              [
                xmlText('EvalResourceName', resource),
                xmlText('EvalResourceDecision', result.decision),
                statementsXml(result.statements, scene, positions),
                missingXml(result.missingKeys),
                sidesXml(result),
                boundaryXml(result),
              ].join(''),
            ),
          ),
        ]),
  ].join('');
}

function statementsXml(statements: readonly DecidedBy[], scene: Scene, positions: Positions): string {
  return xmlMembers(
    'MatchedStatements',
    statements.slice(0, STATEMENTS_SHOWN_MAX).map((each) => statementXml(each, scene, positions)),
  );
}

function statementXml({ kind, name, statement }: DecidedBy, scene: Scene, positions: Positions): string {
  const sources =
    kind === 'identity' ? scene.identity : kind === 'boundary' ? [scene.boundary] : [scene.resourcePolicy];
  const source = sources.find((each) => each?.name === name);
  const position = source && positions(source)[statement];
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

/** By key in lower case; later entries of one key stand. Throws InvalidInput. */
function contextOf(entries: Simulated['ContextEntries']): Map<string, ContextValue> {
  const context = new Map<string, ContextValue>();
  for (const { ContextKeyName, ContextKeyValues = [], ContextKeyType } of entries ?? []) {
    const key = ContextKeyName.toLowerCase();
    const [first] = ContextKeyValues;
    if (ContextKeyType.endsWith('List')) context.set(key, ContextKeyValues);
    else if (first !== undefined && ContextKeyValues.length === 1) context.set(key, first);
    else {
      const message = `Invalid number of values for context key ${ContextKeyName}: ${ContextKeyValues.length}`;
      throw new AppError('InvalidInput', { message });
    }
  }
  return context;
}

/** The account of an owner: its id, or an ARN of it. Throws InvalidInput. */
function accountOf(owner: string): string {
  const accountId = /^(?:arn:aws:iam::)?(\d{12})(?::.*)?$/.exec(owner)?.[1];
  if (accountId !== undefined) return accountId;
  throw new AppError('InvalidInput', { message: `Invalid resource owner: ${owner}` });
}

function callerOfArn(callerArn: string): Scene['caller'] {
  const name = parsePrincipal('AWS', callerArn);
  if (name?.kind !== 'user') {
    throw new AppError('InvalidInput', { message: `Invalid caller: ${callerArn} is not the ARN of a user.` });
  }
  return { kind: 'user', accountId: name.accountId, canonicalId: '', arn: callerArn };
}

/** Of policies on nobody in particular: some user of the account. */
function someCaller({ accountId }: { accountId: string }): Scene['caller'] {
  return { kind: 'user', accountId, canonicalId: '', arn: `arn:aws:iam::${accountId}:user/*` };
}

function callerOfHolder({ caller, store }: ActionContext, holder: PolicyHolder): Scene['caller'] {
  const { accountId } = store;
  const { canonicalId } = caller.account;
  const arnOf = identityArn(accountId, holder.kind, holder);
  if (holder.kind === 'role') {
    const session = `arn:aws:sts::${accountId}:assumed-role/${holder.name}/simulated`;
    return { kind: 'role-session', accountId, canonicalId, roleArn: arnOf, arn: session };
  }
  if (holder.kind === 'user') return { kind: 'user', accountId, canonicalId, arn: arnOf };
  return { ...someCaller(store), canonicalId };
}

/** What is known of the holder; the request may say something else. */
function contextOfHolder({ store }: ActionContext, holder: PolicyHolder): Map<string, ContextValue> {
  const context = new Map<string, ContextValue>([
    ['aws:principalaccount', store.accountId],
    ['aws:accountid', store.accountId],
  ]);
  if (holder.kind === 'group') return context;
  context.set('aws:principalarn', identityArn(store.accountId, holder.kind, holder));
  context.set('aws:principaltype', holder.kind === 'user' ? 'User' : 'AssumedRole');
  context.set('aws:userid', holder.kind === 'user' ? holder.id : `${holder.id}:simulated`);
  if (holder.kind === 'user') context.set('aws:username', holder.name);
  for (const { key, value } of holder.tags) context.set(`aws:principaltag/${key.toLowerCase()}`, value);
  return context;
}

async function boundaryOf(
  values: Simulated,
  own: SourcePolicy | undefined,
): Promise<SourcePolicy | undefined> {
  const given = values.PermissionsBoundaryPolicyInputList ?? [];
  if (given.length > 1) {
    throw new AppError('InvalidInput', { message: 'Only one permissions boundary policy can be simulated.' });
  }
  return (await givenPolicies('PermissionsBoundaryPolicyInputList', given, 'boundary'))[0] ?? own;
}

const simulateCustomPolicy = defineIamAction({
  name: 'SimulateCustomPolicy',
  parameters: { PolicyInputList: required(documents), ...SIMULATION },
  access: () => [ANY_RESOURCE],
  async run({ PolicyInputList, ...values }, context) {
    const { store } = context;
    const { CallerArn, ResourceOwner, ResourcePolicy } = values;
    if (ResourcePolicy !== undefined && CallerArn === undefined) {
      throw new AppError('InvalidInput', { message: 'CallerArn is required where ResourcePolicy is given.' });
    }
    const scene: Scene = {
      identity: await givenPolicies('PolicyInputList', PolicyInputList, 'identity'),
      boundary: await boundaryOf(values, undefined),
      resourcePolicy: ResourcePolicy === undefined ? undefined : await givenResourcePolicy(ResourcePolicy),
      caller: CallerArn === undefined ? someCaller(store) : callerOfArn(CallerArn),
      resourceAccount: ResourceOwner === undefined ? store.accountId : accountOf(ResourceOwner),
      context: contextOf(values.ContextEntries),
    };
    return runSimulation(context, values, scene);
  },
});

const EXCLUSION_TYPES = ['inline', 'aws-managed', 'user-managed', 'permission-boundary'] as const;
const attachment = {
  AttachmentType: required(choice(['user', 'group', 'role'])),
  AttachmentName: required(text({ charactersMax: 128 })),
  PolicyName: required(policyName),
};
const exclusions = structures(
  {
    PolicyType: required(choice(EXCLUSION_TYPES)),
    PolicyArn: policyArn,
    InlinePolicyIdentifier: nested(attachment),
  },
  { countMax: 256 },
);

const sourceArn = required(text({ charactersMin: 20, charactersMax: 2048 }));

const simulatePrincipalPolicy = defineIamAction({
  name: 'SimulatePrincipalPolicy',
  parameters: {
    PolicySourceArn: sourceArn,
    PolicyInputList: documents,
    PolicyExclusionList: exclusions,
    ...SIMULATION,
  },
  access: ({ PolicySourceArn }) => [{ resource: PolicySourceArn }],
  async run({ PolicySourceArn, PolicyInputList = [], PolicyExclusionList, ...values }, context) {
    const { store } = context;
    const { CallerArn, ResourceOwner, ResourcePolicy } = values;
    const source = await policiesOfPrincipal(store, PolicySourceArn, PolicyExclusionList);
    const { holder } = source;
    if (ResourcePolicy !== undefined && CallerArn === undefined && holder.kind === 'group') {
      throw new AppError('InvalidInput', { message: 'CallerArn is required where ResourcePolicy is given.' });
    }
    const scene: Scene = {
      identity: [
        ...source.identity,
        ...(await givenPolicies('PolicyInputList', PolicyInputList, 'identity')),
      ],
      boundary: await boundaryOf(values, source.boundary),
      resourcePolicy: ResourcePolicy === undefined ? undefined : await givenResourcePolicy(ResourcePolicy),
      caller: CallerArn === undefined ? callerOfHolder(context, holder) : callerOfArn(CallerArn),
      resourceAccount: ResourceOwner === undefined ? store.accountId : accountOf(ResourceOwner),
      context: new Map([...contextOfHolder(context, holder), ...contextOf(values.ContextEntries)]),
    };
    return runSimulation(context, values, scene);
  },
});

function keysXml(policies: readonly SourcePolicy[]): string {
  const keys = new Set(policies.flatMap(({ policy }) => [...policy.keys].map(displayKey)));
  return xmlElement('ContextKeyNames', ...[...keys].sort().map((key) => xmlText('member', key)));
}

const getContextKeysForCustomPolicy = defineIamAction({
  name: 'GetContextKeysForCustomPolicy',
  parameters: { PolicyInputList: required(documents) },
  access: () => [ANY_RESOURCE],
  run: async ({ PolicyInputList }) =>
    keysXml(await givenPolicies('PolicyInputList', PolicyInputList, 'identity')),
});

const getContextKeysForPrincipalPolicy = defineIamAction({
  name: 'GetContextKeysForPrincipalPolicy',
  parameters: { PolicySourceArn: sourceArn, PolicyInputList: documents },
  access: ({ PolicySourceArn }) => [{ resource: PolicySourceArn }],
  async run({ PolicySourceArn, PolicyInputList = [] }, { store }) {
    const { identity }: PrincipalPolicies = await policiesOfPrincipal(store, PolicySourceArn);
    return keysXml([...identity, ...(await givenPolicies('PolicyInputList', PolicyInputList, 'identity'))]);
  },
});

export const SIMULATION_ACTIONS: readonly QueryAction[] = [
  simulateCustomPolicy,
  simulatePrincipalPolicy,
  getContextKeysForCustomPolicy,
  getContextKeysForPrincipalPolicy,
];
