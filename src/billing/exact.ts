// Exact figures of money and quantities. A price divided by 30 days has no end as a decimal, so decimals of any length would be
// rounded twice; fractions are not rounded before they are written.
import { Fraction } from 'fraction.js';

export type Exact = Fraction;

export const ZERO: Exact = new Fraction(0);

/** Of a decimal string as '5.99', or of a whole number. */
export function exact(value: string | bigint): Exact {
  return new Fraction(value);
}

export function sum(values: Iterable<Exact>): Exact {
  let total = ZERO;
  for (const value of values) total = total.add(value);
  return total;
}

/** Rounded half up to `digits` behind the point, without zeros at the end. */
export function decimalText(value: Exact, digits: number): string {
  const text = moneyText(value, digits);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** Rounded half up to exactly `digits` behind the point. */
export function moneyText(value: Exact, digits: number): string {
  const scaled = value.mul(10n ** BigInt(digits)).round();
  const text = String(scaled.n / scaled.d).padStart(digits + 1, '0');
  const whole = text.slice(0, text.length - digits);
  const sign = scaled.s < 0n ? '-' : '';
  return digits === 0 ? `${sign}${text}` : `${sign}${whole}.${text.slice(-digits)}`;
}
