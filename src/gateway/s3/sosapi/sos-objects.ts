// The virtual objects of Veeam's SOSAPI: every bucket shows system.xml and capacity.xml below one folder, made when they are read
// and not stored. Listings do not have them, and they have no versions. A client may store objects under the same keys, as with
// MinIO: those are listed, deleted and read by version id like any other, and a plain read shows the virtual one.
// The setting sosapi takes these rows away (http/server.ts).
import { createHash } from 'node:crypto';
import { must } from '../../../base/assert.ts';
import { httpDate } from '../../../base/text/http-dates.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import type { ErrorCode } from '../../../types/errors.ts';
import { presentBucket } from '../buckets/present-bucket.ts';
import type { OperationContext } from '../context.ts';
import { chooseRange, requireConditions } from '../objects/prepare-read.ts';
import {
  defineOperation,
  type Operation,
  type OperationRequest,
  objectArn,
  type QueryParameters,
} from '../operation.ts';
import type { AnswerHeaders } from '../request/object-headers.ts';
import { contentRange } from '../request/ranges.ts';
import { addResponseOverrides, RESPONSE_PARAMETERS } from '../request/response-overrides.ts';
import type { MeasuredCapacity } from './capacity.ts';
import { capacityDocument, systemDocument } from './sos-documents.ts';

/** SOSAPI's own name: the same in every store. */
const FOLDER = '.system-d26a9498-cb7c-4a87-a44a-8ae204f5ba6c/';

interface VirtualObject {
  text: string;
  /** Wall clock, ms since epoch. */
  modifiedAtMs: number;
}

const MADE_BY: ReadonlyMap<string, (context: OperationContext) => Promise<VirtualObject>> = new Map([
  [
    `${FOLDER}system.xml`,
    async ({ store }) => ({ text: systemDocument(store), modifiedAtMs: store.startedAtMs }),
  ],
  [
    `${FOLDER}capacity.xml`,
    async (context) => {
      const capacity = await capacityOf(context);
      return { text: capacityDocument(capacity), modifiedAtMs: capacity.measuredAtMs };
    },
  ],
]);

/** What the caller may take for the room of the bucket: that of the whole store, since nothing limits a bucket to less. */
function capacityOf({ store }: OperationContext): Promise<MeasuredCapacity> {
  return store.readCapacity();
}

interface SosInput {
  key: string;
  resource: string;
  query: QueryParameters;
  headers: Readonly<Record<string, string>>;
}

const KEYS: ReadonlySet<string> = new Set(MADE_BY.keys());
const ERRORS: readonly ErrorCode[] = ['InvalidRange', 'NotModified', 'PreconditionFailed'];

function parseSos({ bucket, key, query, headers }: OperationRequest): SosInput {
  return { key, resource: objectArn({ bucket, key }), query, headers };
}

function sosAccess({ resource }: SosInput): readonly AccessPair[] {
  return [['s3:GetObject', resource]];
}

/**
 * As prepareRead of a stored object. AccessDenied for anonymous callers, NoSuchBucket, InvalidRange, NotModified,
 * PreconditionFailed, ServiceUnavailable.
 */
async function readSos(
  context: OperationContext,
  input: SosInput,
): Promise<{ status: number; headers: AnswerHeaders; bytes: Buffer }> {
  // A bucket that everybody may read shares its objects, not the server's version and room.
  context.account();
  // Nothing else of the request asks the bucket's shard, which alone knows whether the bucket is as it was judged.
  await presentBucket(context);
  const make = must(MADE_BY.get(input.key), 'the row matches these keys');
  const { text, modifiedAtMs } = await make(context);
  const bytes = Buffer.from(text);
  const version = {
    etag: createHash('md5').update(bytes).digest('hex'),
    modifiedAtMs,
    sizeBytes: bytes.length,
  };
  context.record.objectSizeBytes = version.sizeBytes;
  const headers: AnswerHeaders = {
    'Last-Modified': httpDate(modifiedAtMs),
    ETag: `"${version.etag}"`,
    'Accept-Ranges': 'bytes',
    'Content-Type': 'application/xml',
  };
  requireConditions(input, { version, headers, nowMs: context.clock.wallMs() });
  addResponseOverrides(headers, { ...input, isSigned: true });
  const range = chooseRange(input, version);
  if (range === undefined) return { status: 200, headers, bytes };
  headers['Content-Range'] = contentRange(range, version.sizeBytes);
  const { offsetBytes, sizeBytes } = range;
  return { status: 206, headers, bytes: bytes.subarray(offsetBytes, offsetBytes + sizeBytes) };
}

const getSosObject = defineOperation({
  name: 'GetSosObject',
  match: { method: 'GET', on: 'object', keys: KEYS },
  logName: 'REST.GET.OBJECT',
  body: 'none',
  parameters: RESPONSE_PARAMETERS,
  errors: ERRORS,
  differences:
    "Not of AWS: the virtual objects of Veeam's Smart Object Storage API, in every bucket ([backup/veeam.md](backup/veeam.md)). A request with a version id, a part number or a sub-resource is about what is stored under the key. Anonymous callers are refused (AccessDenied), whatever the bucket allows.",
  parse: parseSos,
  access: sosAccess,
  async run(context, input) {
    const { status, headers, bytes } = await readSos(context, input);
    return { status, headers, body: { kind: 'bytes', bytes } };
  },
});

const headSosObject = defineOperation({
  name: 'HeadSosObject',
  match: { method: 'HEAD', on: 'object', keys: KEYS },
  logName: 'REST.HEAD.OBJECT',
  body: 'none',
  parameters: RESPONSE_PARAMETERS,
  errors: ERRORS,
  differences: 'As GetSosObject.',
  parse: parseSos,
  access: sosAccess,
  async run(context, input) {
    const { status, headers, bytes } = await readSos(context, input);
    headers['Content-Length'] = bytes.length;
    return { status, headers };
  },
});

export const SOS_OPERATIONS = [getSosObject, headSosObject] as const;

export function isOfSosapi(row: Operation): boolean {
  return SOS_OPERATIONS.some(({ name }) => name === row.name);
}
