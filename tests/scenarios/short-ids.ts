// Short forms of blob and link ids in scenarios: home and number instead of 32 digits; as old as the scenario's
// beginning, or younger by whole hours.
import type { BlobId, LinkId } from '../../src/types/names.ts';

export const START_MS = Date.parse('2024-01-01T00:00:00.000Z');
const HOUR_MS = 3_600_000;

/** What the id's time is, in hex, and the rest of its short form. */
function splitAge(text: string): { time: string; name: string } {
  const [name = '', age = '0h'] = text.split('@');
  return { time: (START_MS + Number.parseInt(age, 10) * HOUR_MS).toString(16).padStart(12, '0'), name };
}

/** `1/a1`, `1/a1@25h` */
export function blobIdOf(text: string): BlobId {
  const { time, name } = splitAge(text);
  const [home = '', tail = ''] = name.split('/');
  return `${time}${Number(home).toString(16).padStart(4, '0')}${tail.padStart(16, '0')}` as BlobId;
}

/** `b2`, `b2@25h` */
export function linkIdOf(text: string): LinkId {
  const { time, name } = splitAge(text);
  return `${time}${name.padStart(20, '0')}` as LinkId;
}

function shortTail(hex: string, timeHex: string): string {
  const hours = (Number.parseInt(timeHex, 16) - START_MS) / HOUR_MS;
  const tail = hex.replace(/^0+/, '');
  return hours === 0 ? tail : `${tail}@${Number(hours.toFixed(2))}h`;
}

export function shortBlob(blobId: string): string {
  const home = Number.parseInt(blobId.slice(12, 16), 16);
  return `${home}/${shortTail(blobId.slice(16), blobId.slice(0, 12))}`;
}

export function shortLink(linkId: string): string {
  return shortTail(linkId.slice(12), linkId.slice(0, 12));
}
