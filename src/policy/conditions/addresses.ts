// Addresses and ranges of IPv4 and IPv6 in conditions (IpAddress, NotIpAddress). An IPv4 address that is written as IPv6
// (`::ffff:192.0.2.1`) is the IPv4 one.
import ipaddr from 'ipaddr.js';
import { PARSE_STEPS, spend } from '../match-work.ts';

/** Addresses whose first `bits` bits are those of `bytes`. */
export interface AddressRange {
  /** 4 of IPv4, 16 of IPv6. */
  readonly bytes: readonly number[];
  readonly bits: number;
}

/** As an IPv6 address begins that stands for one of IPv4. */
const MAPPED_BITS = 96;
const PREFIX = /^(?:0|[1-9][0-9]{0,2})$/;
/** The longest is `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128`. */
const CHARACTERS_MAX = 50;

/** A range as `192.0.2.0/24`, or one address; undefined where it is neither. Bits behind the prefix do not matter. */
export function parseAddressRange(text: string): AddressRange | undefined {
  if (text.length > CHARACTERS_MAX) return undefined;
  const slash = text.indexOf('/');
  const address = parse(slash < 0 ? text : text.slice(0, slash));
  if (address === undefined) return undefined;
  const bitsMax = address.length * 8;
  const prefix = slash < 0 ? String(bitsMax) : text.slice(slash + 1);
  if (!PREFIX.test(prefix) || Number(prefix) > bitsMax) return undefined;
  const bits = Number(prefix);
  if (isMapped(address) && bits >= MAPPED_BITS) return { bytes: address.slice(12), bits: bits - MAPPED_BITS };
  return { bytes: address, bits };
}

/** The last address that was asked about: conditions of one request ask about the same one. */
let last: { text: string; bytes: readonly number[] | undefined } = { text: '', bytes: undefined };

/** Whether the text is an address of the range. */
export function isInRange(text: string, { bytes, bits }: AddressRange): boolean {
  if (text !== last.text) {
    spend(PARSE_STEPS);
    last = { text, bytes: plain(text) };
  }
  const address = last.bytes;
  if (address === undefined || address.length !== bytes.length) return false;
  const whole = bits >>> 3;
  for (let at = 0; at < whole; at++) if (address[at] !== bytes[at]) return false;
  const rest = bits & 7;
  if (rest === 0) return true;
  return (((address[whole] ?? 0) ^ (bytes[whole] ?? 0)) & (0xff00 >>> rest) & 0xff) === 0;
}

function plain(text: string): readonly number[] | undefined {
  const address = text.length > CHARACTERS_MAX ? undefined : parse(text);
  return address !== undefined && isMapped(address) ? address.slice(12) : address;
}

/** The forms that RFC 4291 has: no octal or hexadecimal parts of IPv4, no zones. */
function parse(text: string): number[] | undefined {
  if (text.includes(':')) return parseIpv6(text);
  return parseIpv4(text);
}

const OCTET = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);

/** Of what is none ipaddr.js throws an error and catches it, some 10 us. */
function parseIpv4(text: string): number[] | undefined {
  return IPV4.test(text) ? ipaddr.IPv4.parse(text).toByteArray() : undefined;
}

const IPV6_BYTES = 16;
const GROUP = /^[0-9a-f]{1,4}$/i;

/** By hand: a policy may have two thousand of them, and ipaddr.js takes some 50 us for one. */
function parseIpv6(text: string): number[] | undefined {
  const gap = text.indexOf('::');
  if (gap === -1) {
    const bytes = groupsOf(text, { mayEndInIpv4: true });
    return bytes?.length === IPV6_BYTES ? bytes : undefined;
  }
  const head = gap === 0 ? [] : groupsOf(text.slice(0, gap), { mayEndInIpv4: false });
  const rest = text.slice(gap + 2);
  const tail = rest === '' ? [] : groupsOf(rest, { mayEndInIpv4: true });
  if (head === undefined || tail === undefined) return undefined;
  const missing = IPV6_BYTES - head.length - tail.length;
  return missing < 2 ? undefined : [...head, ...new Array<number>(missing).fill(0), ...tail];
}

/** Bytes of groups with colons between them. */
function groupsOf(text: string, { mayEndInIpv4 }: { mayEndInIpv4: boolean }): number[] | undefined {
  const bytes: number[] = [];
  const groups = text.split(':');
  for (const [at, group] of groups.entries()) {
    if (mayEndInIpv4 && at === groups.length - 1 && group.includes('.')) {
      const last = parseIpv4(group);
      return last && [...bytes, ...last];
    }
    if (!GROUP.test(group)) return undefined;
    const value = Number.parseInt(group, 16);
    bytes.push(value >> 8, value & 0xff);
  }
  return bytes;
}

function isMapped(bytes: readonly number[]): boolean {
  return bytes.length === 16 && bytes.every((byte, at) => at >= 12 || byte === (at < 10 ? 0 : 0xff));
}
