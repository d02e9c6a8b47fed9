// Dates of ISO 8601 in its extended form, as documents and headers of S3 bring them (RFC 3339 and W3C's date and time).

const ISO_DATE =
  /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d{2}):?(\d{2}))?)?$/;

/**
 * ms since epoch: of a date with a time, or of the beginning of a day; undefined when it is none. Without a zone it is of UTC.
 * What is finer than a millisecond is cut off.
 */
export function parseIsoDate(text: string): number | undefined {
  const match = ISO_DATE.exec(text.trim());
  if (match === null) return undefined;
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = '', sign] = match;
  const [zoneHours = '0', zoneMinutes = '0'] = match.slice(9);
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  if (Number(zoneHours) > 23 || Number(zoneMinutes) > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  // 31 February would have become March.
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  const fractionMs = Number(fraction.slice(0, 3).padEnd(3, '0'));
  date.setUTCHours(Number(hour), Number(minute), Number(second), fractionMs);
  const eastMs = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000;
  return date.getTime() - (sign === '-' ? -eastMs : eastMs);
}
