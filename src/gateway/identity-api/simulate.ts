// What policies would decide, before anybody sends the request (SimulatePrincipalPolicy, SimulateCustomPolicy), and which
// condition keys they look at. The deciding is src/policy/simulate.ts's, and the answer simulation-answer.ts's.
import type { Steps } from '../../base/async/steps.ts';
import type { ContextValue } from '../../policy/patterns.ts';
import { parsePrincipal } from '../../policy/principals.ts';
import { AppError } from '../../types/errors.ts';
import { type ActionContext, ANY_RESOURCE, defineIamAction } from './iam-action.ts';
import { identityArn, paging, policyArn, policyName } from './identity-parameters.ts';
import { choice, list, nested, required, structures, text, type ValuesOf } from './parameter-rules.ts';
import { policyDocument } from './policy-documents.ts';
import type { PolicyHolder } from './policy-holders.ts';
import type { QueryAction } from './query-service.ts';
import { answerInSteps, keysInSteps, type Scene } from './simulation-answer.ts';
import {
  givenPolicies,
  givenResourcePolicy,
  type PrincipalPolicies,
  policiesOfPrincipal,
  type SourcePolicy,
  type StoredPolicy,
  storedPolicies,
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

/** Of one account one after the other: only the first has its policies compiled. */
function inTurns({ deps, store: { accountId } }: ActionContext, steps: Steps<string>): Promise<string> {
  return deps.turns.finish({ owner: accountId, work: 'simulations' }, steps);
}

function* simulate(
  { ActionNames, ResourceArns, Marker, MaxItems }: Simulated,
  sceneInSteps: Steps<Scene>,
): Steps<string> {
  const resources = ResourceArns === undefined || ResourceArns.length === 0 ? ['*'] : ResourceArns;
  const asked = { actions: ActionNames, resources, Marker, MaxItems };
  return yield* answerInSteps(yield* sceneInSteps, asked);
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

function* boundaryOf(values: Simulated, own: SourcePolicy | undefined): Steps<SourcePolicy | undefined> {
  const given = values.PermissionsBoundaryPolicyInputList ?? [];
  if (given.length > 1) {
    throw new AppError('InvalidInput', { message: 'Only one permissions boundary policy can be simulated.' });
  }
  return (yield* givenPolicies('PermissionsBoundaryPolicyInputList', given, 'boundary'))[0] ?? own;
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
    function* scene(): Steps<Scene> {
      return {
        identity: yield* givenPolicies('PolicyInputList', PolicyInputList, 'identity'),
        boundary: yield* boundaryOf(values, undefined),
        resourcePolicy: ResourcePolicy === undefined ? undefined : yield* givenResourcePolicy(ResourcePolicy),
        caller: CallerArn === undefined ? someCaller(store) : callerOfArn(CallerArn),
        resourceAccount: ResourceOwner === undefined ? store.accountId : accountOf(ResourceOwner),
        context: contextOf(values.ContextEntries),
      };
    }
    return inTurns(context, simulate(values, scene()));
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
    function* scene(): Steps<Scene> {
      const stored = yield* storedPolicies(source.identity);
      const [boundary] = yield* storedPolicies(source.boundary === undefined ? [] : [source.boundary]);
      return {
        identity: [...stored, ...(yield* givenPolicies('PolicyInputList', PolicyInputList, 'identity'))],
        boundary: yield* boundaryOf(values, boundary),
        resourcePolicy: ResourcePolicy === undefined ? undefined : yield* givenResourcePolicy(ResourcePolicy),
        caller: CallerArn === undefined ? callerOfHolder(context, holder) : callerOfArn(CallerArn),
        resourceAccount: ResourceOwner === undefined ? store.accountId : accountOf(ResourceOwner),
        context: new Map([...contextOfHolder(context, holder), ...contextOf(values.ContextEntries)]),
      };
    }
    return inTurns(context, simulate(values, scene()));
  },
});

function* keysOf(stored: readonly StoredPolicy[], given: readonly string[]): Steps<string> {
  const policies = yield* storedPolicies(stored);
  return yield* keysInSteps([...policies, ...(yield* givenPolicies('PolicyInputList', given, 'identity'))]);
}

const getContextKeysForCustomPolicy = defineIamAction({
  name: 'GetContextKeysForCustomPolicy',
  readsPolicies: true,
  parameters: { PolicyInputList: required(documents) },
  access: () => [ANY_RESOURCE],
  run: async ({ PolicyInputList }, context) => inTurns(context, keysOf([], PolicyInputList)),
});

const getContextKeysForPrincipalPolicy = defineIamAction({
  name: 'GetContextKeysForPrincipalPolicy',
  readsPolicies: true,
  parameters: { PolicySourceArn: sourceArn, PolicyInputList: documents },
  access: ({ PolicySourceArn }) => [{ resource: PolicySourceArn }],
  async run({ PolicySourceArn, PolicyInputList = [] }, context) {
    const { identity }: PrincipalPolicies = await policiesOfPrincipal(context.store, PolicySourceArn);
    return inTurns(context, keysOf(identity, PolicyInputList));
  },
});

export const SIMULATION_ACTIONS: readonly QueryAction[] = [
  simulateCustomPolicy,
  simulatePrincipalPolicy,
  getContextKeysForCustomPolicy,
  getContextKeysForPrincipalPolicy,
];
