// Events of buckets over HTTP: each operation that changes objects leaves exactly its events, in order, with the request that
// asked for them; `holdfast events` shows them, and the operator API has them for programs.
import { createHash } from 'node:crypto';
import { Command } from 'commander';
import { describe, expect } from 'vitest';
import { addClientCommands } from '../../src/cli/commands.ts';
import { bucketEvents, type EventsOptions, showEvents } from '../../src/cli/events-command.ts';
import { createOperatorClient } from '../../src/cli/operator-client.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { completeUpload } from '../support/servers/multipart.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectStatus, useApi } from '../support/servers/s3-api.ts';
import { makeVersionedBucket, setVersioning } from '../support/servers/versions.ts';

const api = useApi();
const { context, taken } = createPrintedTool();
const connection = () => ({ dataDir: api.server.dataDir });

async function record(bucket: string, isRecorded = true): Promise<string> {
  await bucketEvents(context, bucket, { ...connection(), isRecorded });
  return taken();
}

interface Shown {
  type: string;
  key: string;
  bucket: string;
  versionId?: string;
  sizeBytes?: number;
  otherKey?: string;
  requestId?: string;
  account?: string;
  address?: string;
  lostCount?: number;
}

async function show(options: EventsOptions = {}): Promise<string[]> {
  await showEvents(context, { ...connection(), ...options });
  return taken().split('\n').filter(Boolean);
}

const shown = async (bucket: string): Promise<Shown[]> =>
  (await show({ bucket, json: true })).map((line) => JSON.parse(line));

/** Type, key and what is told besides. */
const brief = ({ type, key, versionId, sizeBytes, otherKey }: Shown) =>
  [
    type.replace('s3:Object', ''),
    key,
    ...(versionId === undefined ? [] : [versionId === 'null' ? 'null' : 'v']),
    ...(sizeBytes === undefined ? [] : [sizeBytes]),
    ...(otherKey === undefined ? [] : [otherKey]),
  ].join(' ');

const copyFrom = (bucket: string, key: string) => ({ 'x-amz-copy-source': pathOf(bucket, key) });
const sendTo = async (line: string, headers: Record<string, string> = {}, body?: string): Promise<string> => {
  const [method = '', path = ''] = line.split(' ');
  const answer = await api.send({
    method,
    path,
    headers,
    ...(body !== undefined && { body: Buffer.from(body) }),
  });
  expect(answer.status, `${line}: ${answer.body.toString()}`).toBeLessThan(300);
  return String(answer.headers['x-amz-request-id']);
};
const deleteMany = (bucket: string, keys: readonly string[]) => {
  const body = `<Delete>${keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('')}</Delete>`;
  const digest = createHash('md5').update(body).digest('base64');
  return sendTo(`POST /${bucket}?delete`, { 'content-md5': digest }, body);
};

