// What a gateway knows of the tree of accounts without asking: a short entry for each record, in order of id, so that lists filter
// and page over all of them. It is brought up to date before each use: usually the shard answers that nothing has changed.
import { createFairTurns } from '../base/async/fair-turns.ts';
import type { Steps } from '../base/async/steps.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import type { AccountId } from '../types/names.ts';
import type {
  CustomerRecord,
  MemberRecord,
  PartnerRecord,
  PartnerUserRecord,
  TenancyKind,
  TenancyRecord,
} from '../types/records/tenancy-records.ts';
import { requireDone } from '../types/require-done.ts';

type Common = 'id' | 'revision' | 'createdAtMs' | 'deletedAtMs' | 'kind';
type PartnerEntry = Pick<PartnerRecord, Common | 'level' | 'parentId' | 'name' | 'email' | 'status'>;
type UserEntry = Pick<PartnerUserRecord, Common | 'partnerId' | 'email' | 'status'>;
type CustomerEntry = Pick<
  CustomerRecord,
  Common | 'accountId' | 'controlId' | 'channelId' | 'name' | 'email' | 'state'
>;
type MemberEntry = Pick<MemberRecord, Common | 'customerId' | 'username' | 'role' | 'status'>;
export type DirectoryEntry = PartnerEntry | UserEntry | CustomerEntry | MemberEntry;
export type EntryOf<K extends TenancyKind> = Extract<DirectoryEntry, { kind: K }>;

const PAGE = 500;
/** Entries that are looked at in one turn: less than a millisecond. */
const ENTRIES_OF_STEP = 1000;
/** Records of one answer of `read-tenancy`: a megabyte, where all are as long as they may be. */
const READ_MAX = 100;
/** Above all ids: a row's key has six bytes for one. */
const IDS_END = 2 ** 48;

export interface TenancyDirectory {
  /** Resolves when all is known that was answered to anybody before the call. */
  refresh(): Promise<void>;
  /** The entry of an id, if it is of this kind. */
  find<K extends TenancyKind>(kind: K, id: number | undefined): EntryOf<K> | undefined;
  /** All of a kind, by id ascending: where there are few, or little is done with each. */
  all<K extends TenancyKind>(kind: K): readonly EntryOf<K>[];
  /** Visits all of a kind, by id ascending, some at a time. `owner`: whose turns it takes. */
  walk<K extends TenancyKind>(kind: K, owner: string, visit: (entry: EntryOf<K>) => void): Promise<void>;
  customerOf(accountId: AccountId): EntryOf<'customer'> | undefined;
  /** Whole records, in the order of the ids; those that are not of the kind are left out. */
  read<K extends TenancyKind>(
    kind: K,
    ids: readonly number[],
  ): Promise<Extract<TenancyRecord, { kind: K }>[]>;
}

export function createTenancyDirectory(metadata: MetadataPort): TenancyDirectory {
  const entries = new Map<number, DirectoryEntry>();
  const byAccount = new Map<AccountId, number>();
  /** By id ascending. */
  const lists = new Map<TenancyKind, DirectoryEntry[]>();
  const turns = createFairTurns();
  const system = { shard: SYSTEM_SHARD };
  let since = 0;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  async function ask(): Promise<void> {
    for (;;) {
      const page = requireDone(await metadata.query(system, 'tenancy-changes', { since, limit: PAGE }));
      if (page.lastChange < since) {
        // Another history (R23): nothing that was known counts.
        for (const known of [entries, byAccount, lists]) known.clear();
        since = 0;
        continue;
      }
      for (const record of page.records) note(record);
      since = page.upTo;
      if (page.isAll) return;
    }
  }

  function note(record: TenancyRecord): void {
    const entry = entryOf(record);
    entries.set(record.id, entry);
    if (record.kind === 'customer') byAccount.set(record.accountId, record.id);
    const list = lists.get(record.kind) ?? [];
    lists.set(record.kind, list);
    const at = placeOf(list, record.id);
    list.splice(at, list[at]?.id === record.id ? 1 : 0, entry);
  }

  function all<K extends TenancyKind>(kind: K): readonly EntryOf<K>[] {
    return (lists.get(kind) ?? []) as EntryOf<K>[];
  }

  function find<K extends TenancyKind>(kind: K, id: number | undefined): EntryOf<K> | undefined {
    const entry = id === undefined ? undefined : entries.get(id);
    return entry?.kind === kind ? (entry as EntryOf<K>) : undefined;
  }

  return {
    refresh() {
      // One that runs already may have asked before a change that the caller must see: the next one has not.
      if (running === undefined) {
        running = ask().finally(() => {
          running = undefined;
        });
        return running;
      }
      next ??= running
        .catch(() => {})
        .then(() => {
          next = undefined;
          running = ask().finally(() => {
            running = undefined;
          });
          return running;
        });
      return next;
    },
    find,
    all,
    walk: (kind, owner, visit) => turns.finish({ owner, work: 'accounts' }, stepsOver(all(kind), visit)),
    customerOf: (accountId) => find('customer', byAccount.get(accountId)),
    async read(kind, ids) {
      const found: TenancyRecord[] = [];
      // A client may ask for any number.
      const possible = ids.filter((id) => id < IDS_END);
      for (let at = 0; at < possible.length; at += READ_MAX) {
        const query = { ids: possible.slice(at, at + READ_MAX) };
        const { records } = requireDone(await metadata.query(system, 'read-tenancy', query));
        for (const record of records) if (record?.kind === kind) found.push(record);
      }
      return found as Extract<TenancyRecord, { kind: typeof kind }>[];
    },
  };
}

/** Where an id is in a list by ids, or would be. Nearly always at the end: what is new has a larger one. */
function placeOf(list: readonly DirectoryEntry[], id: number): number {
  let [from, to] = [0, list.length];
  if ((list.at(-1)?.id ?? 0) < id) return to;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((list[middle]?.id ?? 0) < id) from = middle + 1;
    else to = middle;
  }
  return from;
}

function* stepsOver<Entry>(list: readonly Entry[], visit: (entry: Entry) => void): Steps<void> {
  let count = 0;
  for (const entry of list) {
    if (count++ > 0 && count % ENTRIES_OF_STEP === 0) yield;
    visit(entry);
  }
}

function entryOf(record: TenancyRecord): DirectoryEntry {
  const { id, revision, createdAtMs, deletedAtMs } = record;
  const common = { id, revision, createdAtMs, ...(deletedAtMs !== undefined && { deletedAtMs }) };
  switch (record.kind) {
    case 'partner': {
      const { kind, level, parentId, name, email, status } = record;
      return { ...common, kind, level, name, email, status, ...(parentId !== undefined && { parentId }) };
    }
    case 'partner-user': {
      const { kind, partnerId, email, status } = record;
      return { ...common, kind, partnerId, email, status };
    }
    case 'customer': {
      const { kind, accountId, controlId, channelId, name, email, state } = record;
      const channel = channelId !== undefined && { channelId };
      return { ...common, kind, accountId, controlId, name, email, state, ...channel };
    }
    case 'member': {
      const { kind, customerId, username, role, status } = record;
      return { ...common, kind, customerId, username, role, status };
    }
  }
}
