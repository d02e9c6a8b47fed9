// Tags of an object version, and what makes a set of them a valid one (s3-behaviour 44; AWS "Categorizing your storage
// using tags"). Reading them from requests is the gateway's.
import { LIMITS } from './limits.ts';

export interface Tag {
  /** Case-sensitive, unique within its set. */
  key: string;
  /** May be empty. */
  value: string;
}

/** Why a set of tags is none; `tag` is the first that is wrong. */
export type TagFault =
  | { kind: 'too-many' }
  | { kind: 'key' | 'value' | 'reserved-key' | 'repeated-key'; tag: Tag };

/** Letters, digits and spaces of any language, and a few marks. */
const ALLOWED = /^[\p{L}\p{N}\p{Z}+\-=._:/@]*$/u;
/** Kept for the service, in any case. */
const RESERVED = /^aws:/i;

/** Lengths are counted in UTF-16 units, as AWS counts them. */
export function findTagFault(tags: readonly Tag[]): TagFault | undefined {
  if (tags.length > LIMITS.tagsMax) return { kind: 'too-many' };
  const keys = new Set<string>();
  for (const tag of tags) {
    const { key, value } = tag;
    if (key === '' || key.length > LIMITS.tagKeyUnitsMax || !ALLOWED.test(key)) return { kind: 'key', tag };
    if (RESERVED.test(key)) return { kind: 'reserved-key', tag };
    if (value.length > LIMITS.tagValueUnitsMax || !ALLOWED.test(value)) return { kind: 'value', tag };
    if (keys.has(key)) return { kind: 'repeated-key', tag };
    keys.add(key);
  }
  return undefined;
}
