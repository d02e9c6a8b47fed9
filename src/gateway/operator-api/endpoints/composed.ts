// What compositions alone keep, for `holdfast composed`: a page, from a shard's beginning or behind a blob.
import { AppError } from '../../../types/errors.ts';
import type { BlobId } from '../../../types/names.ts';
import { type ComposedPlace, readComposed } from '../composed-report.ts';
import { defineEndpoint, type EndpointContext, type EndpointRequest, readFields } from '../endpoint.ts';

function parsePlace({ path, body }: EndpointRequest): ComposedPlace {
  readFields(body, {});
  const { shard = '', after } = path;
  const isWrong = !/^\d{1,5}$/.test(shard) || (after !== undefined && !/^[0-9a-f]{32}$/.test(after));
  if (isWrong) throw new AppError('NoSuchEntity', { message: 'There is no such page.' });
  return { shard: Number(shard), ...(after !== undefined && { after: after as BlobId }) };
}

const row = {
  method: 'GET',
  parse: parsePlace,
  run: async ({ metadata }: EndpointContext, place: ComposedPlace) => ({
    status: 200,
    json: await readComposed(metadata, place),
  }),
} as const;

export const getComposed = defineEndpoint({ ...row, name: 'GetComposed', path: '/composed/:shard' });

export const getComposedBehind = defineEndpoint({
  ...row,
  name: 'GetComposedBehind',
  path: '/composed/:shard/:after',
});
