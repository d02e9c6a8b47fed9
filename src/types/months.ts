// Days and months of invoices, in UTC. A day is a number of days since 1970-01-01, as in daily records of usage.
import { DAY_MS } from './usage.ts';

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/;
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;

/** Of 'YYYY-MM'; undefined: it is no month. */
export function parseMonth(text: string): { fromDay: number; toDay: number } | undefined {
  const [, year, month] = MONTH.exec(text) ?? [];
  if (year === undefined || month === undefined) return undefined;
  const [y, m] = [Number(year), Number(month)];
  // Years below 100 would be taken for those of the last century.
  if (y < 1970) return undefined;
  return { fromDay: Date.UTC(y, m - 1) / DAY_MS, toDay: Date.UTC(y, m) / DAY_MS - 1 };
}

/** Of 'YYYY-MM-DD'; undefined: there is no such day. */
export function parseDate(text: string): number | undefined {
  const [, year, month, dayOfMonth] = DATE.exec(text) ?? [];
  if (year === undefined || Number(year) < 1970) return undefined;
  const day = Date.UTC(Number(year), Number(month) - 1, Number(dayOfMonth)) / DAY_MS;
  return dateOf(day) === text ? day : undefined;
}

/** 'YYYY-MM-DD' */
export function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** 'YYYY-MM' */
export function monthOf(day: number): string {
  return dateOf(day).slice(0, 7);
}

export function nextMonth(month: string): string {
  return monthOf(daysOf(month).toDay + 1);
}

export function monthBefore(month: string): string {
  return monthOf(daysOf(month).fromDay - 1);
}

/** Of a month that is known to be one. */
export function daysOf(month: string): { fromDay: number; toDay: number } {
  const days = parseMonth(month);
  if (days === undefined) throw new RangeError(`${month} is no month`);
  return days;
}

export function dayOf(timeMs: number): number {
  return Math.floor(timeMs / DAY_MS);
}
