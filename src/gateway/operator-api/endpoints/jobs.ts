// Jobs that shards keep, for `holdfast jobs`.
import { defineEndpoint, readFields } from '../endpoint.ts';
import { readJobs } from '../job-report.ts';

export const getJobs = defineEndpoint({
  name: 'GetJobs',
  method: 'GET',
  path: '/jobs',
  parse: ({ body }) => readFields(body, {}),
  run: async ({ metadata }) => ({ status: 200, json: await readJobs(metadata) }),
});
