// What both versions of ListObjects share: their common parameters, and one page of the bucket's current versions.

import type { ListObjectsPage } from '../../../ports/metadata/versions.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { OperationContext } from '../context.ts';
import { bucketArn, type OperationRequest } from '../operation.ts';
import { invalidArgument, parseCount, parseEncodingType } from '../request/arguments.ts';
import { nameWriter, type WriteName } from '../xml/list-xml.ts';

export interface ListInput {
  resource: string;
  bucketName: string;
  prefix: string;
  /** Never empty. */
  delimiter?: string;
  maxKeys: number;
  isUrlEncoded: boolean;
  writeName: WriteName;
}

/** The parameters that listings of objects and of versions have in common. InvalidArgument. */
export function parseList(request: OperationRequest): ListInput {
  const { bucket, query } = request;
  requireKnownAttributes(request.headers);
  const isUrlEncoded = parseEncodingType(query);
  const input: ListInput = {
    resource: bucketArn(bucket),
    bucketName: bucket,
    prefix: query.get('prefix') ?? '',
    maxKeys: parseCount(query, { name: 'max-keys', most: LIMITS.listPageMax }),
    isUrlEncoded,
    writeName: nameWriter(isUrlEncoded),
  };
  const delimiter = query.get('delimiter');
  if (delimiter) input.delimiter = delimiter;
  return input;
}

/** What may be shown besides: of restored objects, and no object here was ever away. */
function requireKnownAttributes(headers: OperationRequest['headers']): void {
  const name = 'x-amz-optional-object-attributes';
  const value = headers[name] ?? '';
  const isKnown = value.split(',').every((word) => ['', 'RestoreStatus'].includes(word.trim()));
  if (!isKnown) throw invalidArgument({ name, value, message: 'Invalid attribute name specified.' });
}

/** One page behind `after`, exclusive, and the turn to make a document of it. */
export async function queryPage(
  context: OperationContext,
  input: ListInput,
  after: string | undefined,
): Promise<ListObjectsPage> {
  const { homeShard, believed } = context.bucket();
  const { prefix, delimiter, maxKeys } = input;
  const reply = await context.metadata.query({ shard: homeShard, bucket: believed }, 'list-objects', {
    bucketId: believed.bucketId,
    prefix,
    max: maxKeys,
    ...(delimiter !== undefined && { delimiter }),
    ...(after && { after }),
  });
  await context.turn();
  return reply.value;
}

/** `<Delimiter>` and `<EncodingType>`, where they were asked for. */
export function echoXml(input: Pick<ListInput, 'delimiter' | 'isUrlEncoded' | 'writeName'>): string {
  const { delimiter, isUrlEncoded, writeName } = input;
  const delimiterXml = delimiter === undefined ? '' : `<Delimiter>${writeName(delimiter)}</Delimiter>`;
  return delimiterXml + (isUrlEncoded ? '<EncodingType>url</EncodingType>' : '');
}
