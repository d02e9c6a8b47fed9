// Dates as HTTP and S3 write them. Seconds are the unit of both, so whatever shows a time of change cuts its
// milliseconds off here: a listing and a HEAD of one object must agree. Dates of signatures are not here.

const DAY_MS = 24 * 3600 * 1000;
const TWO_DIGITS: readonly string[] = Array.from({ length: 60 }, (_, value) =>
  String(value).padStart(2, '0'),
);
/** Listings write a thousand times at once, most of them of one day: the date is made once. */
let lastDay = { day: 0, text: '1970-01-01T' };
let lastHttpDay = { day: 0, text: 'Thu, 01 Jan 1970 ' };
const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec';
// RFC 9110 5.6.7: IMF-fixdate and the two obsolete forms; the first also as mail writes it, with an offset (RFC 5322).
const IMF_FIXDATE =
  /^(?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) (?:GMT|UTC|([+-])([01]\d|2[0-3])([0-5]\d))$/;
const RFC_850 = /^[A-Z][a-z]+, (\d{2})-([A-Z][a-z]{2})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) GMT$/;
const ASCTIME = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/;

/** "Tue, 15 Nov 1994 08:12:31 GMT". */
export function httpDate(timeMs: number): string {
  const day = Math.floor(timeMs / DAY_MS);
  if (day !== lastHttpDay.day)
    lastHttpDay = { day, text: new Date(day * DAY_MS).toUTCString().slice(0, -12) };
  return `${lastHttpDay.text}${timeOfDay(timeMs - day * DAY_MS)} GMT`;
}

/** "1994-11-15T08:12:31.000Z", as S3 writes times of change in XML. */
export function isoSeconds(timeMs: number): string {
  const day = Math.floor(timeMs / DAY_MS);
  if (day !== lastDay.day) lastDay = { day, text: new Date(day * DAY_MS).toISOString().slice(0, 11) };
  return `${lastDay.text}${timeOfDay(timeMs - day * DAY_MS)}.000Z`;
}

/** "08:12:31" */
function timeOfDay(sinceMidnightMs: number): string {
  const second = Math.floor(sinceMidnightMs / 1000);
  const minute = Math.floor(second / 60);
  return `${TWO_DIGITS[Math.floor(minute / 60)]}:${TWO_DIGITS[minute % 60]}:${TWO_DIGITS[second % 60]}`;
}

/** ms since epoch of an HTTP date in any of its three forms; undefined when it is none (RFC 9110 5.6.7). */
export function parseHttpDate(text: string): number | undefined {
  const trimmed = text.trim();
  let match = IMF_FIXDATE.exec(trimmed);
  if (match !== null) {
    const [, day, month, year, hour, minute, second, sign, zoneHours, zoneMinutes] = match;
    const timeMs = toTimeMs({ day, month, year, hour, minute, second });
    if (timeMs === undefined || sign === undefined) return timeMs;
    const eastMs = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000;
    return sign === '+' ? timeMs - eastMs : timeMs + eastMs;
  }
  match = RFC_850.exec(trimmed);
  if (match !== null) {
    const [, day, month, shortYear, hour, minute, second] = match;
    // Two digits: the century that an S3 object can be of.
    const year = Number(shortYear) < 70 ? `20${shortYear}` : `19${shortYear}`;
    return toTimeMs({ day, month, year, hour, minute, second });
  }
  match = ASCTIME.exec(trimmed);
  if (match === null) return undefined;
  const [, month, day, hour, minute, second, year] = match;
  return toTimeMs({ day, month, year, hour, minute, second });
}

type DateField = 'day' | 'month' | 'year' | 'hour' | 'minute' | 'second';

function toTimeMs(fields: Record<DateField, string | undefined>): number | undefined {
  const month = MONTHS.indexOf(fields.month ?? '?') / 3;
  const [year, day, hour, minute, second] = [
    Number(fields.year),
    Number(fields.day),
    Number(fields.hour),
    Number(fields.minute),
    Number(fields.second),
  ];
  if (!Number.isInteger(month) || month < 0 || hour > 23 || minute > 59 || second > 60) return undefined;
  const timeMs = Date.UTC(year, month, day, hour, minute, second);
  // 31 February would have become March.
  return new Date(timeMs).getUTCDate() === day || second === 60 ? timeMs : undefined;
}
