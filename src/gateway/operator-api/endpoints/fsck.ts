// The full comparison of all that is stored: beginning one, looking at it, ending it early.
import { AppError } from '../../../types/errors.ts';
import { defineEndpoint, type EndpointRequest, readFields } from '../endpoint.ts';

function parseNumber(text: string | undefined): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new AppError('NoSuchEntity', { message: 'There is no such comparison.' });
}

function parseId({ path, body }: EndpointRequest): number {
  readFields(body, {});
  return parseNumber(path.id);
}

export const beginFsck = defineEndpoint({
  name: 'BeginFsck',
  method: 'POST',
  path: '/fsck',
  parse({ body }) {
    const kinds = { readData: 'boolean', fullSpeed: 'boolean' } as const;
    const { readData = false, fullSpeed = false } = readFields(body, kinds);
    return { readData, fullSpeed };
  },
  run: async ({ fsck }, options) => ({ status: 202, json: { id: fsck.begin(options) } }),
});

/** Findings from number `from` on, a page of them. */
export const getFsck = defineEndpoint({
  name: 'GetFsck',
  method: 'GET',
  path: '/fsck/:id/:from',
  parse: (request) => ({ id: parseId(request), from: parseNumber(request.path.from) }),
  run: async ({ fsck }, { id, from }) => ({ status: 200, json: fsck.look(id, from) }),
});

export const cancelFsck = defineEndpoint({
  name: 'CancelFsck',
  method: 'DELETE',
  path: '/fsck/:id',
  parse: parseId,
  async run({ fsck }, id) {
    fsck.cancel(id);
    return { status: 204 };
  },
});