describe('events of a bucket', () => {
  test('are recorded for each operation, in order', async () => {
    const bucket = await api.makeBucket();
    await api.put(bucket, 'before', 'x');
    expect(await record(bucket)).toBe(`events of ${bucket} are recorded`);
    await api.put(bucket, 'a', 'four');
    await sendTo(`PUT /${bucket}/copy`, copyFrom(bucket, 'a'));
    await sendTo(`PUT /${bucket}/a`, { ...copyFrom(bucket, 'a'), 'x-amz-metadata-directive': 'REPLACE' });
    const parts = [Buffer.alloc(5 * 2 ** 20, 'p'), Buffer.from('end')];
    await completeUpload(api, { bucket, key: 'multi', parts });
    const component = '<ComposeRequest><Component><Key>a</Key></Component></ComposeRequest>';
    await sendTo(`PUT /${bucket}/whole?compose`, { 'content-type': 'text/xml' }, component);
    await sendTo(`PUT /${bucket}/whole?append`, {}, 'more');
    const tagging = '<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>';
    await sendTo(`PUT /${bucket}/a?tagging`, {}, tagging);
    await sendTo(`DELETE /${bucket}/a?tagging`);
    await deleteMany(bucket, ['copy', 'never', 'multi']);
    await sendTo(`MOVE /${bucket}/a`, { destination: 'b' });
    for (const key of ['d/1', 'd/2']) await api.put(bucket, key, key);
    await sendTo(`MOVE /${bucket}/d/`, { destination: 'e/', 'x-svc-prefix': 'true' });
    await sendTo(`DELETE /${bucket}/b`);
    await sendTo(`DELETE /${bucket}/b`);
    expect((await shown(bucket)).map(brief)).toEqual([
      'Created:Put a 4',
      'Created:Copy copy 4',
      'Created:Copy a 4',
      `Created:CompleteMultipartUpload multi ${5 * 2 ** 20 + 3}`,
      'Created:Put whole 4',
      'Created:Put whole 8',
      'Tagging:Put a',
      'Tagging:Delete a',
      'Removed:Delete copy 4',
      `Removed:Delete multi ${5 * 2 ** 20 + 3}`,
      'Created:Copy b 4 a',
      'Removed:Delete a 4 b',
      'Created:Put d/1 3',
      'Created:Put d/2 3',
      'Created:Copy e/1 3 d/1',
      'Removed:Delete d/1 3 e/1',
      'Created:Copy e/2 3 d/2',
      'Removed:Delete d/2 3 e/2',
      'Removed:Delete b 4',
    ]);
  });

  test('have the version, the caller and the request id', async () => {
    const bucket = await makeVersionedBucket(api);
    await record(bucket);
    const answer = await api.send({ method: 'PUT', path: pathOf(bucket, 'a'), body: Buffer.from('x') });
    expectStatus(answer, 200);
    const markedBy = await sendTo(`DELETE /${bucket}/a`);
    const versionId = answer.headers['x-amz-version-id'];
    await sendTo(`DELETE /${bucket}/a?versionId=${versionId}`);
    const events = await shown(bucket);
    expect(events.map(brief)).toEqual([
      'Created:Put a v 1',
      'Removed:DeleteMarkerCreated a v',
      'Removed:Delete a v 1',
    ]);
    const account = expect.stringMatching(/^\d{12}$/);
    expect(events).toMatchObject([
      { bucket, versionId, requestId: answer.headers['x-amz-request-id'], account, address: '127.0.0.1' },
      { bucket, requestId: markedBy, account },
      { bucket, versionId, account },
    ]);
  });

  test('continue under a new name, and to the end of a forced deletion', async () => {
    const bucket = await makeVersionedBucket(api);
    await record(bucket);
    await api.put(bucket, 'a', 'x');
    await setVersioning(api, bucket, 'Suspended');
    const renamed = `${bucket}-2`;
    await sendTo(`MOVE /${bucket}`, { destination: renamed });
    await api.put(renamed, 'a', 'xy');
    const deletedBy = await sendTo(`DELETE /${renamed}?force_delete=true`);
    const ofBoth = async () =>
      (await show({ json: true }))
        .map((line): Shown => JSON.parse(line))
        .filter((event) => event.bucket === bucket || event.bucket === renamed);
    await expect.poll(async () => (await ofBoth()).length, { timeout: 10_000 }).toBe(4);
    const events = await ofBoth();
    expect(events.map((event) => `${brief(event)} ${event.bucket === bucket ? 1 : 2}`)).toEqual([
      'Created:Put a v 1 1',
      'Created:Put a null 2 2',
      'Removed:Delete a v 1 2',
      'Removed:Delete a null 2 2',
    ]);
    expect(events.slice(2).map(({ requestId }) => requestId)).toEqual([deletedBy, deletedBy]);
  });

  test('end when recording is off, and recorded ones stay', async () => {
    const bucket = await api.makeBucket();
    await record(bucket);
    await api.put(bucket, 'a', 'x');
    expect(await record(bucket, false)).toBe(`events of ${bucket} are not recorded`);
    await api.put(bucket, 'b', 'x');
    await bucketEvents(context, bucket, { ...connection(), json: true });
    expect(JSON.parse(taken())).toEqual({ bucket, isRecorded: false });
    expect((await shown(bucket)).map(brief)).toEqual(['Created:Put a 1']);
  });
});

