// The command line tool's side of the S3 API, as far as its own commands need it: path style, SigV4, one request at a
// time. An error answer is a Refusal with the code and the message of the server.
import type { Readable } from 'node:stream';
import { Refusal } from '../base/refusal.ts';
import { percentEncode, percentEncodePath, textToBytes } from '../base/text/uri.ts';
import { parseXml, textOf, type XmlElement, XmlError } from '../base/xml/parse-xml.ts';
import type { ClientOptions } from './operator-client.ts';
import { type Answer, parseEndpoint, sendRequest } from './send-request.ts';
import { signRequest } from './sign-request.ts';

const XML_DEPTH_MAX = 16;
/** A policy of the largest size, encoded as in a URL. */
const XML_TEXT_UNITS_MAX = 1 << 20;

/** What the server has answered instead of what it was asked for. */
export class S3Refusal extends Refusal {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

export interface S3Request {
  method: string;
  bucket: string;
  /** Absent: the bucket itself. */
  key?: string;
  query?: Readonly<Record<string, string>>;
  /** Lower-case names; values as they travel, one character for each byte. */
  headers?: Readonly<Record<string, string>>;
  body?: string | { stream: Readable; sizeBytes: number; sha256: string };
  /** Statuses that are answers besides those below 300. */
  accepts?: readonly number[];
}

export interface S3Client {
  /** Resolves with the headers of the whole answer. Throws {@link Refusal} for an error answer. */
  send(request: S3Request): Promise<Answer['headers']>;
  /** Resolves when the head of the answer is there: its body is to be read. Throws as `send`. */
  open(request: S3Request): Promise<Answer>;
}

export function createS3Client(options: ClientOptions): S3Client {
  const base = parseEndpoint(options.endpoint);
  const client: S3Client = {
    async send(request) {
      const answer = await client.open(request);
      // Unread, it would hold the connection, and that the process.
      await answer.text();
      return answer.headers;
    },
    async open({ method, bucket, key, query = {}, headers = {}, body = '', accepts = [] }) {
      const path = `/${encode(bucket)}${key === undefined ? '' : `/${percentEncodePath(textToBytes(key))}`}`;
      const queryText = Object.entries(query)
        .map(([name, value]) => `${encode(name)}=${encode(value)}`)
        .sort()
        .join('&');
      const { credentials, nowMs } = options;
      const signed = signRequest({
        method,
        host: base.host,
        path,
        query: queryText,
        headers,
        credentials,
        body: typeof body === 'string' ? body : { sha256: body.sha256 },
        service: 's3',
        nowMs: nowMs(),
      });
      const sizeBytes = typeof body === 'string' ? Buffer.byteLength(body) : body.sizeBytes;
      const answer = await sendRequest(options, {
        method,
        path: queryText === '' ? path : `${path}?${queryText}`,
        headers: { ...signed, 'content-length': String(sizeBytes) },
        body: typeof body === 'string' ? body : body.stream,
      });
      if (answer.status < 300 || accepts.includes(answer.status)) return answer;
      throw refusalOf(await answer.text(), answer.status);
    },
  };
  return client;
}

function encode(text: string): string {
  return percentEncode(textToBytes(text));
}

/** The document in `text`; a Refusal when it is not one. */
export function readDocument(text: string): XmlElement {
  try {
    return parseXml(Buffer.from(text), { depthMax: XML_DEPTH_MAX, textUnitsMax: XML_TEXT_UNITS_MAX });
  } catch (error) {
    if (error instanceof XmlError) throw new Refusal('the server did not answer as a Holdfast server does');
    throw error;
  }
}

/** What an Error document says, or a status without one. */
export function refusalOf(text: string, status: number): S3Refusal {
  if (text.trim() === '') return new S3Refusal(`refused (${status})`, status);
  const error = readDocument(text);
  const message = `${textOf(error, 'Message') ?? 'refused'} (${textOf(error, 'Code') ?? status})`;
  return new S3Refusal(message, status);
}
