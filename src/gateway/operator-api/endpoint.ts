// One row per call of the operator API, from which routing and answers are derived. Like S3's operation rows, but for
// a small JSON protocol of our own; the two share no type on purpose (style 3).
import type { Accounts } from '../../accounts/accounts.ts';
import type { Fsck } from '../../fsck/fsck.ts';
import type { KeyRotation } from '../../metadata/master-keys/rotate-keys.ts';
import type { MetadataPort } from '../../ports/metadata.ts';
import type { TimeJumps } from '../../ports/time-jumps.ts';
import { AppError } from '../../types/errors.ts';
import type { StatusReport } from './status-report.ts';

export interface EndpointRequest {
  /** Decoded values of the path's `:names`. */
  path: Readonly<Record<string, string>>;
  /** The JSON object of the body; `{}` when there is none. */
  body: Readonly<Record<string, unknown>>;
  /** The access key by which the request is signed. */
  signedBy: string;
}

export interface EndpointContext {
  readonly accounts: Accounts;
  readonly rotation: Pick<KeyRotation, 'begin' | 'progress'>;
  /** Begins the work of a rotation at once instead of at its next turn. */
  readonly wakeRotation: () => void;
  readonly timeJumps: Pick<TimeJumps, 'accept' | 'unacceptedMs'>;
  readonly readStatus: () => Promise<StatusReport>;
  readonly metadata: MetadataPort;
  readonly fsck: Omit<Fsck, 'stop'>;
}

/** `json` absent: no body. */
export interface EndpointAnswer {
  status: number;
  json?: object;
}

export interface EndpointRow<Input> {
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below /holdfast-admin/v1; `:name` takes one segment. */
  readonly path: string;
  parse(request: EndpointRequest): Input;
  run(context: EndpointContext, input: Input): Promise<EndpointAnswer>;
}

/** A row whose input type is sealed inside. */
export interface Endpoint extends Omit<EndpointRow<never>, 'parse' | 'run'> {
  answer(context: EndpointContext, request: EndpointRequest): Promise<EndpointAnswer>;
}

export function defineEndpoint<Input>(row: EndpointRow<Input>): Endpoint {
  const { name, method, path } = row;
  return { name, method, path, answer: async (context, request) => row.run(context, row.parse(request)) };
}

type FieldKind = 'string' | 'number' | 'boolean';
type ValueOfKind<K extends FieldKind> = K extends 'string' ? string : K extends 'number' ? number : boolean;

/**
 * The fields of a body by name and kind, `!` for those that must be there. Unknown ones and wrong kinds are refused
 * with a message for each: a misspelt field must not be taken for an absent one.
 */
export function readFields<const Kinds extends Readonly<Record<string, FieldKind | `${FieldKind}!`>>>(
  body: Readonly<Record<string, unknown>>,
  kinds: Kinds,
): FieldsOf<Kinds> {
  // No prototype: a field may be called "__proto__", and must be refused like any other.
  const problems: Record<string, string> = Object.create(null);
  for (const name of Object.keys(body)) {
    if (!Object.hasOwn(kinds, name)) problems[name] = 'is not a known field';
  }
  for (const [name, kind] of Object.entries(kinds)) {
    const value = body[name];
    const wanted = kind.replace('!', '');
    if (value === undefined && kind.endsWith('!')) problems[name] = 'is required';
    else if (value !== undefined && typeof value !== wanted) problems[name] = `must be a ${wanted}`;
  }
  if (Object.keys(problems).length > 0) {
    const message = Object.entries(problems)
      .map(([name, problem]) => `${name} ${problem}`)
      .join('; ');
    throw new AppError('ValidationError', { message, fields: problems });
  }
  return body as FieldsOf<Kinds>;
}

type FieldsOf<Kinds extends Readonly<Record<string, string>>> = {
  [N in keyof Kinds as Kinds[N] extends `${string}!`
    ? N
    : never]: Kinds[N] extends `${infer K extends FieldKind}!` ? ValueOfKind<K> : never;
} & {
  [N in keyof Kinds as Kinds[N] extends FieldKind ? N : never]?: Kinds[N] extends FieldKind
    ? ValueOfKind<Kinds[N]>
    : never;
};
