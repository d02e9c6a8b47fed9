// New account ids, canonical ids and key pairs. Only chance and form; nothing is stored here.
import { toHex } from '../base/bytes/bytes.ts';
import type { RandomPort } from '../ports/clock.ts';
import type { AccountId } from '../types/names.ts';

const DIGITS = '0123456789';
const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const ACCESS_KEY_CHARS = UPPER + DIGITS;
// No "+" and "/", which a base64 secret would have: they break when pasted into URLs and shells.
const SECRET_KEY_CHARS = UPPER + UPPER.toLowerCase() + DIGITS;

const BASE32 = `${UPPER}234567`;

/** 12 decimal digits, as in ARNs; never beginning with 0, which spreadsheets drop. */
export function mintAccountId(random: RandomPort): AccountId {
  return (pick(random, { chars: DIGITS.slice(1), length: 1 }) +
    pick(random, { chars: DIGITS, length: 11 })) as AccountId;
}

/** 64 hex digits. */
export function mintCanonicalId(random: RandomPort): string {
  return toHex(random.bytes(32));
}

/** An access key of 20 characters (93 random bits) and a secret key of 40 (238 bits). */
export function mintKeyPair(random: RandomPort): { accessKey: string; secretKey: string } {
  return {
    accessKey: `HF${pick(random, { chars: ACCESS_KEY_CHARS, length: 18 })}`,
    secretKey: pick(random, { chars: SECRET_KEY_CHARS, length: 40 }),
  };
}

/** An API key of 40 characters (238 random bits); its first 8 name it. */
export function mintApiKey(random: RandomPort): string {
  return pick(random, { chars: SECRET_KEY_CHARS, length: 40 });
}

/** Of users (AIDA), groups (AGPA), roles (AROA), policies (ANPA), access keys of sessions (ASIA), as AWS writes them: 85 random bits. */
export function mintIdentityId(
  random: RandomPort,
  prefix: 'AIDA' | 'AGPA' | 'AROA' | 'ANPA' | 'ASIA',
): string {
  return prefix + pick(random, { chars: BASE32, length: 17 });
}

/** Characters drawn evenly: bytes beyond the last whole multiple of the alphabet are thrown away. */
function pick(random: RandomPort, options: { chars: string; length: number }): string {
  const { chars, length } = options;
  const fair = 256 - (256 % chars.length);
  let text = '';
  while (text.length < length) {
    for (const byte of random.bytes(length * 2)) {
      if (byte < fair && text.length < length) text += chars[byte % chars.length];
    }
  }
  return text;
}
