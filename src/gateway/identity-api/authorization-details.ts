// Everything about who may do what in an account, in pages: users, groups, roles and policies with their texts
// (GetAccountAuthorizationDetails).

import type { IdentityStore } from '../../accounts/identity-store.ts';
import { xmlElement, xmlText } from '../../base/xml/write-xml.ts';
import {
  type GroupRecord,
  type HolderKind,
  type InlinePolicy,
  identityKeys,
  type RoleRecord,
  type RoleUseRecord,
  type UserRecord,
} from '../../types/records/identity-records.ts';
import { attachedPolicyXml } from './attachments.ts';
import { groupsOf } from './groups.ts';
import { ANY_RESOURCE, defineIamAction } from './iam-action.ts';
import { identityArn, paging } from './identity-parameters.ts';
import { PAGE_CHARACTERS_MAX, pageEndXml, pageOfRows, pageOfSections, type Section } from './list-pages.ts';
import { findVersionText, type ManagedPolicy } from './managed-policies.ts';
import { choice, list } from './parameter-rules.ts';
import { ownPolicies, policyVersionXml, policyXml, readyMadePolicies } from './policies.ts';
import { encodeDocument } from './policy-documents.ts';
import { HOLDER_LABELS } from './policy-holders.ts';
import { xmlMembers, xmlTime } from './query-protocol.ts';
import type { QueryAction } from './query-service.ts';
import { lastUsedXml } from './roles.ts';
import { boundaryXml, tagsXml } from './users.ts';

const KINDS = ['User', 'Role', 'Group', 'LocalManagedPolicy', 'AWSManagedPolicy'] as const;
type Kind = (typeof KINDS)[number];

/** One of them, as its list of the answer shows it. */
interface Detail {
  readonly kind: Kind;
  readonly xml: string;
}

function inlineXml(name: string, policies: readonly InlinePolicy[]): string {
  return xmlMembers(
    name,
    policies.map(
      (policy) => xmlText('PolicyName', policy.name) + xmlText('PolicyDocument', encodeDocument(policy.text)),
    ),
  );
}

function headXml({ accountId }: IdentityStore, holder: UserRecord | GroupRecord | RoleRecord): string {
  const label = HOLDER_LABELS[holder.kind];
  return [
    xmlText('Path', holder.path),
    xmlText(`${label}Name`, holder.name),
    xmlText(`${label}Id`, holder.id),
    xmlText('Arn', identityArn(accountId, holder.kind, holder)),
    xmlTime('CreateDate', holder.createdAtMs),
    inlineXml(`${label}PolicyList`, holder.inlinePolicies),
    xmlMembers('AttachedManagedPolicies', holder.attachedPolicies.map(attachedPolicyXml)),
  ].join('');
}

/** `groupNames`: by id. `use`: of a role. */
function holderXml(
  store: IdentityStore,
  holder: UserRecord | GroupRecord | RoleRecord,
  { groupNames, use }: { groupNames: ReadonlyMap<string, string>; use: RoleUseRecord | undefined },
): string {
  const head = headXml(store, holder);
  if (holder.kind === 'group') return head;
  const limits = (holder.boundary === undefined ? '' : boundaryXml(holder.boundary)) + tagsXml(holder.tags);
  if (holder.kind === 'user') {
    const names = holder.groups.flatMap((id) => groupNames.get(id) ?? []).sort();
    return head + xmlElement('GroupList', ...names.map((name) => xmlText('member', name))) + limits;
  }
  return [
    head,
    xmlText('AssumeRolePolicyDocument', encodeDocument(holder.trustPolicy)),
    // There are none: nothing here runs under a profile.
    xmlElement('InstanceProfileList'),
    limits,
    lastUsedXml(use),
  ].join('');
}

