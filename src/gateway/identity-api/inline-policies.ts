// Policies that are part of a user, group or role: put, shown, removed, listed; the same for all three.

import type { IdentityStore } from '../../accounts/identity-store.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import { countCharacters, POLICY_SIZES } from '../../policy/documents/compile-policy.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type HolderKind, type InlinePolicy, identityKeys } from '../../types/records/identity-records.ts';
import { defineIamAction } from './iam-action.ts';
import { paging, policyName } from './identity-parameters.ts';
import { pageEndXml, pageOf } from './list-pages.ts';
import { required } from './parameter-rules.ts';
import { encodeDocument, policyDocument, requireDocument } from './policy-documents.ts';
import {
  HOLDER_KINDS,
  HOLDER_LABELS,
  holderName,
  holderTarget,
  type PolicyHolder,
  requireHolder,
} from './policy-holders.ts';
import type { QueryAction } from './query-service.ts';

const CHARACTERS_MAX: Readonly<Record<HolderKind, number>> = {
  user: POLICY_SIZES.userInlineCharactersMax,
  group: POLICY_SIZES.groupInlineCharactersMax,
  role: POLICY_SIZES.roleInlineCharactersMax,
};

/** Throws LimitExceeded: policies of one holder count together, without their white space. */
function requireRoom(
  policies: readonly InlinePolicy[],
  { kind, name }: { kind: HolderKind; name: string },
): void {
  let characters = 0;
  let withBlanks = 0;
  for (const { text } of policies) {
    characters += countCharacters(text);
    withBlanks += text.length;
  }
  const max = CHARACTERS_MAX[kind];
  if (characters <= max && withBlanks <= LIMITS.inlineDocumentsCharactersMax) return;
  const message = `Maximum policy size of ${max} bytes exceeded for ${kind} ${name}`;
  throw new AppError('LimitExceeded', { message });
}

/** The holder with its policy of that name; names are compared as they are. Throws NoSuchEntity. */
async function requirePolicy(
  store: IdentityStore,
  of: { kind: HolderKind; name: string },
  policyName: string,
): Promise<{ holder: PolicyHolder; policy: InlinePolicy }> {
  const holder = await requireHolder(store, of);
  const policy = holder.inlinePolicies.find(({ name }) => name === policyName);
  if (policy !== undefined) return { holder, policy };
  const message = `The ${of.kind} policy with name ${policyName} cannot be found.`;
  throw new AppError('NoSuchEntity', { message });
}

function actionsOf(kind: HolderKind): QueryAction[] {
  const label = HOLDER_LABELS[kind];
  const Holder = holderName(kind);

  const put = defineIamAction({
    name: `Put${label}Policy`,
    parameters: { Holder, PolicyName: required(policyName), PolicyDocument: required(policyDocument) },
    access: async ({ Holder: name }, context) => [await holderTarget(context, { kind, name })],
    async run({ Holder: name, PolicyName, PolicyDocument: text }, { store }) {
      const holder = await requireHolder(store, { kind, name });
      requireDocument(text, 'identity');
      const others = holder.inlinePolicies.filter((policy) => policy.name !== PolicyName);
      const inlinePolicies = [...others, { name: PolicyName, text }];
      requireRoom(inlinePolicies, holder);
      store.put(identityKeys[kind](name), { ...holder, inlinePolicies });
      return undefined;
    },
  });

  const get = defineIamAction({
    name: `Get${label}Policy`,
    parameters: { Holder, PolicyName: required(policyName) },
    access: async ({ Holder: name }, context) => [await holderTarget(context, { kind, name })],
    async run({ Holder: name, PolicyName }, { store }) {
      const { holder, policy } = await requirePolicy(store, { kind, name }, PolicyName);
      return [
        xmlText(`${label}Name`, holder.name),
        xmlText('PolicyName', policy.name),
        xmlText('PolicyDocument', encodeDocument(policy.text)),
      ].join('');
    },
  });

  const remove = defineIamAction({
    name: `Delete${label}Policy`,
    parameters: { Holder, PolicyName: required(policyName) },
    access: async ({ Holder: name }, context) => [await holderTarget(context, { kind, name })],
    async run({ Holder: name, PolicyName }, { store }) {
      const { holder, policy } = await requirePolicy(store, { kind, name }, PolicyName);
      const inlinePolicies = holder.inlinePolicies.filter((each) => each !== policy);
      store.put(identityKeys[kind](name), { ...holder, inlinePolicies });
      return undefined;
    },
  });

  const list = defineIamAction({
    name: `List${label}Policies`,
    parameters: { Holder, ...paging },
    access: async ({ Holder: name }, context) => [await holderTarget(context, { kind, name })],
    async run({ Holder: name, ...page }, { store }) {
      const { inlinePolicies } = await requireHolder(store, { kind, name });
      const { items, next } = pageOf(inlinePolicies, (policy) => policy.name, page);
      const members = items.map((policy) => xmlText('member', policy.name));
      return xmlElement('PolicyNames', ...members) + pageEndXml(next);
    },
  });

  return [put, get, remove, list];
}

export const INLINE_POLICY_ACTIONS: readonly QueryAction[] = HOLDER_KINDS.flatMap(actionsOf);
