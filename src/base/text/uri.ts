// Percent encoding by bytes (RFC 3986). Texts that stand for bytes hold one character, 0-255, for each: that is how
// Node gives the request line, and it keeps malformed UTF-8 apart from what is merely encoded.
import { fromUtf8 } from '../bytes/bytes.ts';

const PLAIN = /^[A-Za-z0-9\-._~]*$/;
const PLAIN_PATH = /^[A-Za-z0-9\-._~/]*$/;
const PERCENT = 0x25;
const PLUS = 0x2b;
const SPACE = 0x20;
/** By character code, of up to 127; -1 for what is no hex digit. */
const HEX_VALUE = Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  return /[0-9a-fA-F]/.test(character) ? Number.parseInt(character, 16) : -1;
});
const NON_ASCII = /[\u0080-\u00ff]/;
const UNRESERVED = new Set(Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~'));
const SLASH = 0x2f;
/** By byte. */
const IS_UNRESERVED: readonly boolean[] = Array.from({ length: 256 }, (_, byte) => UNRESERVED.has(byte));
const HEX_DIGITS = Buffer.from('0123456789ABCDEF');

/** The bytes that `text` encodes, one character each; undefined when a percent sign begins no pair of hex digits. */
export function percentDecode(text: string): string | undefined {
  return text.includes('%') ? decode(text, PLUS) : text;
}

/** As percentDecode, for a name or value of a query: a plus is a space. */
export function queryDecode(text: string): string | undefined {
  return text.includes('+') || text.includes('%') ? decode(text, SPACE) : text;
}

/** `plus`: the byte that a plus stands for. */
function decode(text: string, plus: number): string | undefined {
  // A text may hold ten thousand of them: a loop takes a twentieth of what replacing each takes.
  const bytes = Buffer.allocUnsafe(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    let byte = text.charCodeAt(at);
    if (byte === PERCENT) {
      const high = HEX_VALUE[text.charCodeAt(at + 1)] ?? -1;
      const low = HEX_VALUE[text.charCodeAt(at + 2)] ?? -1;
      if (high < 0 || low < 0) return undefined;
      byte = 16 * high + low;
      at += 2;
    } else if (byte === PLUS) byte = plus;
    bytes[length++] = byte;
  }
  return bytes.toString('latin1', 0, length);
}

/** Encodes everything but unreserved characters, as signatures want it. Takes bytes, one character each. */
export function percentEncode(bytes: string): string {
  return PLAIN.test(bytes) ? bytes : encodeEach(bytes, false);
}

/** As percentEncode, with slashes kept. */
export function percentEncodePath(bytes: string): string {
  return PLAIN_PATH.test(bytes) ? bytes : encodeEach(bytes, true);
}

/**
 * The same path with everything encoded that is not unreserved, and nothing else but the slashes that were. Undefined
 * when a percent sign begins no pair of hex digits.
 */
export function percentReencodePath(path: string): string | undefined {
  if (PLAIN_PATH.test(path)) return path;
  const segments = path.split('/').map(percentDecode);
  return segments.includes(undefined)
    ? undefined
    : segments.map((bytes) => percentEncode(bytes ?? '')).join('/');
}

function encodeEach(bytes: string, keepSlash: boolean): string {
  // A page of a listing may encode a million of them: a text that grew by one at a time would take ten times as long.
  const encoded = Buffer.allocUnsafe(3 * bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes.charCodeAt(at) & 0xff;
    if (IS_UNRESERVED[byte] || (keepSlash && byte === SLASH)) {
      encoded[length++] = byte;
      continue;
    }
    encoded[length++] = PERCENT;
    encoded[length++] = HEX_DIGITS[byte >> 4] as number;
    encoded[length++] = HEX_DIGITS[byte & 0xf] as number;
  }
  return encoded.toString('latin1', 0, length);
}

/** The text whose UTF-8 these bytes are, one character each; undefined when they are none. */
export function bytesToText(bytes: string): string | undefined {
  if (!NON_ASCII.test(bytes)) return bytes;
  try {
    return fromUtf8(Buffer.from(bytes, 'latin1'));
  } catch {
    return undefined;
  }
}

/** The UTF-8 of `text`, one character for each byte. */
export function textToBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
