// Options of benchmarks that are numbers, written and checked as settings are: `5GiB`, `1000`.
import { InvalidArgumentError } from 'commander';
import { parseSetting } from '../src/config/values.ts';

/** For commander: reads the option's text, and says what is wrong with it. Both bounds are inclusive. */
export function quantity(row: { kind: 'bytes' | 'integer'; min: number; max: number }) {
  return (text: string): number => {
    const parsed = parseSetting({ key: '', help: '', ...row }, text);
    if ('problem' in parsed) throw new InvalidArgumentError(parsed.problem);
    return Number(parsed.value);
  };
}