function holderSection(store: IdentityStore, kind: HolderKind, label: Kind): Section<Detail> {
  const prefix = identityKeys[kind]('');
  return {
    prefix,
    read: (page) =>
      pageOfRows(
        store,
        {
          kind,
          prefix,
          async show(rows) {
            const groupIds = rows.flatMap(({ record }) => (record.kind === 'user' ? record.groups : []));
            const groups = await groupsOf(store, { groups: [...new Set(groupIds)] });
            const names = new Map(groups.map(({ id, name }) => [id, name]));
            const ofRoles = rows.map(({ record }) => (record.kind === 'role' ? record.id : ''));
            const uses = await store.findAll('role-use', ofRoles.map(identityKeys.roleUse));
            return rows.map(({ key, record }, at) => ({
              key,
              item: { kind: label, xml: holderXml(store, record, { groupNames: names, use: uses[at] }) },
            }));
          },
          charactersOf: ({ xml }) => xml.length,
        },
        page,
      ),
  };
}

async function policyDetail(
  store: IdentityStore,
  policy: ManagedPolicy,
  usage: Parameters<typeof policyXml>[1],
): Promise<string> {
  const versions: string[] = [];
  for (const version of policy.versions) {
    const document = await findVersionText(store, policy, version.number);
    versions.push(policyVersionXml(policy, version, document));
  }
  return policyXml(policy, usage, { isWhole: true }) + xmlMembers('PolicyVersionList', versions);
}

/** Texts of policies are read one policy after the other, so a page has few policies. */
const POLICIES_IN_PAGE_MAX = 50;

function policySection(
  store: IdentityStore,
  label: 'LocalManagedPolicy' | 'AWSManagedPolicy',
): Section<Detail> {
  // Of the ready-made ones those that somebody has.
  const { prefix, read, keyOf } =
    label === 'LocalManagedPolicy'
      ? ownPolicies(store, () => true, { withTags: true })
      : readyMadePolicies(store, ({ usage }) => usage.attachedCount + usage.boundedCount > 0);
  return {
    prefix,
    async read({ Marker, MaxItems }) {
      const { items, next } = await read({ Marker, MaxItems: Math.min(MaxItems, POLICIES_IN_PAGE_MAX) });
      const details: Detail[] = [];
      let charactersCount = 0;
      for (const [at, { policy, usage }] of items.entries()) {
        await store.turn();
        const xml = await policyDetail(store, policy, usage);
        details.push({ kind: label, xml });
        charactersCount += xml.length;
        const isLast = at === items.length - 1;
        if (charactersCount > PAGE_CHARACTERS_MAX && !isLast) return { items: details, next: keyOf(policy) };
      }
      return { items: details, next };
    },
  };
}

const getAccountAuthorizationDetails = defineIamAction({
  name: 'GetAccountAuthorizationDetails',
  parameters: { Filter: list(choice(KINDS), { countMax: 5 }), ...paging },
  access: () => [ANY_RESOURCE],
  async run({ Filter = [], ...page }, { store }) {
    const sections: Record<Kind, () => Section<Detail>> = {
      User: () => holderSection(store, 'user', 'User'),
      Group: () => holderSection(store, 'group', 'Group'),
      Role: () => holderSection(store, 'role', 'Role'),
      LocalManagedPolicy: () => policySection(store, 'LocalManagedPolicy'),
      AWSManagedPolicy: () => policySection(store, 'AWSManagedPolicy'),
    };
    const kinds = Object.entries(sections) as [Kind, () => Section<Detail>][];
    const wanted = kinds.filter(([kind]) => Filter.length === 0 || Filter.includes(kind));
    const { items, next } = await pageOfSections(
      wanted.map(([, section]) => section()),
      page,
      ({ xml }) => xml.length,
    );
    const of = (...shown: Kind[]) => items.filter(({ kind }) => shown.includes(kind)).map(({ xml }) => xml);
    return [
      xmlMembers('UserDetailList', of('User')),
      xmlMembers('GroupDetailList', of('Group')),
      xmlMembers('RoleDetailList', of('Role')),
      xmlMembers('Policies', of('LocalManagedPolicy', 'AWSManagedPolicy')),
      pageEndXml(next),
    ].join('');
  },
});

export const AUTHORIZATION_DETAIL_ACTIONS: readonly QueryAction[] = [getAccountAuthorizationDetails];
