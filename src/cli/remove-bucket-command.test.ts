import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { Refusal } from '../base/refusal.ts';
import type { Job, JobReport } from './jobs-command.ts';
import { type RemoveBucketOptions, removeBucket } from './remove-bucket-command.ts';

/** What a server says: to the deletion, and to each look at the jobs, of which the last is repeated. `hang`: nothing. */
interface Output {
  deleted?: number | 'hang';
  looks?: (Partial<JobReport> | number | 'hang')[];
}

const job = (fields: Partial<Job>): Job => ({
  id: 'ours',
  shard: 1,
  kind: 'empty-bucket',
  bucket: 'vault',
  state: 'under-way',
  detail: '',
  doneCount: 0,
  totalCount: 3000,
  errorCount: 0,
  ageMs: 100,
  idleMs: 0,
  ...fields,
});
/** Of a bucket that had the name before. */
const earlier = job({
  id: 'earlier',
  shard: 2,
  state: 'done',
  doneCount: 7,
  totalCount: 7,
  ageMs: 6000,
  idleMs: 5000,
});
const done = job({ state: 'done', doneCount: 3000 });

/** What is printed, and what the server was asked. */
async function remove(
  said: Output,
  options: RemoveBucketOptions = {},
  onAsked: (asked: string) => void = () => {},
) {
  const printed: string[] = [];
  const asked: string[] = [];
  const looks = [...(said.looks ?? [])];
  let nowMs = 0;
  const server = createServer((request, response) => {
    const what = `${request.method} ${request.url}`;
    asked.push(what);
    const nextLook = () => (looks.length > 1 ? looks.shift() : looks[0]);
    const answer = request.method === 'DELETE' ? (said.deleted ?? 204) : (nextLook() ?? 500);
    if (typeof answer === 'number') response.writeHead(answer).end();
    else if (answer !== 'hang')
      response.end(JSON.stringify({ jobs: [], leftOutCount: 0, missingShards: [], ...answer }));
    onAsked(what);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const context = {
    env: { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' },
    print: (line: string) => void printed.push(line),
    nowMs: () => nowMs,
    async sleep(ms: number) {
      nowMs += ms;
    },
  };
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await removeBucket(context, 'vault', { endpoint, ...options });
  } finally {
    server.closeAllConnections();
    server.close();
  }
  return { printed: printed.join('\n'), asked, tookMs: nowMs };
}

const DELETE = 'DELETE /vault?force_delete=true';
const LOOK = 'GET /holdfast-admin/v1/jobs';
const force = { force: true };

test('without --force nothing else is deleted, and nothing watched', async () => {
  expect(await remove({})).toMatchObject({ printed: 'vault is gone', asked: ['DELETE /vault'] });
});

test('--force waits until all is freed, by the job of this very bucket', async () => {
  const looks = [
    // The shard that has it may be the one that does not answer.
    { jobs: [earlier], missingShards: [1] },
    // A deletion that was refused has freed nothing, and a rename is another thing.
    {
      jobs: [
        job({ id: 'refused', state: 'refused' }),
        job({ id: 'rename', kind: 'move-prefix' }),
        job({}),
        earlier,
      ],
    },
    { jobs: [job({ doneCount: 1000 }), earlier] },
    { jobs: [earlier], missingShards: [1] },
    { jobs: [done, earlier] },
  ];
  const { printed, asked } = await remove({ looks }, force);
  expect(printed).toBe('vault is gone; versions freed: 3,000');
  expect(asked).toEqual([DELETE, ...looks.map(() => LOOK)]);
});

test.each([
  ['', []],
  [', whatever an earlier bucket of that name had', [earlier]],
])('an empty bucket leaves nothing to be freed, which is hint at once%s', async (_, jobs) => {
  const { printed, asked } = await remove({ looks: [{ jobs }] }, force);
  expect(printed).toBe('vault is gone; versions freed: 0');
  expect(asked).toEqual([DELETE, LOOK]);
});

test('for machines', async () => {
  const json = async (said: Output, options: RemoveBucketOptions) =>
    JSON.parse((await remove(said, { ...force, json: true, ...options })).printed);
  expect(await json({ looks: [{ jobs: [done] }] }, {})).toEqual({
    bucket: 'vault',
    isFreed: true,
    versionCount: 3000,
  });
  expect(await json({}, { wait: false })).toEqual({ bucket: 'vault', isFreed: false });
});

test('--no-wait ends once the bucket is gone', async () => {
  const { printed, asked } = await remove({}, { ...force, wait: false });
  expect(printed).toBe(
    'vault is gone; its data is freed in the background, and `holdfast jobs` tells the operator how far it is',
  );
  expect(asked).toEqual([DELETE]);
});

test.each([
  [403, "its data is freed in the background, which the operator's keys alone can watch"],
  [404, 'its data is freed in the background; how far it is cannot be seen now'],
])('who is hint %i of jobs is hint plainly that the bucket is gone, at once', async (status, hint) => {
  const { printed, asked } = await remove({ looks: [status] }, force);
  expect(printed).toBe(`vault is gone; ${hint}`);
  expect(asked).toEqual([DELETE, LOOK]);
});

test('a server that is away is waited for, for a minute', async () => {
  const back = [503, { jobs: [job({})] }, 503, { jobs: [done] }];
  expect((await remove({ looks: back }, force)).printed).toBe('vault is gone; versions freed: 3,000');
  const { printed, tookMs } = await remove({ looks: [{ jobs: [job({})] }, 503] }, force);
  expect(printed).toBe(
    'vault is gone; its data is freed in the background; how far it is cannot be seen now',
  );
  expect(tookMs).toBeGreaterThanOrEqual(60_000);
  expect(tookMs).toBeLessThan(65_000);
});

test.each([
  ['DELETE', { deleted: 'hang' }, 'it is not known what becomes of vault: a deletion that has begun goes on'],
  ['GET', { looks: ['hang'] }, 'vault is gone, and its data goes on being freed; `holdfast jobs` tells'],
] as const)(
  'Ctrl-C ends the waiting for the answer to a %s, and nothing else',
  async (method, said, hint) => {
    const stop = new AbortController();
    const stopAt = (what: string) => void (what.startsWith(method) && stop.abort());
    const removing = remove(said as unknown as Output, { ...force, signal: stop.signal }, stopAt);
    const error = (await removing.catch((reason: unknown) => reason)) as Refusal;
    expect(error).toBeInstanceOf(Refusal);
    expect(error.message).toContain(`interrupted: ${hint}`);
    expect(error.exitCode).toBe(130);
  },
);