describe('holdfast events', () => {
  test('prints a line for each, for people', async () => {
    const bucket = await api.makeBucket();
    await record(bucket);
    await api.put(bucket, 'a\u0007', 'four');
    await sendTo(`MOVE ${pathOf(bucket, 'a\u0007')}`, { destination: 'b' });
    const [created, came, went] = await show({ bucket });
    expect(created).toMatch(
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ {2}ObjectCreated:Put {2}b-\w+\/a\\x07 {2}4 bytes$/,
    );
    expect(came).toMatch(/ObjectCreated:Copy {2}b-\w+\/b {2}4 bytes {2}renamed from a\\x07$/);
    expect(went).toMatch(/ObjectRemoved:Delete {2}b-\w+\/a\\x07 {2}4 bytes {2}renamed to b$/);
  });

  test('follows new events until it is ended', async () => {
    const bucket = await api.makeBucket();
    await record(bucket);
    await api.put(bucket, 'first', 'x');
    const stop = new AbortController();
    const following = createPrintedTool();
    const watched: string[] = [];
    const looks: (() => void)[] = [];
    const waiting = {
      ...following.context,
      print: (line: string) => void watched.push(line),
      sleep: () => new Promise<void>((resolve) => void looks.push(resolve)),
    };
    const over = showEvents(waiting, { ...connection(), bucket, follow: true, signal: stop.signal });
    await expect.poll(() => looks.length, { timeout: 10_000 }).toBe(1);
    expect(watched).toHaveLength(1);
    await api.put(bucket, 'second', 'x');
    stop.abort();
    looks[0]?.();
    await over;
    expect(watched.map((line) => line.split('  ')[2])).toEqual([`${bucket}/first`, `${bucket}/second`]);
  });

  test('lets the server remove printed events only', async () => {
    const bucket = await api.makeBucket();
    await record(bucket);
    await api.put(bucket, 'a', 'x');
    expect((await show({ take: true })).at(-1)).toContain(`${bucket}/a`);
    expect(await show()).toEqual([]);
    await api.put(bucket, 'b', 'x');
    expect(await show({ take: true })).toHaveLength(1);
    expect(await show()).toEqual([]);
    await expect(show({ take: true, bucket })).rejects.toThrow('--take is for events of all buckets');
  });

  test('without a subcommand lists events', async () => {
    const bucket = await api.makeBucket();
    const run = async (...words: string[]) => {
      const program = new Command().exitOverride();
      addClientCommands(program, { ...context, newToken: () => '', writeFile: async () => {} });
      const { dataDir } = connection();
      await program.parseAsync(['events', ...words, '--data-dir', dataDir], { from: 'user' });
      return taken();
    };
    expect(await run('on', bucket)).toBe(`events of ${bucket} are recorded`);
    await api.put(bucket, 'a', 'x');
    expect(JSON.parse(await run('show', bucket, '--json'))).toEqual({ bucket, isRecorded: true });
    expect(JSON.parse(await run('--bucket', bucket, '--json'))).toMatchObject({ bucket, key: 'a' });
    expect(await run('list', '--bucket', bucket)).toContain(`${bucket}/a`);
    expect(await run('off', bucket)).toBe(`events of ${bucket} are not recorded`);
  });

  test('reports a missing bucket', async () => {
    await expect(record('nobody-has-it')).rejects.toThrow('There is no bucket of that name. (NoSuchEntity)');
    await expect(show({ bucket: 'No Name' })).rejects.toThrow('There is no bucket of that name.');
  });
});

describe('the operator API', () => {
  const clientOf = () => {
    const { endpoint, accessKey, secretKey } = api.server;
    return createOperatorClient({ endpoint, credentials: { accessKey, secretKey }, nowMs: Date.now });
  };

  test('returns pages that continue where the one before ended', async () => {
    const bucket = await api.makeBucket();
    await record(bucket);
    const client = clientOf();
    const read = async (cursor?: string) =>
      (await client.call('POST', '/events', { bucket, ...(cursor !== undefined && { cursor }) })) as {
        events: Shown[];
        cursor: string;
        hasMore: boolean;
      };
    const first = await read();
    await api.put(bucket, 'a', 'x');
    const second = await read(first.cursor);
    expect(second.events.map(brief)).toEqual(['Created:Put a 1']);
    expect(await read(second.cursor)).toMatchObject({ events: [], cursor: second.cursor, hasMore: false });
  });

  test.each(['x', '-', '0.1.0-', '0.1', 'zzzz.1.1', '0.1.0.0'])('refuses the cursor %s', async (cursor) => {
    const client = clientOf();
    for (const path of ['/events', '/events/take'])
      await expect(client.call('POST', path, { cursor })).rejects.toThrow('(ValidationError)');
  });
});
