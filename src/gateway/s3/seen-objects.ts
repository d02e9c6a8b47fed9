// Stored objects as the decisions about a request have seen them. Before the object is read, another one that the caller may not
// read may take its place: what is read is held against what was judged.
import { isDeepStrictEqual } from 'node:util';
import type { StoredObject } from '../../policy/authorize.ts';
import type { Grant } from '../../types/acl.ts';
import type { AccountId, BucketId, ObjectKey, VersionId } from '../../types/names.ts';
import type { Tag } from '../../types/tags.ts';

export interface SeenAddress {
  readonly bucketId: BucketId;
  readonly key: ObjectKey;
  /** Absent: the current version. */
  readonly versionId?: VersionId | undefined;
}

/** What policies and lists look at. */
interface Judged {
  readonly owner: AccountId;
  readonly acl?: readonly Grant[] | undefined;
  readonly tags?: readonly Tag[] | undefined;
}

interface Seen {
  readonly owner: AccountId;
  readonly acl: readonly Grant[];
  readonly tags: readonly Tag[];
}

export class SeenObjects {
  readonly #seen = new Map<string, (Seen | undefined)[]>();

  /** undefined: none was there. */
  note(address: SeenAddress, object: StoredObject | undefined): void {
    const judged = object && judgedOf({ owner: object.acl.owner, acl: object.acl.grants, tags: object.tags });
    const name = nameOf(address);
    this.#seen.set(name, [...(this.#seen.get(name) ?? []), judged]);
  }

  /** The object as a decision has seen it last; undefined: none has looked, or none was there. */
  last(address: SeenAddress): { readonly owner: AccountId; readonly tags: readonly Tag[] } | undefined {
    const judged = this.#seen.get(nameOf(address))?.at(-1);
    return judged && { owner: judged.owner, tags: judged.tags };
  }

  /** As all decisions have seen it; null: none was there. undefined: none has looked, `changed`: not all have seen the same. */
  agreed(address: SeenAddress): Seen | null | undefined | 'changed' {
    const [first, ...others] = this.#seen.get(nameOf(address)) ?? [];
    if (others.some((each) => !isDeepStrictEqual(each, first))) return 'changed';
    return this.#seen.has(nameOf(address)) ? (first ?? null) : undefined;
  }

  /** `same` also where no decision has looked at it. `missing`: none was there when it was judged. */
  compare(address: SeenAddress, found: Judged): 'same' | 'missing' | 'changed' {
    const seen = this.#seen.get(nameOf(address)) ?? [];
    if (seen.includes(undefined)) return 'missing';
    const judged = judgedOf(found);
    return seen.every((each) => isDeepStrictEqual(each, judged)) ? 'same' : 'changed';
  }
}

function nameOf({ bucketId, key, versionId = '' as VersionId }: SeenAddress): string {
  return `${bucketId} ${versionId} ${key}`;
}

function judgedOf({ owner, acl = [], tags = [] }: Judged): Seen {
  return { owner, acl, tags };
}
