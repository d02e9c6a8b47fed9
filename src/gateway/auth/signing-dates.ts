// The dates of signatures: ISO 8601 in its basic form, and what else clients date their requests with.
import { parseHttpDate } from '../../base/text/http-dates.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';

export interface RequestTime {
  /** yyyyMMdd'T'HHmmss'Z' */
  readonly timestamp: string;
  /** The same, as sent. */
  readonly sentText: string;
  /** The same, ms since epoch. */
  readonly timeMs: number;
}

const BASIC = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/;

/** Requests of one second have the same text. */
let lastParsed = { text: '19700101T000000Z', timeMs: 0 };

/** ms since epoch of `yyyyMMdd'T'HHmmss'Z'`; undefined for other text. */
export function parseTimestamp(text: string): number | undefined {
  if (text === lastParsed.text) return lastParsed.timeMs;
  const timeMs = readTimestamp(text);
  if (timeMs !== undefined) lastParsed = { text, timeMs };
  return timeMs;
}

function readTimestamp(text: string): number | undefined {
  const match = BASIC.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second] = match;
  const timeMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  // 30 February would have become March.
  return new Date(timeMs).getUTCDate() === Number(day) ? timeMs : undefined;
}

/** `yyyyMMdd'T'HHmmss'Z'` */
export function formatTimestamp(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`;
}

/**
 * The time of a request from x-amz-date, which has precedence, or Date: in the basic form or as an HTTP date, also one that
 * ends in "-0000" (s3-behaviour 14). Undefined when both are absent, or before 1970.
 */
export function readRequestTime(headers: Readonly<Record<string, string>>): RequestTime | undefined {
  const text = (headers['x-amz-date'] ?? headers.date ?? '').trim();
  const basicMs = parseTimestamp(text);
  const timeMs = basicMs ?? parseHttpDate(text);
  if (timeMs === undefined || timeMs < 0) return undefined;
  return { timestamp: basicMs === undefined ? formatTimestamp(timeMs) : text, sentText: text, timeMs };
}

/** As readRequestTime; AccessDenied where that finds none. */
export function requireRequestTime(headers: Readonly<Record<string, string>>): RequestTime {
  const time = readRequestTime(headers);
  if (time !== undefined) return time;
  const message = 'AWS authentication requires a valid Date or x-amz-date header';
  throw new AppError('AccessDenied', { message });
}

/** RequestTimeTooSkewed when the time is not within 15 minutes of now, either way. */
export function requireNear(time: Pick<RequestTime, 'sentText' | 'timeMs'>, nowMs: number): void {
  if (Math.abs(time.timeMs - nowMs) <= LIMITS.clockSkewMaxMs) return;
  throw new AppError('RequestTimeTooSkewed', {
    fields: {
      RequestTime: time.sentText,
      ServerTime: new Date(nowMs).toISOString(),
      MaxAllowedSkewMilliseconds: LIMITS.clockSkewMaxMs,
    },
  });
}
