// Jobs that shards keep, for `holdfast jobs`.
import { defineEndpoint, readFields } from '../endpoint.ts';

export const getJobs = defineEndpoint({
  name: 'GetJobs',
  method: 'GET',
  path: '/jobs',
  parse: ({ body }) => readFields(body, {}),
  run: async ({ readJobs }) => ({ status: 200, json: await readJobs() }),
});
