// holdfast append: adds a file, or what comes on standard input, to the end of an object (service 4.2).
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { LIMITS } from '../types/limits.ts';
import { type ConnectOptions, connectS3, type TokenCliContext } from './connect.ts';
import { tokenHeader } from './extension-headers.ts';
import { type FileSource, withFileSource } from './file-source.ts';
import { formatAnswer, formatBytes } from './format.ts';
import { parseObjectAddress } from './object-address.ts';
import { startBar } from './progress.ts';
import type { S3Client } from './s3-client.ts';

export interface AppendOptions extends ConnectOptions {
  /** Only if the object has this size, in bytes. */
  offset?: string;
  /** Only if the object has this ETag. */
  ifMatch?: string;
  token?: string;
  /** What `-` stands for. */
  input?: Readable;
}

export async function append(
  context: TokenCliContext,
  { object, file }: { object: string; file: string },
  options: AppendOptions,
): Promise<void> {
  const { bucket, key } = parseObjectAddress(object);
  const headers = headersOf(options, context);
  const client = await connectS3(context, options);
  const { input = process.stdin } = options;
  const taken = { input, bytesMax: LIMITS.putBytesMax, taker: 'one append' };
  const answer = await withFileSource(file, taken, (source) =>
    send(client, { bucket, key, headers }, source),
  );
  const { etag, 'x-amz-version-id': versionId, 'x-amz-object-size': size } = answer;
  const sizeBytes = size === undefined ? undefined : Number(size);
  // Who may not read it is told neither.
  const told = sizeBytes === undefined ? 'is longer now' : `has ${formatBytes(sizeBytes)} now, ETag ${etag}`;
  context.print(formatAnswer(options, { etag, versionId, sizeBytes }, () => `${object} ${told}`));
}

function headersOf(
  { offset, ifMatch, token }: AppendOptions,
  { newToken }: TokenCliContext,
): Record<string, string> {
  return {
    ...(offset !== undefined && { 'x-amz-write-offset-bytes': offset }),
    ...(ifMatch !== undefined && { 'if-match': ifMatch }),
    ...tokenHeader(token ?? newToken()),
  };
}

async function send(
  client: S3Client,
  target: { bucket: string; key: string; headers: Record<string, string> },
  source: FileSource,
) {
  const { sizeBytes } = source;
  const hash = createHash('sha256');
  for await (const piece of source.read()) hash.update(piece);
  const progress = startBar('append', sizeBytes, formatBytes);
  async function* counted() {
    let sentBytes = 0;
    for await (const piece of source.read()) {
      sentBytes += piece.length;
      progress.at(sentBytes);
      yield piece;
    }
  }
  const stream = Readable.from(counted());
  try {
    return await client.send({
      method: 'PUT',
      ...target,
      query: { append: '' },
      body: { stream, sizeBytes, sha256: hash.digest('hex') },
    });
  } finally {
    progress.end();
    // Refused before it was sent to its end.
    stream.destroy();
  }
}
