// What the parts of the tree of accounts share: its records as callers may see them, and how one of them is replaced.
import { type MetadataPort, type OutcomeOf, SYSTEM_SHARD } from '../ports/metadata/port.ts';
import { AppError } from '../types/errors.ts';
import type {
  CustomerRecord,
  MemberRecord,
  NewTenancyRecord,
  PartnerRecord,
  TenancyKind,
  TenancyRecord,
} from '../types/records/tenancy-records.ts';
import { requireDone } from '../types/require-done.ts';
import type { ContactChanges } from '../types/tenancy.ts';
import { CONTACT_FIELDS } from '../types/tenancy.ts';
import { checkPrintable, refuse } from './account-rules.ts';
import type { ApiCaller, Page, PageOf, ParentView } from './tenancy.ts';
import type { EntryOf, TenancyDirectory } from './tenancy-directory.ts';
import { isVisible, noSuch, type PartnersAbove, tenantOf } from './tenancy-rules.ts';

const TEXT_CHARACTERS_MAX = 255;

export type CustomerEntry = EntryOf<'customer'>;
export type PartnerEntry = EntryOf<'partner'>;

export class TenancyTree {
  readonly directory: TenancyDirectory;
  readonly #metadata: MetadataPort;

  constructor(metadata: MetadataPort, directory: TenancyDirectory) {
    this.#metadata = metadata;
    this.directory = directory;
  }

  aboveCustomer({ controlId, channelId }: Pick<CustomerRecord, 'controlId' | 'channelId'>): PartnersAbove {
    return [channelId, controlId, this.directory.find('partner', controlId)?.parentId];
  }

  abovePartner({ id, parentId }: Pick<PartnerRecord, 'id' | 'parentId'>): PartnersAbove {
    return [id, parentId, this.directory.find('partner', parentId)?.parentId];
  }

  /** Those of a kind that a caller has asked for, by id ascending. */
  async filter<K extends TenancyKind>(
    caller: ApiCaller,
    kind: K,
    isWanted: (entry: EntryOf<K>) => boolean,
  ): Promise<EntryOf<K>[]> {
    const found: EntryOf<K>[] = [];
    await this.directory.walk(kind, tenantOf(caller), (entry) => {
      if (isWanted(entry)) found.push(entry);
    });
    return found;
  }

  parent(id: number | undefined): ParentView | undefined {
    const partner = this.directory.find('partner', id);
    return partner && { id: partner.id, name: partner.name, email: partner.email };
  }

  /** The partners above a sub-account, by level. */
  parentsOf({ controlId, channelId }: Pick<CustomerRecord, 'controlId' | 'channelId'>) {
    const control = this.parent(controlId) ?? { id: controlId, name: '', email: '' };
    const governance = this.parent(this.directory.find('partner', controlId)?.parentId);
    const channel = this.parent(channelId);
    return { control, ...(governance && { governance }), ...(channel && { channel }) };
  }

  /** Throws NoSuchEntity, also for one outside of the caller's tree. */
  async requirePartner(
    caller: ApiCaller,
    id: number,
    options: { includeDeleted?: boolean | undefined } = {},
  ): Promise<PartnerRecord> {
    const [record] = await this.directory.read('partner', [id]);
    if (record === undefined || !isVisible(caller, this.abovePartner(record))) throw noSuch('account');
    if (record.deletedAtMs !== undefined && options.includeDeleted !== true) throw noSuch('account');
    return record;
  }

  /** Likewise. `field`: that has named it. */
  async requireCustomer(
    caller: ApiCaller,
    id: number,
    { includeDeleted = false, field }: { includeDeleted?: boolean | undefined; field?: string } = {},
  ): Promise<CustomerRecord> {
    const [record] = await this.directory.read('customer', [id]);
    if (record === undefined || !isVisible(caller, this.aboveCustomer(record)))
      throw noSuch('sub-account', field);
    if (record.deletedAtMs !== undefined && !includeDeleted) throw noSuch('sub-account', field);
    return record;
  }

  /** Likewise. */
  async requireMember(
    caller: ApiCaller,
    id: number,
  ): Promise<{ member: MemberRecord; customer: CustomerRecord }> {
    const [member] = await this.directory.read('member', [id]);
    if (member === undefined || member.deletedAtMs !== undefined) throw noSuch('member');
    const [customer] = await this.directory.read('customer', [member.customerId]);
    if (customer === undefined || !isVisible(caller, this.aboveCustomer(customer))) throw noSuch('member');
    if (customer.deletedAtMs !== undefined) throw noSuch('member');
    return { member, customer };
  }

  /** Throws ConcurrentModification where somebody was faster, EntityAlreadyExists for a login that is taken. */
  async write(changes: {
    add?: NewTenancyRecord[];
    replace?: { record: TenancyRecord; ifRevision: number }[];
  }): Promise<TenancyRecord[]> {
    const outcome: OutcomeOf<'change-tenancy'> = requireDone(
      await this.#metadata.execute({ shard: SYSTEM_SHARD }, 'change-tenancy', changes),
    );
    if (outcome.kind === 'conflict') throw new AppError('ConcurrentModification');
    if (outcome.kind === 'taken') throw taken('username', 'A member with this username already exists.');
    return outcome.records;
  }
}

export function taken(field: string, message: string): AppError {
  return new AppError('EntityAlreadyExists', { message, fields: { [field]: 'is taken' } });
}

/** A page of entries; beyond the end: none, and the true total. */
export function pageOf<T>(items: readonly T[], { page, size }: Page): PageOf<T> {
  return { items: items.slice((page - 1) * size, page * size), total: items.length };
}

/** Whether a text holds another, without case; true where nothing is looked for. */
export function holds(text: string, part: string | undefined): boolean {
  return part === undefined || text.toLowerCase().includes(part.toLowerCase());
}

/** Whether a filter that may be absent is met. */
export function meets<T>(wanted: T | undefined, value: T | undefined): boolean {
  return wanted === undefined || wanted === value;
}

/** Fields with changes applied: null takes a field away. Throws ValidationError for one that is too long, or unprintable. */
export function mergeTexts<T extends object>(
  before: T,
  changes: Readonly<Record<string, string | null | undefined>>,
): T {
  const after = { ...before } as Record<string, unknown>;
  for (const [field, value] of Object.entries(changes)) {
    if (value === undefined) continue;
    if (value === null) delete after[field];
    else if (value.length > TEXT_CHARACTERS_MAX)
      refuse({ [field]: `must have ${TEXT_CHARACTERS_MAX} characters at most` });
    else {
      checkPrintable({ [field]: value });
      after[field] = value;
    }
  }
  return after as T;
}

/** The contact fields of what was given, and nothing else. */
export function contactOnly(given: ContactChanges = {}): ContactChanges {
  return Object.fromEntries(
    CONTACT_FIELDS.flatMap((field) => (given[field] === undefined ? [] : [[field, given[field]]])),
  );
}

/** Extensions 1.4. Throws ValidationError. */
export function checkLoginPassword(password: string): void {
  const kinds = [/[A-Z]/, /[a-z]/, /[0-9]/, /[^A-Za-z0-9]/];
  if (password.length < 6 || password.length > 128 || !kinds.every((kind) => kind.test(password)))
    refuse({
      password: 'must have 6 to 128 characters, with a digit, an upper-case, a lower-case and a special one',
    });
}
