// `holdfast lifecycle`: how the lifecycle of a bucket stands, and what rules would do in it, of a file or of the bucket.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addClientCommands } from '../../src/cli/commands.ts';
import { lifecycleStatus, type PreviewOptions, previewLifecycle } from '../../src/cli/lifecycle-command.ts';
import { createOperatorClient } from '../../src/cli/operator-client.ts';
import { ENABLED, FILTER, lifecycleXml, putRules } from '../support/objects/lifecycle-documents.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { makeLockBucket, putVersion, retentionXml, sendRetention } from '../support/servers/locks.ts';
import { beginUpload } from '../support/servers/multipart.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectStatus, useApi } from '../support/servers/s3-api.ts';

const DAY_MS = 24 * 3600 * 1000;
const api = useApi();
const { context, taken } = createPrintedTool();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-rules-'));
});
afterAll(() => rm(folder, { recursive: true }));

const connection = () => ({ dataDir: api.server.dataDir });
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
const rule = (id: string, ...parts: string[]) => `<ID>${id}</ID>${ENABLED}${parts.join('')}`;
const days = (count: number) => `<Expiration><Days>${count}</Days></Expiration>`;
const prefix = (text: string) => `<Filter><Prefix>${text}</Prefix></Filter>`;
const NONCURRENT =
  '<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>';
const ABORT =
  '<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>';

async function preview(bucket: string, options: PreviewOptions & { text?: string } = {}): Promise<string> {
  const { text, ...others } = options;
  const file = join(folder, 'rules');
  if (text !== undefined) await writeFile(file, text);
  await previewLifecycle(context, bucket, {
    ...connection(),
    ...(text !== undefined && { file }),
    ...others,
  });
  return taken();
}

async function previewed(bucket: string, options: PreviewOptions & { text?: string }) {
  return JSON.parse(await preview(bucket, { ...options, json: true })) as {
    sums: object[];
    examinedCount: number;
    first: object[];
  };
}

test('counts and sizes by rule and action; what is kept by retention; uploads', async () => {
  const bucket = await makeLockBucket(api);
  const kept = await putVersion(api, { bucket, key: 'a' });
  const retention = retentionXml('COMPLIANCE', inDays(100));
  expectStatus(await sendRetention(api, { bucket, key: 'a', versionId: kept }, retention), 200);
  const older = await putVersion(api, { bucket, key: 'a' });
  await putVersion(api, { bucket, key: 'a' });
  await putVersion(api, { bucket, key: 'logs/b' });
  const { uploadId } = await beginUpload(api, { bucket, key: 'u' });
  const text = lifecycleXml(
    rule('old versions', FILTER, NONCURRENT, ABORT),
    rule('logs', prefix('logs/'), days(1)),
    rule('later', FILTER, days(90)),
  );
  expect(await preview(bucket, { text })).toMatch(/^Nothing is due, of \d+ that were examined\.$/);
  const at = inDays(3);
  const { sums, first } = await previewed(bucket, { text, at });
  expect(sums).toEqual([
    { rule: 'old versions', action: 'abort-upload', isKept: false, count: 1, sizeBytes: 0 },
    { rule: 'old versions', action: 'remove-noncurrent', isKept: false, count: 1, sizeBytes: 1 },
    { rule: 'old versions', action: 'remove-noncurrent', isKept: true, count: 1, sizeBytes: 1 },
    { rule: 'logs', action: 'make-marker', isKept: false, count: 1, sizeBytes: 0 },
  ]);
  expect(first).toMatchObject([
    { key: 'u', uploadId, isKept: false },
    { key: 'a', versionId: older, rule: 'old versions', isKept: false, sizeBytes: 1 },
    { key: 'a', versionId: kept, rule: 'old versions', isKept: true },
    { key: 'logs/b', action: 'make-marker', rule: 'logs' },
  ]);
  const table = await preview(bucket, { text, at });
  expect(table).toMatch(/old versions +remove-noncurrent, kept by retention +1 +1 bytes/);
  expect(table).toMatch(/make-marker +0 bytes +logs\/b/);
  // It was only looked at.
  const { status } = await api.send({ method: 'GET', path: pathOf(bucket, 'logs/b') });
  expect(status).toBe(200);
});

