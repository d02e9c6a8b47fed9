// How the server is doing, for `holdfast status`.
import { defineEndpoint, readFields } from '../endpoint.ts';

export const getStatus = defineEndpoint({
  name: 'GetStatus',
  method: 'GET',
  path: '/status',
  parse: ({ body }) => readFields(body, {}),
  run: async ({ readStatus }) => ({ status: 200, json: await readStatus() }),
});
