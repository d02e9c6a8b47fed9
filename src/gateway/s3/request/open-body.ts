// Makes a request's body what handlers see (request-body.ts): lengths judged before a byte is read, framing taken off,
// digests that the client gave read and checked for their form. Whether they fit the bytes is for who reads the bytes.
import {
  CHECKSUM_ALGORITHMS,
  CHECKSUM_BYTES,
  type ChecksumAlgorithm,
  checksumHeader,
} from '../../../types/checksums.ts';
import { AppError } from '../../../types/errors.ts';
import type { Seed } from '../../auth/authenticate.ts';
import {
  type ChunkSignatures,
  createChunkSignatures,
  deferChunkSignatures,
} from '../../auth/chunk-signatures.ts';
import type { PayloadForm } from '../../auth/payload-form.ts';
import { openChunkedBody } from '../../auth/sigv4-chunked-body.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { OperationRow } from '../operation.ts';
import { invalidArgument } from './arguments.ts';
import type { RequestBody } from './request-body.ts';

type Headers = Readonly<Record<string, string>>;

/** What the client said of its body's digests. */
type Digests = Pick<RequestBody, 'contentMd5' | 'checksum' | 'trailerAlgorithm'>;

const DECIMAL = /^\d{1,15}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const ALGORITHM_OF_HEADER = new Map(
  CHECKSUM_ALGORITHMS.map((algorithm) => [checksumHeader(algorithm), algorithm]),
);

/**
 * Throws MissingContentLength (unless the body may be absent), NotImplemented (a Transfer-Encoding other than chunked),
 * InvalidDigest, InvalidRequest, BadDigest; its stream IncompleteBody, SignatureDoesNotMatch, MalformedTrailerError, RequestTimeout.
 */
export function openBody(
  exchange: Exchange,
  options: {
    headers: Headers;
    form: PayloadForm;
    seed: Seed | undefined;
    mayBeAbsent: boolean;
    checksumOf?: OperationRow<never>['checksumOf'];
  },
): RequestBody {
  const { headers, form, seed } = options;
  const digests = readDigests(headers, options.checksumOf ?? 'body');
  const intake = exchange.body;
  const awaitsContinue = intake.awaitsContinue;
  if (form.kind === 'plain') {
    const sizeBytes = plainSize(exchange, headers, options.mayBeAbsent);
    const stream = { [Symbol.asyncIterator]: () => buffers(() => intake.read()) };
    const body = { ...digests, stream, sizeBytes, awaitsContinue, trailerChecksum: () => undefined };
    return form.sha256 === undefined ? body : { ...body, contentSha256: form.sha256 };
  }
  const sizeBytes = decodedSize(headers);
  if (form.isSigned && seed === undefined) {
    throw new AppError('AccessDenied', {
      message: 'Only requests that are signed by AWS4-HMAC-SHA256 can sign the chunks of their body.',
    });
  }
  const turn = () => intake.turn();
  const open = (signatures?: ChunkSignatures) =>
    openChunkedBody({
      read: () => intake.read(),
      turn,
      sizeBytes,
      ...(signatures && { signatures }),
      ...(digests.trailerAlgorithm && { trailerName: checksumHeader(digests.trailerAlgorithm) }),
    });
  const signer = form.isSigned ? seed : undefined;
  // One of them is read.
  let chunked = open(signer && createChunkSignatures(signer));
  return {
    ...digests,
    stream: chunked.stream,
    sizeBytes,
    awaitsContinue,
    trailerChecksum: () => chunked.trailer(),
    ...(signer && {
      deferSignatures() {
        const { signatures, deferred } = deferChunkSignatures(signer, turn);
        chunked = open(signatures);
        return { stream: chunked.stream, deferred };
      },
    }),
  };
}

async function* buffers(read: () => Promise<Buffer | undefined>): AsyncGenerator<Buffer, void> {
  for (let buffer = await read(); buffer !== undefined; buffer = await read()) yield buffer;
}

/** Undefined: unknown before the end of the chunks. */
function plainSize(exchange: Exchange, headers: Headers, mayBeAbsent: boolean): number | undefined {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    if (coding.toLowerCase() === 'chunked') return undefined;
    throw new AppError('NotImplemented', { fields: { Header: 'Transfer-Encoding' } });
  }
  const { declaredBytes } = exchange.body;
  if (declaredBytes === undefined && !mayBeAbsent) throw new AppError('MissingContentLength');
  return declaredBytes ?? 0;
}

function decodedSize(headers: Headers): number {
  const name = 'x-amz-decoded-content-length';
  const text = headers[name];
  if (text === undefined) throw new AppError('MissingContentLength');
  if (!DECIMAL.test(text)) {
    throw invalidArgument({ name, value: text, message: `Value for ${name} header is invalid.` });
  }
  return Number(text);
}

/** One checksum at most, in the headers or announced for the trailer. */
export function readDigests(headers: Headers, checksumOf: 'body' | 'object'): Digests {
  const digests: { -readonly [Name in keyof Digests]: Digests[Name] } = {};
  const md5 = headers['content-md5'];
  if (md5 !== undefined) digests.contentMd5 = readMd5(md5);
  const given: ChecksumAlgorithm[] = [];
  for (const [header, algorithm] of ALGORITHM_OF_HEADER) {
    const value = headers[header];
    if (value === undefined || checksumOf === 'object') continue;
    given.push(algorithm);
    digests.checksum = { algorithm, value: readChecksum(algorithm, value) };
  }
  const trailer = headers['x-amz-trailer'];
  if (trailer !== undefined) {
    digests.trailerAlgorithm = readTrailerName(trailer);
    given.push(digests.trailerAlgorithm);
  }
  if (given.length > 1) {
    const message = 'Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.';
    throw new AppError('InvalidRequest', { message });
  }
  requireAnnounced(headers['x-amz-sdk-checksum-algorithm'], given[0]);
  return digests;
}

function readMd5(value: string): string {
  const digest = decodeBase64(value, 16);
  if (digest === undefined) throw new AppError('InvalidDigest', { fields: { 'Content-MD5': value } });
  return digest.toString('hex');
}

/** One that cannot be read cannot match (s3-behaviour "General choices": it is BadDigest). */
function readChecksum(algorithm: ChecksumAlgorithm, value: string): string {
  if (decodeBase64(value, CHECKSUM_BYTES[algorithm]) !== undefined) return value;
  throw new AppError('BadDigest', { message: `Value for ${checksumHeader(algorithm)} header is invalid.` });
}

function readTrailerName(value: string): ChecksumAlgorithm {
  const algorithm = ALGORITHM_OF_HEADER.get(value.trim().toLowerCase());
  if (algorithm !== undefined) return algorithm;
  throw new AppError('InvalidRequest', {
    message: 'The value specified in the x-amz-trailer header is not supported',
  });
}

function requireAnnounced(announced: string | undefined, given: ChecksumAlgorithm | undefined): void {
  if (announced === undefined) return;
  if (!CHECKSUM_ALGORITHMS.some((algorithm) => algorithm === announced.toUpperCase())) {
    throw new AppError('InvalidRequest', {
      message: 'Value for x-amz-sdk-checksum-algorithm header is invalid.',
    });
  }
  if (given === announced.toUpperCase()) return;
  throw new AppError('InvalidRequest', {
    message:
      'x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.',
  });
}

function decodeBase64(text: string, sizeBytes: number): Buffer | undefined {
  const trimmed = text.trim();
  if (!BASE64.test(trimmed) || trimmed.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(trimmed, 'base64');
  return bytes.length === sizeBytes ? bytes : undefined;
}