test('more than one page adds up; without a file it is the rules of the bucket, in JSON of the AWS CLI those of the file', async () => {
  const bucket = await api.makeBucket();
  const count = 2100;
  for (let at = 0; at < count; at += 70) {
    const batch = Array.from({ length: 70 }, (_, more) => api.put(bucket, `k${at + more}`, 'xyz'));
    await Promise.all(batch);
  }
  const expected = { action: 'expire', isKept: false, count, sizeBytes: 3 * count };
  await expect(preview(bucket, { at: inDays(3) })).rejects.toThrow('NoSuchLifecycleConfiguration');
  expectStatus(await api.send(putRules(bucket, rule('its own', FILTER, days(1)))), 200);
  const found = await previewed(bucket, { at: inDays(3) });
  expect(found).toMatchObject({ sums: [{ rule: 'its own', ...expected }], examinedCount: count });
  expect(found.first).toHaveLength(20);
  const json = { Rules: [{ Filter: { Prefix: 'k1' }, Status: 'Enabled', Expiration: { Days: 1 } }] };
  const { sums } = await previewed(bucket, { text: JSON.stringify(json), at: inDays(3) });
  expect(sums).toMatchObject([{ rule: '#1', action: 'expire', count: 1111 }]);
});

test('what is refused', async () => {
  const bucket = await api.makeBucket();
  const refused = async (text: string) => {
    await expect(preview(bucket, { text })).rejects.toThrow();
    return preview(bucket, { text }).catch((error: Error) => error.message);
  };
  expect(await refused('{"Rules":[{"Filters":{}}]}')).toBe(
    'This is no lifecycle configuration: Filters in Rule. (MalformedXML)',
  );
  expect(await refused('<Rules/>')).toContain('Rules instead of LifecycleConfiguration');
  expect(await refused(lifecycleXml(rule('r', FILTER)))).toBe(
    'At least one action needs to be specified in a rule (InvalidRequest)',
  );
  expect(await refused(' '.repeat(600 * 1024))).toContain('MaxMessageLengthExceeded');
  expect(await refused(' '.repeat(1024 * 1024 + 1))).toContain('they are a file of 1 MiB at most');
  await expect(preview(bucket, { file: join(folder, 'none') })).rejects.toThrow('cannot read');
  await expect(preview(bucket, { at: 'soon' })).rejects.toThrow('NoSuchLifecycleConfiguration');
  await expect(preview('no-such-bucket-here')).rejects.toThrow(
    'There is no bucket of that name. (NoSuchEntity)',
  );
  const client = createOperatorClient({
    endpoint: api.server.endpoint,
    credentials: api.server,
    nowMs: Date.now,
  });
  const document = lifecycleXml(rule('r', FILTER, days(1)));
  const ask = (more: object) =>
    client.call('POST', `/buckets/${bucket}/lifecycle/preview`, { document, ...more });
  await expect(ask({ at: 'soon' })).rejects.toThrow('at is no time');
  for (const cursor of [
    'x',
    Buffer.from('["elsewhere"]').toString('base64url'),
    Buffer.from('7').toString('base64url'),
  ])
    await expect(ask({ cursor })).rejects.toThrow('cursor is of no page');
});

test('how it stands', async () => {
  const bucket = await api.makeBucket();
  const status = async (options: { json?: boolean } = {}) => {
    await lifecycleStatus(context, bucket, { ...connection(), ...options });
    return taken();
  };
  expect(await status()).toContain('never: nothing is ever due');
  await api.put(bucket, 'k', 'x');
  const off = rule('off', prefix('x'), days(1)).replace('Enabled', 'Disabled');
  expectStatus(await api.send(putRules(bucket, rule('on', FILTER, days(1)), off)), 200);
  const text = await status();
  expect(text).toMatch(/rules +1 on, 1 off/);
  expect(text).toMatch(/versions +1\n/);
  const report = JSON.parse(await status({ json: true }));
  expect(report).toMatchObject({ bucket, enabledRuleCount: 1, disabledRuleCount: 1, objectCount: 1 });
  expect(Date.parse(report.dueAt)).not.toBeNaN();
  await expect(lifecycleStatus(context, 'no-such-bucket-here', connection())).rejects.toThrow('NoSuchEntity');
});

test('the commands', async () => {
  const bucket = await api.makeBucket();
  const program = new Command().exitOverride();
  addClientCommands(program, { ...context, newToken: () => '', writeFile: async () => {} });
  const run = (...words: string[]) =>
    program.parseAsync(['lifecycle', ...words, '--data-dir', api.server.dataDir], { from: 'user' });
  await run('status', bucket);
  expect(taken()).toContain('0 on, 0 off');
  const file = join(folder, 'rules.xml');
  await writeFile(file, lifecycleXml(rule('r', FILTER, days(1))));
  await run('preview', bucket, '--file', file, '--at', '2999-01-01');
  expect(taken()).toContain('Nothing is due');
});
