// One row per S3 operation: everything the service knows of it (style 3). Routes, 501 answers, authorisation, log names,
// metric labels, docs and test coverage are derived from the rows; nothing else lists operations. Events are not in the row:
// the commands that an operation sends write them (src/metadata/events).

import type { Steps } from '../../base/async/steps.ts';
import type { BatchReadable } from '../../base/bytes/batch-stream.ts';
import type { AccessPair } from '../../policy/authorize.ts';
import type { AppError, ErrorCode } from '../../types/errors.ts';
import type { BucketName, ObjectKey } from '../../types/names.ts';
import type { PolicyAction } from '../../types/policy/actions.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import type { OperationContext } from './context.ts';
import type { SuccessAction } from './forms/success-action.ts';
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
  /** Keys that it is for, and of them the requests that name no sub-resource which it does not understand. */
  keys?: ReadonlySet<string>;
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
  /** The unread body of a `stream` operation; of a `form` operation the file. */
  body: RequestBody;
  /** Of a `form` operation. */
  successAction?: SuccessAction;
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
    | { kind: 'stream'; stream: BatchReadable; sizeBytes: number }
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
  /**
   * `none`: a body is refused or drained; `xml`: read whole once the caller may; `stream`: handed to run; `form`: its fields are
   * read to learn who asks, and stand for key and headers, its file is handed to run.
   */
  readonly body: 'none' | 'xml' | 'stream' | 'form';
  /** What x-amz-checksum-* headers are of. Default the request's body; `object`: what the request makes (Complete). */
  readonly checksumOf?: 'body' | 'object';
  /** Bytes of an `xml` body at most. Default LIMITS.xmlBodyBytesMax. */
  readonly bodyBytesMax?: number;
  /**
   * `run` decides by the bucket, too, beyond the pairs of `access` and `documentAccess`: where the bucket changes meanwhile, it
   * is run again. Not of a `stream` or a `form`, which cannot be read twice.
   */
  readonly decidesInRun?: true;
  /** It may read data for hours before it changes anything: who asks is looked up and judged again by then, as where a body comes. */
  readonly takesLong?: true;
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
  /** It begins something that stores data later: it is refused where that would be because bills are not paid. */
  readonly beginsStoring?: true;
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
  /** The pairs that the caller needs. They are judged before any of the body is read, so a refused caller costs no reading. */
  access(input: Input, bucket: BucketRecord | undefined): readonly AccessPair[];
  /**
   * Memory that it takes at most while it runs, where that is much (listings). It is counted with that of bodies, by tenant,
   * and `run` begins when there is room.
   */
  memoryBytes?(input: Input): number;
  /**
   * Refuses by the head alone, before a long document is read. It may look at what is stored, which costs less than to read and
   * parse the document.
   */
  precheck?(context: OperationContext, input: Input): Promise<void>;
  /** Every `xml` operation has it, and no other. Gets the whole body, within its limit and checked against its digests. */
  parseDocument?(xmlBody: Buffer, input: Input): Steps<Document>;
  /** The pairs that the caller needs besides `access` for what the document names. Judged once the document is read. */
  documentAccess?(input: Input, document: Document): readonly AccessPair[];
  run(context: OperationContext, input: Input, document: Document): Promise<OperationResult>;
}

/** A row whose input type is sealed inside: what the registry holds. */
export type Operation = OperationRow<never, never> & { readonly __input?: unknown };

/**
 * Keep the order parse, access, memoryBytes, precheck, parseDocument, documentAccess, run in the literal, else TypeScript infers the input
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
