// Governance, control and channel accounts: who is charged for sub-accounts. Operators make and change them; they own nothing in S3.

import type { PartnerRecord } from '../types/records/tenancy-records.ts';
import { checkAccountFields, normaliseEmail, refuse } from './account-rules.ts';
import type { ApiCaller, PageOf, PartnerChanges, PartnerFilter, PartnerView, Tenancy } from './tenancy.ts';
import { isVisible, knowsGovernance, noSuch, requireAct, tenantOf } from './tenancy-rules.ts';
import { contactOnly, holds, meets, mergeTexts, pageOf, type TenancyTree } from './tenancy-tree.ts';

type Partners = Pick<Tenancy, 'listPartners' | 'getPartner' | 'createPartner' | 'changePartner'>;

export function createPartners(tree: TenancyTree): Partners {
  const { directory } = tree;

  /** Sub-accounts by partner, and channel accounts by control account. */
  async function counts(caller: ApiCaller, includeDeleted: boolean | undefined) {
    const [subAccounts, channels] = [new Map<number, number>(), new Map<number, number>()];
    const add = (map: Map<number, number>, id: number) => map.set(id, (map.get(id) ?? 0) + 1);
    await directory.walk('customer', tenantOf(caller), (entry) => {
      if (entry.deletedAtMs !== undefined && includeDeleted !== true) return;
      for (const id of tree.aboveCustomer(entry)) if (id !== undefined) add(subAccounts, id);
    });
    for (const { level, parentId, status } of directory.all('partner'))
      if (level === 'channel' && status !== 'deleted' && parentId !== undefined) add(channels, parentId);
    return { subAccounts, channels };
  }

  function viewOf(record: PartnerRecord, counted: Awaited<ReturnType<typeof counts>>): PartnerView {
    const { kind: _kind, revision: _revision, parentId, ...rest } = record;
    const parent = tree.parent(parentId);
    const isChannel = record.level === 'channel';
    const governance = isChannel ? tree.parent(directory.find('partner', parentId)?.parentId) : parent;
    return {
      ...rest,
      ...(governance && { governance }),
      ...(isChannel && parent && { control: parent }),
      subAccountsCount: counted.subAccounts.get(record.id) ?? 0,
      channelAccountsCount: counted.channels.get(record.id) ?? 0,
    };
  }

  async function getPartner(
    caller: ApiCaller,
    id: number,
    options: NonNullable<Parameters<Tenancy['getPartner']>[2]> = {},
  ): Promise<PartnerView> {
    await directory.refresh();
    const record = await tree.requirePartner(caller, id, options);
    if (!meets(options.level, record.level)) throw noSuch('account');
    return viewOf(record, await counts(caller, options.includeDeletedSubAccounts));
  }

  return {
    async listPartners(caller, filter: PartnerFilter, page): Promise<PageOf<PartnerView>> {
      await directory.refresh();
      const { level, id, name, email, status } = filter;
      const governanceAccountId = knowsGovernance(caller) ? filter.governanceAccountId : undefined;
      const found = await tree.filter(caller, 'partner', (entry) => {
        if (entry.status === 'deleted' && filter.includeDeleted !== true) return false;
        if (!meets(level, entry.level) || !meets(id, entry.id) || !meets(status, entry.status)) return false;
        if (!holds(entry.name, name) || !holds(entry.email, email)) return false;
        const above = tree.abovePartner(entry);
        const isBelow = governanceAccountId === undefined || above.slice(1).includes(governanceAccountId);
        return isBelow && isVisible(caller, above);
      });
      const { items, total } = pageOf(found, page);
      const ids = items.map((entry) => entry.id);
      const counted = await counts(caller, filter.includeDeletedSubAccounts);
      const records = await directory.read('partner', ids);
      return { items: records.map((record) => viewOf(record, counted)), total };
    },
    getPartner,
    async createPartner(caller, { level, parentId, name, email, contact }) {
      requireAct(caller, 'operate');
      checkAccountFields({ name, email });
      await directory.refresh();
      const parent = directory.find('partner', parentId);
      if (parentId !== undefined && (parent === undefined || parent.status === 'deleted'))
        throw noSuch('parent account');
      const wanted = { governance: undefined, control: 'governance', channel: 'control' }[level];
      const isFitting = parent === undefined ? level !== 'channel' : parent.level === wanted;
      if (!isFitting) refuse({ parentId: wanted ? `must be a ${wanted} account` : 'is for other accounts' });
      const [record] = await tree.write({
        add: [
          {
            kind: 'partner',
            level,
            ...(parentId !== undefined && { parentId }),
            name,
            email: normaliseEmail(email),
            status: 'active',
            contact: mergeTexts({}, contactOnly(contact)),
          },
        ],
      });
      return getPartner(caller, record?.id ?? 0);
    },
    async changePartner(caller, id, { name, email, status, contact }: PartnerChanges) {
      requireAct(caller, 'operate');
      checkAccountFields({ ...(name !== undefined && { name }), ...(email !== undefined && { email }) });
      await directory.refresh();
      const before = await tree.requirePartner(caller, id);
      const record: PartnerRecord = {
        ...before,
        ...(name !== undefined && { name }),
        ...(email !== undefined && { email: normaliseEmail(email) }),
        ...(status !== undefined && { status }),
        contact: mergeTexts(before.contact, contactOnly(contact)),
      };
      await tree.write({ replace: [{ record, ifRevision: before.revision }] });
      return getPartner(caller, id);
    },
  };
}
