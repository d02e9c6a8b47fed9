// Reads the written form of one setting into its value, by kind. Says what is wrong in words for the user.
// Does not know where the text came from, nor other settings.
import { BYTE_UNITS } from '../base/text/byte-units.ts';
import type { HostPort } from './schema.ts';
import type { ItemKind, SettingRow } from './setting-row.ts';

export type SettingValue = string | number | boolean | readonly string[] | HostPort | undefined;

export type ParsedValue = { readonly value: SettingValue } | { readonly problem: string };

/** Unit → factor to the base unit, smallest first. */
type Units = ReadonlyMap<string, number>;

const DURATION_UNITS: Units = new Map([
  ['ms', 1],
  ['s', 1000],
  ['min', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

const NO_UNITS: Units = new Map();

/** A value written as in a flag or variable, for the row's kind. */
export function parseSetting(row: SettingRow, text: string): ParsedValue {
  switch (row.kind) {
    case 'text':
    case 'path':
    case 'secret':
      return text === '' ? { problem: 'must not be empty' } : { value: text };
    case 'bytes':
      if (row.never === true && text === 'never') return { value: 0 };
      return parseQuantity(row, text, BYTE_UNITS);
    case 'duration':
      return parseQuantity(row, text, DURATION_UNITS);
    case 'integer':
      if (row.auto === true && text === 'auto') return { value: 'auto' };
      return parseQuantity(row, text, NO_UNITS);
    case 'boolean':
      if (text === 'true' || text === 'false') return { value: text === 'true' };
      return { problem: `must be true or false, not "${text}"` };
    case 'choice':
      if (row.choices?.includes(text)) return { value: text };
      return { problem: `must be one of ${row.choices?.join(', ')}, not "${text}"` };
    case 'list':
      return parseList(row.items, text);
    case 'hostPort':
      return parseHostPort(text);
  }
}

/** A value as it stands in the JSON file: a string is read as in a flag, other types where they fit the kind. */
export function parseJsonSetting(row: SettingRow, json: unknown): ParsedValue {
  if (typeof json === 'string') return parseSetting(row, json);
  const takesNumber = row.kind === 'integer' || row.kind === 'bytes';
  if (typeof json === 'number' && takesNumber) return parseSetting(row, String(json));
  if (typeof json === 'boolean' && row.kind === 'boolean') return { value: json };
  if (Array.isArray(json) && row.kind === 'list' && json.every((item) => typeof item === 'string')) {
    return parseList(row.items, json.join(','));
  }
  return { problem: `must be ${describeKind(row)}` };
}

function describeKind(row: SettingRow): string {
  if (row.kind === 'list') return 'a list of strings';
  if (row.kind === 'boolean') return 'true or false';
  return row.kind === 'integer' ? 'a number' : 'a string';
}

/** A whole number with one of the units. Without one it counts bytes; a bare duration would leave the unit to guess. */
function parseQuantity(row: SettingRow, text: string, units: Units): ParsedValue {
  const [, digits = '', unit = ''] = /^(\d{1,15}) ?([A-Za-z]*)$/.exec(text) ?? [];
  const isUnitless = unit === '' && (row.kind !== 'duration' || Number(digits) === 0);
  const factor = isUnitless ? 1 : units.get(unit);
  if (digits === '' || factor === undefined) {
    const names = [...units.keys()];
    const form = names.length === 0 ? 'a whole number' : `a whole number with a unit (${names.join(', ')})`;
    return { problem: `must be ${wordOf(row)}${form}, not "${text}"` };
  }
  const value = Number(digits) * factor;
  if (row.min !== undefined && value < row.min) {
    return { problem: `must be at least ${formatQuantity(row.min, units)}, not ${text}` };
  }
  if (row.max !== undefined && value > row.max) {
    return { problem: `must be at most ${formatQuantity(row.max, units)}, not ${text}` };
  }
  return { value };
}

/** What may stand in the place of a number. */
function wordOf(row: SettingRow): string {
  if (row.auto === true) return 'auto or ';
  return row.never === true ? 'never or ' : '';
}

/** The shortest exact form: 65536 with byte units is `64KiB`. */
function formatQuantity(value: number, units: Units): string {
  const fitting = [...units].filter(([, factor]) => value >= factor && value % factor === 0);
  const largest = fitting.at(-1);
  if (largest === undefined) return `${value}${[...units.keys()][0] ?? ''}`;
  return `${value / largest[1]}${largest[0]}`;
}

function parseList(items: ItemKind | undefined, text: string): ParsedValue {
  const value = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
    .map((item) => (items === 'publicName' || items === 'path' ? item : item.toLowerCase()));
  const bad = value.find((item) => items !== undefined && !ITEM_FORMS[items].isValid(item));
  if (items !== undefined && bad !== undefined) {
    return { problem: `has an item that is not ${ITEM_FORMS[items].description}: "${bad}"` };
  }
  return { value: Object.freeze(value) };
}

const HOST_NAME = /^(?=.{1,253}$)(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/;
const IPV6 = /^(?=.*:.*:)[0-9a-f:.]{2,45}$/;

function isHost(text: string): boolean {
  return HOST_NAME.test(text) || IPV6.test(text);
}

/** Addresses have no labels in front of them: hosts that are one are path style always. */
function isDomain(text: string): boolean {
  return HOST_NAME.test(text) && !/(?:^|\.)\d+$/.test(text);
}

function isPublicName(text: string): boolean {
  if (text.includes('://')) {
    if (!URL.canParse(text)) return false;
    const url = new URL(text);
    return /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search === '' && url.hash === '';
  }
  return isHost(text.toLowerCase()) || 'value' in parseHostPort(text);
}

function isNetworkRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const isIpv6 = IPV6.test(address);
  const octets = address.split('.');
  const isIpv4 =
    octets.length === 4 && octets.every((octet) => /^\d{1,3}$/.test(octet) && Number(octet) <= 255);
  if ((!isIpv4 && !isIpv6) || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (isIpv6 ? 128 : 32));
}

const ITEM_FORMS: Readonly<Record<ItemKind, { description: string; isValid(item: string): boolean }>> = {
  domainName: { description: 'a domain name', isValid: isDomain },
  hostName: { description: 'a host name or address', isValid: isHost },
  publicName: { description: 'HOST, HOST:PORT or an http(s) URL without a path', isValid: isPublicName },
  networkRange: { description: 'an address or CIDR range', isValid: isNetworkRange },
  path: { description: 'a folder', isValid: (item) => !item.includes('\0') },
};

function parseHostPort(text: string): ParsedValue {
  const [, bracketed, plain, port = ''] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = (bracketed ?? plain ?? '').toLowerCase();
  const isValid =
    Number(port) <= 65_535 && (bracketed === undefined ? HOST_NAME.test(host) : IPV6.test(host));
  if (!isValid) return { problem: `must be HOST:PORT, not "${text}"` };
  return { value: Object.freeze({ host, port: Number(port) }) };
}
