// holdfast mv: renames an object, all that begins with a prefix, or a bucket (service 4.1, 4.2). No byte moves.
import { Refusal } from '../base/refusal.ts';
import { percentEncodePath, textToBytes } from '../base/text/uri.ts';
import { childOf, childrenOf, textOf, type XmlElement } from '../base/xml/parse-xml.ts';
import { type CliContext, type ConnectOptions, connectS3 } from './connect.ts';
import { tokenHeader } from './extension-headers.ts';
import { formatAnswer, formatCount } from './format.ts';
import { parseAddress, parseBucketAddress } from './object-address.ts';
import { startCount } from './progress.ts';
import { readDocument, refusalOf, type S3Client } from './s3-client.ts';

/** Where one key was not renamed: 409 in use, 403 kept from deletion. */
const WITH_RESULT = [409, 403];
const ENTRY_END = '</MoveObject>';
const ENTRY_START = '<MoveObject>';

export interface MoveOptions extends ConnectOptions {
  /** Source and destination are beginnings of keys. */
  prefix?: boolean;
  overwrite?: boolean;
  token?: string;
}

interface Outcome {
  movedCount: number;
  errors: { source: string; destination: string; versionId?: string; code: string; message: string }[];
  /** How many more there were, which the server does not know any more. */
  unlistedErrorCount?: number;
}

/** The exit code: 1 when something was not renamed. */
export async function move(
  context: CliContext,
  { source, destination }: { source: string; destination: string },
  options: MoveOptions,
): Promise<number> {
  const [from, to] = [parseAddress(source), parseAddress(destination)];
  const client = await connectS3(context, options);
  if (from.key === undefined && to.key === undefined) {
    if (options.prefix || options.overwrite || options.token !== undefined)
      throw new Refusal('--prefix, --overwrite and --token are of objects: write bucket/key for both');
    const [before, after] = [parseBucketAddress(source), parseBucketAddress(destination)];
    await client.send({ method: 'MOVE', bucket: before, headers: { destination: textToBytes(after) } });
    context.print(formatAnswer(options, { bucket: after }, () => `${before} is ${after} now`));
    return 0;
  }
  if (from.key === undefined || to.key === undefined)
    throw new Refusal(
      'a bucket becomes a bucket, and an object an object: write bucket/key for both, or neither',
    );
  if (from.bucket !== to.bucket)
    throw new Refusal('objects are renamed within their bucket; copies to others take no room either');
  const outcome = await moveObjects(client, { bucket: from.bucket, from: from.key, to: to.key }, options);
  context.print(formatAnswer(options, outcome, () => describe(outcome)));
  return outcome.errors.length === 0 && outcome.unlistedErrorCount === undefined ? 0 : 1;
}

async function moveObjects(
  client: S3Client,
  { bucket, from, to }: { bucket: string; from: string; to: string },
  { prefix = false, overwrite = false, token }: MoveOptions,
): Promise<Outcome> {
  const answer = await client.open({
    method: 'MOVE',
    bucket,
    key: from,
    headers: {
      // With its bucket: what begins with a slash is read as such.
      destination: percentEncodePath(textToBytes(`/${bucket}/${to}`)),
      overwrite: String(overwrite),
      'x-svc-prefix': String(prefix),
      ...tokenHeader(token),
    },
    accepts: WITH_RESULT,
  });
  return readResult(answer.pieces(), answer.status);
}

/**
 * Reads a MoveObjectResult as it comes: it may have millions of entries, of which the errors alone are kept. Anything
 * else that was answered is a Refusal.
 */
export async function readResult(pieces: AsyncIterable<Buffer>, status: number): Promise<Outcome> {
  const progress = startCount('renamed', formatCount);
  const decoder = new TextDecoder();
  const errors: Outcome['errors'] = [];
  let count = 0;
  let rest = '';
  /** The document without its entries. */
  let frame = '';
  try {
    for await (const piece of pieces) {
      rest += decoder.decode(piece, { stream: true });
      let at = 0;
      for (;;) {
        const start = rest.indexOf(ENTRY_START, at);
        const end = start < 0 ? -1 : rest.indexOf(ENTRY_END, start);
        if (end < 0) break;
        const entry = rest.slice(start, end + ENTRY_END.length);
        frame += rest.slice(at, start);
        at = end + ENTRY_END.length;
        count++;
        if (entry.includes('<Error>')) errors.push(readError(readDocument(entry)));
      }
      rest = rest.slice(at);
      progress.at(count - errors.length);
    }
  } finally {
    progress.end();
  }
  frame += rest;
  const document = readDocument(frame);
  if (document.name !== 'MoveObjectResult') throw refusalOf(frame, status);
  const failure = childOf(document, 'Error');
  if (failure !== undefined)
    throw new Refusal(`${textOf(failure, 'Message') ?? 'not done'} (${textOf(failure, 'Code') ?? status})`);
  const unlisted = textOf(document, 'UnlistedErrorCount');
  return {
    movedCount: Number(textOf(document, 'MoveCount') ?? count - errors.length),
    errors,
    ...(unlisted !== undefined && { unlistedErrorCount: Number(unlisted) }),
  };
}

function readError(entry: XmlElement): Outcome['errors'][number] {
  const [error] = childrenOf(entry, 'Error');
  const versionId = textOf(entry, 'VersionId');
  return {
    source: textOf(entry, 'SourceKey') ?? '',
    destination: textOf(entry, 'DestinationKey') ?? '',
    ...(versionId !== undefined && { versionId }),
    code: (error && textOf(error, 'Code')) ?? '',
    message: (error && textOf(error, 'Message')) ?? '',
  };
}

function describe({ movedCount, errors, unlistedErrorCount }: Outcome): string {
  const lines = errors.map(({ source, destination, code, message }) => {
    return `not renamed: ${JSON.stringify(source)} to ${JSON.stringify(destination)}: ${message} (${code})`;
  });
  if (unlistedErrorCount !== undefined) {
    const count = formatCount(unlistedErrorCount);
    lines.push(`not renamed, and not named here: ${count} more; they are still there under the old prefix`);
  }
  return [...lines, `${formatCount(movedCount)} renamed`].join('\n');
}
