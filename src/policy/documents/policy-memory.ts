// What a compiled policy takes in memory, about, and rather more than less: caches weigh policies by it. Of a document of thousands
// of short patterns it is a hundred times its text, of one of long ARNs three times.
import type { Condition } from '../conditions/condition.ts';
import type { Pattern } from '../patterns.ts';
import type { Statement } from './compile-policy.ts';

/** Of a statement, with its sets of keys and the lists of its patterns. */
const STATEMENT_BYTES = 900;
const CONDITION_BYTES = 900;
/** Of a value that is understood, and of each place in it where it may be cut: at wildcards, variables and colons. */
const VALUE_BYTES = 400;
const CUT_BYTES = 220;
const PATTERN_BYTES = 240;
/** Of a stretch between two wildcards. */
const PART_BYTES = 64;
const CODE_BYTES = 8;
const VARIABLE_BYTES = 220;
/** Of somebody whom a policy names. */
const PRINCIPAL_BYTES = 500;

export function memoryOf(statements: readonly Statement[]): number {
  return sum(statements, statementBytes);
}

function statementBytes({ actions, resources, principals, conditions }: Statement): number {
  return (
    STATEMENT_BYTES +
    sum(actions.patterns, patternBytes) +
    sum(resources?.patterns ?? [], patternBytes) +
    PRINCIPAL_BYTES * (principals?.set.names.length ?? 0) +
    sum(conditions, conditionBytes)
  );
}

function patternBytes({ source, tokens, glob }: Pattern): number {
  const bytes = PATTERN_BYTES + source.length;
  if (glob === undefined) return bytes + VARIABLE_BYTES * tokens.length;
  if (glob.kind === 'texts') return bytes + PART_BYTES * glob.parts.length;
  if (glob.kind === 'codes') return bytes + PART_BYTES * glob.parts.length + CODE_BYTES * glob.codesMin;
  return bytes;
}

function conditionBytes({ key, values }: Condition): number {
  return CONDITION_BYTES + key.length + sum(values, valueBytes);
}

function valueBytes(value: string): number {
  let bytes = VALUE_BYTES + value.length;
  for (let at = 0; at < value.length; at++) if ('*?$:'.includes(value[at] ?? '')) bytes += CUT_BYTES;
  return bytes;
}

function sum<T>(list: readonly T[], bytesOf: (one: T) => number): number {
  return list.reduce((bytes, one) => bytes + bytesOf(one), 0);
}
