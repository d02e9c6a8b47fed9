// What clients do in the simulation, apart from how a state machine words it, and what each of it should answer: a map
// of keys to values, no two of which are ever written alike. The checkers know no more of the product than this.

export type Operation =
  | { kind: 'put'; key: string; value: string }
  /** If-None-Match: *. */
  | { kind: 'create'; key: string; value: string }
  /** Only while the value is `ifValue`, when that is given. */
  | { kind: 'remove'; key: string; ifValue?: string }
  | { kind: 'append'; key: string; value: string }
  | { kind: 'read'; key: string }
  /** Keys behind `after`, in order. */
  | { kind: 'list'; after: string; limit: number };

export type Outcome =
  | { kind: 'written' }
  | { kind: 'exists' }
  /** Not there any more, or was not there before. */
  | { kind: 'gone' }
  | { kind: 'differs' }
  /** The value after the append. */
  | { kind: 'appended'; value: string }
  | { kind: 'value'; value: string | null }
  | { kind: 'page'; items: readonly (readonly [key: string, value: string])[]; isLast: boolean };

export type KeyOperation = Exclude<Operation, { kind: 'list' }>;

/** One key's value before and after, and the answer. */
export function stepKey(
  value: string | null,
  operation: KeyOperation,
): { outcome: Outcome; value: string | null } {
  switch (operation.kind) {
    case 'put':
      return { outcome: { kind: 'written' }, value: operation.value };
    case 'create':
      if (value !== null) return { outcome: { kind: 'exists' }, value };
      return { outcome: { kind: 'written' }, value: operation.value };
    case 'remove': {
      const differs = value !== null && operation.ifValue !== undefined && operation.ifValue !== value;
      return differs ? { outcome: { kind: 'differs' }, value } : { outcome: { kind: 'gone' }, value: null };
    }
    case 'append': {
      const appended = (value ?? '') + operation.value;
      return { outcome: { kind: 'appended', value: appended }, value: appended };
    }
    case 'read':
      return { outcome: { kind: 'value', value }, value };
  }
}

/** The answer to a list, from all keys in order. */
export function pageOf(
  items: Iterable<readonly [string, string]>,
  { after, limit }: { after: string; limit: number },
): Outcome {
  const page: [string, string][] = [];
  for (const [key, value] of items) {
    if (key <= after) continue;
    if (page.length === limit) return { kind: 'page', items: page, isLast: false };
    page.push([key, value]);
  }
  return { kind: 'page', items: page, isLast: true };
}

/** Whether this answer reports a change: there must be an entry of the log behind it. */
export function isChange(outcome: Outcome): boolean {
  return outcome.kind === 'written' || outcome.kind === 'appended';
}

export function isWrite(operation: Operation): boolean {
  return operation.kind !== 'read' && operation.kind !== 'list';
}

export function isEqualOutcome(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** What a client did, and the answer that it got. */
export type HistoryRecord = RecordOf<Operation, Outcome>;

/** The same of any kind of operation. */
export interface RecordOf<Does, Outcome> {
  /** Of the request, the same over all its tries. */
  requestId: string;
  shard: number;
  client: number;
  operation: Does;
  /** The step of the world in which it was begun, and in which it was answered. */
  invokedAt: number;
  answeredAt: number;
  invokedAtMs: number;
  answeredAtMs: number;
  /** undefined: nobody knows what became of it. */
  outcome: Outcome | undefined;
}

export function describeRecord(record: RecordOf<unknown, unknown>): string {
  const { client, operation, invokedAtMs, answeredAtMs, outcome, requestId } = record;
  const answer = outcome === undefined ? 'unknown' : JSON.stringify(outcome);
  const when = `${invokedAtMs.toFixed(1)}..${answeredAtMs.toFixed(1)}`;
  return `${when} client ${client} ${JSON.stringify(operation)} -> ${answer} (${requestId})`;
}
