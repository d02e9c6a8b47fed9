// Opens a form upload: reads its fields, finds out who has signed it, holds it against its policy, and makes of it what PUT of an
// object would have: a key, headers, and a body that is not read yet. The fields are the one thing that is read of a body
// before its sender is known, so they are bounded in bytes, in time, and by the client's address.
import type { FairShare } from '../../../base/async/fair-share.ts';
import type { ClockPort } from '../../../ports/clock.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { ObjectKey } from '../../../types/names.ts';
import type { Authentication, AuthenticationDependencies } from '../../auth/authenticate.ts';
import { authenticateForm, isSignedForm } from '../../auth/form-signature.ts';
import type { Exchange } from '../../http/exchange.ts';
import { type Shedding, takePlaces } from '../../http/shedding.ts';
import type { OperationRequest, OperationRow } from '../operation.ts';
import { invalidArgument } from '../request/arguments.ts';
import { readDigests } from '../request/open-body.ts';
import type { RequestBody } from '../request/request-body.ts';
import { screenHeaders } from '../request/screen-headers.ts';
import type { Target } from '../request/target.ts';
import { WRITE_CONDITION_HEADERS } from '../request/write-conditions.ts';
import {
  BEFORE_FILE,
  type FormFields,
  headersOf,
  keyOf,
  objectKeyOf,
  readFields,
  readFile,
} from './form-fields.ts';
import { MultipartReader } from './multipart-reader.ts';
import { parseBoundary } from './part-head.ts';
import { parsePostPolicy, requirePostPolicy, requireSizes, type SizeRange } from './post-policy.ts';
import { type SuccessAction, successActionOf } from './success-action.ts';

type Headers = OperationRequest['headers'];

export interface FormDependencies extends AuthenticationDependencies {
  clock: ClockPort;
  shedding: Shedding;
  /** Of fields that are read of senders who are not known yet: bytes, by address. */
  unverifiedForms: FairShare;
}

export interface OpenForm {
  readonly authentication: Authentication;
  readonly key: ObjectKey;
  /** Of the request, but for those that fields stand for. */
  readonly headers: Headers;
  /** The file. */
  readonly body: RequestBody;
  readonly successAction: SuccessAction;
}

/** What fields are screened as: those that PUT cannot honour are refused likewise. */
const AS_PUT = { method: 'PUT', on: 'object' } as const;
/** Headers of the request itself that hold for a form, too, because they only refuse; all others of the service are fields. */
const KEPT_HEADERS: ReadonlySet<string> = new Set([
  'x-amz-expected-bucket-owner',
  ...WRITE_CONDITION_HEADERS,
]);

/** Refuses by the head what is no form, or is not signed as forms are. The boundary. */
export function requireForm({ headers }: Pick<Exchange, 'headers'>, { query }: Target): string {
  const boundary = parseBoundary(headers.values['content-type']);
  const { parameters } = query;
  const { authorization } = headers.values;
  const isPresigned = ['X-Amz-Signature', 'X-Amz-Algorithm', 'Signature', 'AWSAccessKeyId'].some((name) =>
    parameters.has(name),
  );
  if (authorization === undefined && !isPresigned) return boundary;
  const message =
    'Only one auth mechanism allowed; a form is signed by its fields, and by no Authorization header or query parameter.';
  throw invalidArgument({ name: 'Authorization', value: authorization ?? '', message });
}

/**
 * Throws SlowDown, RequestTimeout, the refusals of the form's parts (multipart-reader.ts, form-fields.ts), of its signature
 * (form-signature.ts), of its policy (post-policy.ts), and of what its fields say as headers; its body throws those, too.
 */
export async function openForm(
  deps: FormDependencies,
  parts: {
    exchange: Exchange;
    boundary: string;
    bucket: string;
    /** What the operation understands. */
    row: Pick<OperationRow<never>, 'conditions' | 'options'>;
  },
): Promise<OpenForm> {
  const { exchange, boundary, bucket, row } = parts;
  const reader = new MultipartReader(
    { read: () => exchange.body.read(), turn: () => exchange.body.turn() },
    boundary,
    BEFORE_FILE,
  );
  const { fields, fileName, authentication } = await takeFields(deps, exchange, reader);
  const keyBytes = keyOf(fields, fileName);
  const sizes = requirePolicy(fields, { bucket, key: keyBytes, nowMs: deps.clock.wallMs() });
  const formHeaders = headersOf(fields);
  screenHeaders({ ...row, match: AS_PUT }, formHeaders);
  if (isSignedForm(fields)) refuseUnsignedConditions(exchange.headers.values);
  return {
    authentication,
    key: objectKeyOf(keyBytes),
    headers: mergeHeaders(exchange.headers.values, formHeaders),
    body: bodyOf(reader, formHeaders, sizes),
    successAction: successActionOf(fields),
  };
}

