// Parameters that many actions of IAM share, with the rules of AWS's API reference, and ARNs of what they name.
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId } from '../../types/names.ts';
import type { Tag } from '../../types/tags.ts';
import {
  integer,
  list,
  orElse,
  type Rule,
  required,
  structures,
  text,
  validationError,
} from './parameter-rules.ts';

const NAME = /^[\w+=,.@-]+$/;

function name(charactersMax: number): Rule<string | undefined> {
  return text({
    charactersMax,
    pattern: NAME,
    patternMessage: (at) =>
      `The specified value for ${at} is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-`,
  });
}

/** Of a user that is made, or gets the name. */
export const newUserName = name(64);
export const userName = name(128);
export const groupName = name(128);
export const roleName = name(64);
export const policyName = name(128);

/** Of a user, group, role or policy that is made; `/` where none is sent. */
export const newPath = text({
  charactersMax: 512,
  pattern: /^(?:\/|\/[\x21-\x7e]+\/)$/,
  patternMessage: (at) =>
    `The specified value for ${at} is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.`,
});
export const pathOrRoot = orElse(newPath, '/');
export const pathPrefix = orElse(
  text({
    charactersMax: 512,
    pattern: /^\/[\x21-\x7f]*$/,
    patternMessage: (at) =>
      `The specified value for ${at} is invalid. It must begin with the / character and contain only ASCII characters.`,
  }),
  '/',
);

export const policyArn = text({ charactersMin: 20, charactersMax: 2048 });

const TAG_TEXT = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;
const tagKey = text({ charactersMax: LIMITS.tagKeyUnitsMax, pattern: TAG_TEXT });
const sentTags = structures(
  {
    Key: required(tagKey),
    Value: required(text({ charactersMin: 0, charactersMax: LIMITS.tagValueUnitsMax, pattern: TAG_TEXT })),
  },
  { countMax: LIMITS.identityTagsMax },
);

/** Tags that a request gives. Of repeated keys checkTags makes an error. */
export const tags: Rule<Tag[] | undefined> = {
  read: (place, problems) =>
    sentTags.read(place, problems)?.map(({ Key, Value }) => ({ key: Key, value: Value })),
};
export const tagKeys = list(tagKey, { countMax: LIMITS.identityTagsMax });

/** Throws InvalidInput: keys differ in more than case (AWS "Tagging IAM resources"), and are nobody's own. */
export function checkTags(given: readonly Tag[]): void {
  const keys = new Set(given.map(({ key }) => key.toLowerCase()));
  if (keys.size < given.length) {
    const message = 'Duplicate tag keys found. Please note that Tag keys are case insensitive.';
    throw new AppError('InvalidInput', { message });
  }
  if ([...keys].some((key) => key.startsWith('aws:'))) {
    const message = 'Tag keys that begin with aws: are reserved for system use.';
    throw new AppError('InvalidInput', { message });
  }
}

/** The tags of something once the request has added its own; LimitExceeded for too many. Throws as checkTags. */
export function mergeTags(before: readonly Tag[], given: readonly Tag[]): Tag[] {
  checkTags(given);
  const replaced = new Set(given.map(({ key }) => key.toLowerCase()));
  const merged = [...before.filter(({ key }) => !replaced.has(key.toLowerCase())), ...given];
  if (merged.length > LIMITS.identityTagsMax) {
    const message = `The number of tags has reached the maximum limit of ${LIMITS.identityTagsMax}.`;
    throw new AppError('LimitExceeded', { message });
  }
  return merged;
}

export function removeTags(before: readonly Tag[], keys: readonly string[]): Tag[] {
  const removed = new Set(keys.map((key) => key.toLowerCase()));
  return before.filter(({ key }) => !removed.has(key.toLowerCase()));
}

/** Which part of a list is wanted. */
export const paging = {
  Marker: text({ charactersMax: 320, pattern: /^[\x20-\xff]+$/ }),
  MaxItems: orElse(integer({ min: 1, max: 1000 }), 100),
} as const;

/** `user/division/name`, as ARNs and resources have it. */
export function identityArn(
  accountId: AccountId,
  type: 'user' | 'group' | 'role' | 'policy' | 'mfa',
  { path, name }: { path: string; name: string },
): string {
  return `arn:aws:iam::${accountId}:${type}${path}${name}`;
}

/** Markers are texts that lists go on behind; clients see them encoded. */
export function writeMarker(after: string): string {
  return Buffer.from(after).toString('base64url');
}

/** Throws ValidationError. */
export function readMarker(marker: string | undefined): string | undefined {
  if (marker === undefined) return undefined;
  const after = Buffer.from(marker, 'base64url').toString();
  if (writeMarker(after) !== marker) throw validationError(`Invalid Marker: ${marker}`);
  return after;
}
