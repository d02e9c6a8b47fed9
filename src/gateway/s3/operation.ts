// One row per S3 operation: everything the service knows of it (style 3). Routes, 501 answers, authorisation, log
// name, metric label, docs and test coverage are derived from the rows; nothing else lists operations. Which events it
// causes its commands know (src/metadata/events).

import type { Readable } from 'node:stream';
import type { Steps } from '../../base/async/steps.ts';
import type { AccessPair } from '../../policy/authorize.ts';
import type { AppError, ErrorCode } from '../../types/errors.ts';
import type { BucketName, ObjectKey } from '../../types/names.ts';
import type { PolicyAction } from '../../types/policy/actions.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import type { OperationContext } from './context.ts';
import type { RequestBody } from './request/request-body.ts';

/** Which level of the address space the request names. */
export type Level = 'service' | 'bucket' | 'object';

/** Methods that change nothing. */
export const READ_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

export interface OperationMatch {
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE' | 'OPTIONS' | 'MOVE';
  on: Level;
  /** Sub-resources and parameters that must be there, as `uploads`, or with a value, as `list-type=2`. */
  query?: readonly string[];
  /** A header that must be there: `x-amz-copy-source`. */
  header?: string;
}

/** Query parameters: decoded; the first value wins where a name is repeated, as AWS does. */
export type QueryParameters = ReadonlyMap<string, string>;

/** What `parse` sees: all that is known before anything of the body is read. */
export interface OperationRequest {
  method: string;
  /** Present on bucket and object level. */
  bucket: BucketName;
  /** Present on object level. */
  key: ObjectKey;
  query: QueryParameters;
  /** Lower-case names; values of repeated headers joined by ", ". */
  headers: Readonly<Record<string, string>>;
  /** The unread body of a `stream` operation. */
  body: RequestBody;
  /** Customers' keys may be in it: nobody else can read it, or the operator allows it. */
  mayCarrySecrets: boolean;
}

/** What a handler gives back; one place (respond.ts) turns it into HTTP. */
export interface OperationResult {
  status: number;
  /** Answer headers by their wire names; undefined ones are left out. */
  headers?: Readonly<Record<string, string | number | undefined>>;
  body?:
    | { kind: 'xml'; text: string }
    | { kind: 'bytes'; bytes: Buffer }
    /** Content-Length is required; the stream is destroyed when the client goes, and its error cuts the connection. */
    | { kind: 'stream'; stream: Readable; sizeBytes: number }
    /**
     * A document that comes piece by piece (MOVE), as the client takes it, with white space while the next one is waited
     * for. `whenBroken`: what ends the document where the error has ended its making. An iterator that is left by its
     * client is returned from.
     */
    | { kind: 'xml-stream'; texts: AsyncGenerator<string, void>; whenBroken(error: AppError): string }
    /**
     * An answer that begins before its outcome is known (Complete): 200, then white space until `text`
     * resolves to the whole XML document, which may be an Error document.
     */
    | { kind: 'slow-xml'; text: Promise<string> };
}

export interface OperationRow<Input, Document = undefined> {
  readonly name: string;
  readonly match: OperationMatch;
  /** The operation field of the server access log: REST.PUT.OBJECT (service 6, s3-behaviour 43). */
  readonly logName: string;
  /** `none`: a body is refused or drained; `xml`: read whole once the caller may; `stream`: handed to run. */
  readonly body: 'none' | 'xml' | 'stream';
  /** What x-amz-checksum-* headers are of. Default the request's body; `object`: what the request makes (Complete). */
  readonly checksumOf?: 'body' | 'object';
  /** Bytes of an `xml` body at most. Default LIMITS.xmlBodyBytesMax. */
  readonly bodyBytesMax?: number;
  /**
   * What it does to the keys in its body. A caller who can be allowed none of it for any key of the bucket is refused
   * before the body is read; `run` then decides for each key.
   */
  readonly keyActions?: readonly PolicyAction[];
  /** Sub-resources and parameters it understands beside `match.query`; any other known sub-resource is refused. */
  readonly parameters?: readonly string[];
  /** Conditional headers that it decides; where others carry them, they are refused (screen-headers.ts). */
  readonly conditions?: readonly string[];
  /** Headers of extensions (`x-svc-*`) that it understands; where others carry them, they are refused likewise. */
  readonly options?: readonly string[];
  /** `none`: no credentials are looked at (OPTIONS). */
  readonly auth?: 'signed' | 'none';
  /** False where the bucket need not exist (CreateBucket, ListBuckets, OPTIONS). Default true above service level. */
  readonly needsBucket?: boolean;
  /** Every error it can answer beyond those of the pipeline; the coverage test sees each of them. */
  readonly errors: readonly ErrorCode[];
  /** Its errors are all that it can answer yet: it reads what cannot be set. */
  readonly neverSucceeds?: boolean;
  /** One line for docs/s3.md: what differs from AWS. */
  readonly differences?: string;
  parse(request: OperationRequest): Input;
  /** Judged before anything of the body is read: nobody who may not makes the server take or understand one. */
  access(input: Input, bucket: BucketRecord | undefined): readonly AccessPair[];
  /**
   * Before the document is read, where that is long: what the head says is enough to refuse it. Reading and
   * understanding one costs more than this look at what is stored.
   */
  precheck?(context: OperationContext, input: Input): Promise<void>;
  /** Of `xml` operations, and of these always: the whole body, within its limit and checked against its digests. */
  parseDocument?(xmlBody: Buffer, input: Input): Steps<Document>;
  /** What it needs besides `access` of what the document names: judged once that is read, each pair of them. */
  documentAccess?(input: Input, document: Document): readonly AccessPair[];
  run(context: OperationContext, input: Input, document: Document): Promise<OperationResult>;
}

/** A row whose input type is sealed inside: what the registry holds. */
export type Operation = OperationRow<never, never> & { readonly __input?: unknown };

/**
 * Keep the order parse, access, precheck, parseDocument, documentAccess, run in the literal, else TypeScript infers the input
 * as unknown.
 */
export function defineOperation<const Name extends string, Input, Document = undefined>(
  row: OperationRow<Input, Document> & { readonly name: Name },
): Operation & { readonly name: Name } {
  return row as unknown as Operation & { readonly name: Name };
}

export function bucketArn(bucket: BucketName): string {
  return `arn:aws:s3:::${bucket}`;
}

export function objectArn(address: { bucket: BucketName; key: ObjectKey }): string {
  return `arn:aws:s3:::${address.bucket}/${address.key}`;
}