/** The fields, and who has signed them; until that is known they count against the client's address. */
async function takeFields(
  deps: FormDependencies,
  exchange: Exchange,
  reader: MultipartReader,
): Promise<Awaited<ReturnType<typeof readFields>> & { authentication: Authentication }> {
  const isKnown = Promise.withResolvers<void>();
  const address = exchange.client.remoteAddress;
  const { declaredBytes = Number.POSITIVE_INFINITY } = exchange.body;
  const units = Math.min(declaredBytes, LIMITS.formFieldsBytesMax);
  takePlaces(deps.shedding, deps.unverifiedForms, { exchange, units, until: isKnown.promise });
  try {
    const form = await inTime(deps.clock, exchange, () => readFields(reader));
    return { ...form, authentication: await authenticateForm({ ...deps, address }, form.fields) };
  } finally {
    isKnown.resolve();
  }
}

/** Fails the body with RequestTimeout where `read` takes longer than fields may. */
async function inTime<T>(clock: ClockPort, { body }: Exchange, read: () => Promise<T>): Promise<T> {
  const isDone = new AbortController();
  void clock.sleep(LIMITS.formFieldsMaxMs, isDone.signal).then(() => {
    if (!isDone.signal.aborted) body.fail(new AppError('RequestTimeout'));
  });
  try {
    return await read();
  } finally {
    isDone.abort();
  }
}

/** The sizes that the file may have. A policy that nobody has signed says nothing: then the sender is nobody. */
function requirePolicy(
  fields: FormFields,
  form: { bucket: string; key: string; nowMs: number },
): readonly SizeRange[] {
  const encoded = fields.get('policy')?.value;
  if (encoded === undefined || !isSignedForm(fields)) return [];
  const policy = parsePostPolicy(encoded);
  requirePostPolicy(policy, { fields, ...form });
  return policy.sizes;
}

/**
 * A condition on an ETag says what is stored, by the right of who has signed the form to read it: whoever has the form would learn
 * it. As of presigned URLs. Whether something is there the form's sender may ask.
 */
function refuseUnsignedConditions(sent: Headers): void {
  const unsigned = WRITE_CONDITION_HEADERS.filter((name) => (sent[name] ?? '*').trim() !== '*');
  if (unsigned.length === 0) return;
  throw new AppError('AccessDenied', {
    message: 'There were headers present in the request which were not signed',
    fields: { HeadersNotSigned: unsigned.join(', ') },
  });
}

function mergeHeaders(sent: Headers, ofForm: Headers): Headers {
  const merged: Record<string, string> = Object.create(null);
  for (const name in sent) {
    const isOfService = /^(?:x-amz-|x-svc-|if-|content-|cache-control$|expires$|transfer-encoding$)/.test(
      name,
    );
    if (!isOfService || KEPT_HEADERS.has(name)) merged[name] = sent[name] ?? '';
  }
  for (const name in ofForm) {
    const earlier = merged[name];
    // Together they would be a list, which one of several ETags meets: more than the form was signed for.
    if (earlier !== undefined && WRITE_CONDITION_HEADERS.includes(name)) {
      const message = `${name} is given by a header and by a field.`;
      throw invalidArgument({ name, value: earlier, message });
    }
    merged[name] = earlier === undefined ? (ofForm[name] ?? '') : `${earlier}, ${ofForm[name]}`;
  }
  return merged;
}

function bodyOf(reader: MultipartReader, headers: Headers, sizes: readonly SizeRange[]): RequestBody {
  const file = readFile(reader);
  return {
    ...readDigests(headers, 'body'),
    stream: sizes.length === 0 ? file : requireSizes(file, sizes),
    // Only its end shows it: what stands behind the file has no declared size.
    sizeBytes: undefined,
    awaitsContinue: false,
    trailerChecksum: () => undefined,
  };
}
