// holdfast append: adds a file, or what comes on standard input, to the end of an object (service.txt 4.2).
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Refusal } from '../lib/refusal.ts';
import { type CliContext, type ConnectOptions, connectS3 } from './connect.ts';
import { formatAnswer, formatBytes } from './format.ts';
import { parseObjectAddress } from './object-address.ts';
import { startBar } from './progress.ts';
import type { S3Client } from './s3-client.ts';

const STANDARD_INPUT = '-';

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
  context: CliContext,
  { object, file }: { object: string; file: string },
  options: AppendOptions,
): Promise<void> {
  const { bucket, key } = parseObjectAddress(object);
  const client = await connectS3(context, options);
  // The length must be known before the first byte is sent, and so must the digest.
  const folder = file === STANDARD_INPUT ? await mkdtemp(join(tmpdir(), 'holdfast-append-')) : undefined;
  try {
    const path = folder === undefined ? file : join(folder, 'input');
    if (folder !== undefined) await pipeline(options.input ?? process.stdin, createWriteStream(path));
    const answer = await send(client, { bucket, key, path }, options);
    const sizeBytes = Number(answer['x-amz-object-size']);
    const made = { etag: answer.etag, versionId: answer['x-amz-version-id'], sizeBytes };
    context.print(
      formatAnswer(options, made, () => `${object} has ${formatBytes(sizeBytes)} now, ETag ${made.etag}`),
    );
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true });
  }
}

async function send(
  client: S3Client,
  { bucket, key, path }: { bucket: string; key: string; path: string },
  { offset, ifMatch, token }: AppendOptions,
) {
  const { size: sizeBytes } = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new Refusal(`cannot read ${path}: ${error.code ?? error.message}`);
  });
  const hash = createHash('sha256');
  for await (const piece of createReadStream(path)) hash.update(piece);
  const progress = startBar('append', sizeBytes, formatBytes);
  let sentBytes = 0;
  const counting = new Transform({
    transform(piece: Buffer, _encoding, done) {
      sentBytes += piece.length;
      progress.at(sentBytes);
      done(null, piece);
    },
  });
  const stream = createReadStream(path)
    .on('error', (error) => counting.destroy(error))
    .pipe(counting);
  try {
    return await client.send({
      method: 'PUT',
      bucket,
      key,
      query: { append: '' },
      headers: {
        ...(offset !== undefined && { 'x-amz-write-offset-bytes': offset }),
        ...(ifMatch !== undefined && { 'if-match': ifMatch }),
        ...(token !== undefined && { 'x-svc-idempotency-token': token }),
      },
      body: { stream, sizeBytes, sha256: hash.digest('hex') },
    });
  } finally {
    progress.end();
  }
}
