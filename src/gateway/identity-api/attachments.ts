// Managed policies on users, groups and roles: attached, detached, listed; the same for all three.
import { noteUse } from '../../accounts/policy-uses.ts';
import { xmlText } from '../../base/xml/write-xml.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type HolderKind, identityKeys } from '../../types/records/identity-records.ts';
import { type AccessTarget, type ActionContext, defineIamAction } from './iam-action.ts';
import { paging, policyArn } from './identity-parameters.ts';
import { pageOf, pageXml } from './list-pages.ts';
import { parsePolicyArn, policyPath, requireAttachable } from './managed-policies.ts';
import { required } from './parameter-rules.ts';
import { HOLDER_KINDS, HOLDER_LABELS, holderName, holderTarget, requireHolder } from './policy-holders.ts';
import type { QueryAction } from './query-service.ts';

/** With the policy, which conditions ask about. */
async function attachmentTarget(
  context: ActionContext,
  { kind, name, arn }: { kind: HolderKind; name: string; arn: string },
): Promise<AccessTarget> {
  const target = await holderTarget(context, { kind, name });
  return { ...target, values: { ...target.values, 'iam:policyarn': arn } };
}

/** As lists and details show it. */
export function attachedPolicyXml(arn: string): string {
  return xmlText('PolicyName', parsePolicyArn(arn).name) + xmlText('PolicyArn', arn);
}

function actionsOf(kind: HolderKind): QueryAction[] {
  const label = HOLDER_LABELS[kind];
  const Holder = holderName(kind);

  const attach = defineIamAction({
    name: `Attach${label}Policy`,
    parameters: { Holder, PolicyArn: required(policyArn) },
    access: async ({ Holder: name, PolicyArn: arn }, context) => [
      await attachmentTarget(context, { kind, name, arn }),
    ],
    async run({ Holder: name, PolicyArn: arn }, { store }) {
      await requireAttachable(store, arn);
      const holder = await requireHolder(store, { kind, name });
      const { attachedPolicies } = holder;
      if (attachedPolicies.includes(arn)) return undefined;
      if (attachedPolicies.length >= LIMITS.attachedPoliciesMax) {
        const message = `Cannot exceed quota for PoliciesPer${label}: ${LIMITS.attachedPoliciesMax}`;
        throw new AppError('LimitExceeded', { message });
      }
      store.put(identityKeys[kind](name), { ...holder, attachedPolicies: [...attachedPolicies, arn] });
      await noteUse(store, { arn, as: 'attached', kind, name }, 1);
      return undefined;
    },
  });

  const detach = defineIamAction({
    name: `Detach${label}Policy`,
    parameters: { Holder, PolicyArn: required(policyArn) },
    access: async ({ Holder: name, PolicyArn: arn }, context) => [
      await attachmentTarget(context, { kind, name, arn }),
    ],
    async run({ Holder: name, PolicyArn: arn }, { store }) {
      parsePolicyArn(arn);
      const holder = await requireHolder(store, { kind, name });
      if (!holder.attachedPolicies.includes(arn)) {
        throw new AppError('NoSuchEntity', { message: `Policy ${arn} was not found.` });
      }
      const attachedPolicies = holder.attachedPolicies.filter((each) => each !== arn);
      store.put(identityKeys[kind](name), { ...holder, attachedPolicies });
      await noteUse(store, { arn, as: 'attached', kind, name }, -1);
      return undefined;
    },
  });

  const list = defineIamAction({
    name: `ListAttached${label}Policies`,
    parameters: { Holder, PathPrefix: policyPath, ...paging },
    access: async ({ Holder: name }, context) => [await holderTarget(context, { kind, name })],
    async run({ Holder: name, PathPrefix, ...page }, { store }) {
      const { attachedPolicies } = await requireHolder(store, { kind, name });
      const fitting = attachedPolicies.filter((arn) => parsePolicyArn(arn).path.startsWith(PathPrefix));
      const { items, next } = pageOf(fitting, (arn) => arn, page);
      return pageXml('AttachedPolicies', items.map(attachedPolicyXml), next);
    },
  });

  return [attach, detach, list];
}

export const ATTACHMENT_ACTIONS: readonly QueryAction[] = HOLDER_KINDS.flatMap(actionsOf);
