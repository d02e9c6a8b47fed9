// x-amz-expiration of objects and x-amz-abort-date of uploads: which rule they name, and where they stand (s3-behaviour 42; AWS
// GetObject, CreateMultipartUpload).
import { beforeEach, describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { ENABLED, FILTER, putRules } from '../support/objects/lifecycle-documents.ts';
import { postForm, signForm } from '../support/servers/forms.ts';
import { pathOf, type RawAnswer } from '../support/servers/raw-s3.ts';
import { expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';

const DAY_MS = 24 * 3600 * 1000;
const KEY = 'logs/k é';
const NAME = 'x-amz-expiration';

const api = useApi();
let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
});

const rule = (id: string, ...parts: string[]) => `<ID>${id}</ID>${ENABLED}${parts.join('')}`;
const days = (count: number) => `<Expiration><Days>${count}</Days></Expiration>`;
const date = (text: string) => `<Expiration><Date>${text}</Date></Expiration>`;
const prefix = (text: string) => `<Filter><Prefix>${text}</Prefix></Filter>`;
const tagged = (key: string, value: string) =>
  `<Filter><Tag><Key>${key}</Key><Value>${value}</Value></Tag></Filter>`;
const aborts = (count: number) =>
  `<AbortIncompleteMultipartUpload><DaysAfterInitiation>${count}</DaysAfterInitiation></AbortIncompleteMultipartUpload>`;
const setRules = async (...rules: string[]) => expectStatus(await api.send(putRules(bucket, ...rules)), 200);
const put = (key = KEY, headers: Record<string, string> = {}) =>
  api.send({ method: 'PUT', path: pathOf(bucket, key), headers, body: Buffer.from('12345') });
const head = (query = '', key = KEY) => api.send({ method: 'HEAD', path: pathOf(bucket, key) + query });

/** The midnight behind the day `count` after the object was made. */
const midnight = (madeAtMs: number, count: number) =>
  new Date((Math.floor(madeAtMs / DAY_MS) + count + 1) * DAY_MS).toUTCString();
const madeAtMs = ({ headers }: RawAnswer) => Date.parse(must(headers['last-modified'], 'it is there'));
const shown = ({ headers }: RawAnswer) => headers[NAME];

async function expectRule(expected: { id: string; count: number } | undefined): Promise<void> {
  const found = await head();
  expectStatus(found, 200);
  const text =
    expected && `expiry-date="${midnight(madeAtMs(found), expected.count)}", rule-id="${expected.id}"`;
  expect(shown(found)).toBe(text);
}

describe('where it stands', () => {
  beforeEach(() => setRules(rule('r', prefix('logs/'), days(3))));

  test('s3-behaviour 42: PUT, HEAD and GET of a covered object carry x-amz-expiration, and of no other one', async () => {
    const stored = await put();
    const found = await head();
    const expected = `expiry-date="${midnight(madeAtMs(found), 3)}", rule-id="r"`;
    expect(shown(stored)).toBe(expected);
    expect(shown(found)).toBe(expected);
    const read = await api.send({
      method: 'GET',
      path: pathOf(bucket, KEY),
      headers: { range: 'bytes=0-1' },
    });
    expectStatus(read, 206);
    expect(shown(read)).toBe(expected);
    expect(shown(await put('other'))).toBeUndefined();
    expect(shown(await head('', 'other'))).toBeUndefined();
  });

  test('not under a version id, not even the current one; not of what is not modified', async () => {
    await api.send({
      method: 'PUT',
      path: `/${bucket}?versioning`,
      body: Buffer.from('<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'),
    });
    const stored = await put();
    expect(shown(stored)).toBeDefined();
    const found = await head(`?versionId=${stored.headers['x-amz-version-id']}`);
    expectStatus(found, 200);
    expect(shown(found)).toBeUndefined();
    const headers = { 'if-none-match': must(stored.headers.etag, 'it is there') };
    const same = await api.send({ method: 'GET', path: pathOf(bucket, KEY), headers });
    expectStatus(same, 304);
    expect(shown(same)).toBeUndefined();
  });

  test('a composition, by its tags, and an append to it', async () => {
    await setRules(rule('all', prefix(''), days(9)), rule('t', tagged('kind', 'log'), days(2)));
    expectStatus(await put('part'), 200);
    const body = Buffer.from('<ComposeRequest><Component><Key>part</Key></Component></ComposeRequest>');
    const headers = { 'x-amz-tagging': 'kind=log' };
    const path = pathOf(bucket, KEY);
    const composed = await api.send({ method: 'PUT', path: `${path}?compose`, headers, body });
    expectStatus(composed, 200);
    await expectRule({ id: 't', count: 2 });
    expect(shown(composed)).toBe(shown(await head()));
    const more = Buffer.from('more');
    const appended = await api.send({ method: 'PUT', path: `${path}?append`, body: more });
    expectStatus(appended, 200);
    expect(shown(appended)).toBe(shown(await head()));
    expect(shown(appended)).toContain('rule-id="t"');
  });

  test('a copy, by its own key', async () => {
    expectStatus(await put('from'), 200);
    const headers = { 'x-amz-copy-source': `/${bucket}/from` };
    const copied = await api.send({ method: 'PUT', path: pathOf(bucket, KEY), headers });
    expectStatus(copied, 200);
    expect(shown(copied)).toBe(shown(await head()));
    expect(shown(copied)).toContain('rule-id="r"');
  });

  test('an upload that is completed', async () => {
    const path = pathOf(bucket, KEY);
    const begun = await api.send({ method: 'POST', path: `${path}?uploads` });
    const uploadId = fieldsOf(begun).UploadId;
    const part = await api.send({
      method: 'PUT',
      path: `${path}?partNumber=1&uploadId=${uploadId}`,
      body: Buffer.from('1234567'),
    });
    const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`;
    const complete = () =>
      api.send({ method: 'POST', path: `${path}?uploadId=${uploadId}`, body: Buffer.from(list) });
    const made = await complete();
    expectStatus(made, 200);
    expect(shown(made)).toBe(shown(await head()));
    expect(shown(made)).toContain('rule-id="r"');
    // A repetition says it while the object is the current one.
    expect(shown(await complete())).toBe(shown(made));
    expectStatus(await api.send({ method: 'DELETE', path }), 204);
    const repeated = await complete();
    expectStatus(repeated, 200);
    expect(shown(repeated)).toBeUndefined();
  });

  test('a form', async () => {
    const posted = await postForm(api.server, bucket, {
      fields: signForm(api.server, bucket, [['key', KEY]]),
    });
    expect(posted.status).toBe(204);
    expect(posted.headers[NAME]).toBe(shown(await head()));
    expect(posted.headers[NAME]).toContain('rule-id="r"');
  });
});

describe('which rule it names', () => {
  test('the one that is due first; of two at once the one that stands first', async () => {
    await put();
    await setRules(
      rule('later', FILTER, days(9)),
      rule('first', prefix('logs/'), days(5)),
      rule('second', FILTER, days(5)),
    );
    await expectRule({ id: 'first', count: 5 });
    await setRules(rule('far', FILTER, date('2999-01-01T00:00:00Z')), rule('near', FILTER, days(2)));
    await expectRule({ id: 'near', count: 2 });
    await setRules(rule('past', FILTER, date('2020-02-29T00:00:00Z')), rule('near', FILTER, days(2)));
    expect(shown(await head())).toBe('expiry-date="Sat, 29 Feb 2020 00:00:00 GMT", rule-id="past"');
  });

  test('none that is off, of markers or noncurrent versions alone, or of another key or size', async () => {
    await put();
    await setRules(
      rule('off', FILTER, days(1)).replace('Enabled', 'Disabled'),
      rule(
        'markers',
        FILTER,
        '<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>',
      ),
      rule(
        'noncurrent',
        FILTER,
        '<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>',
      ),
      rule('key', prefix('log/'), days(1)),
      rule('small', '<Filter><ObjectSizeLessThan>5</ObjectSizeLessThan></Filter>', days(1)),
      rule('large', '<Filter><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan></Filter>', days(1)),
    );
    await expectRule(undefined);
    await setRules(rule('fits', '<Filter><ObjectSizeLessThan>6</ObjectSizeLessThan></Filter>', days(1)));
    await expectRule({ id: 'fits', count: 1 });
  });

  test('by tags of the request, then of the object', async () => {
    await setRules(rule('tagged', tagged('a', '1'), days(1)));
    expect(shown(await put(KEY, { 'x-amz-tagging': 'a=2' }))).toBeUndefined();
    await expectRule(undefined);
    expect(shown(await put(KEY, { 'x-amz-tagging': 'b=x&a=1' }))).toContain('rule-id="tagged"');
    await expectRule({ id: 'tagged', count: 1 });
    const copy = async (headers: Record<string, string>) => {
      const source = { 'x-amz-copy-source': encodeURI(`/${bucket}/${KEY}`) };
      const copied = await api.send({
        method: 'PUT',
        path: pathOf(bucket, 'copy'),
        headers: { ...source, ...headers },
      });
      expectStatus(copied, 200);
      return shown(copied);
    };
    expect(await copy({})).toContain('rule-id="tagged"');
    expect(await copy({ 'x-amz-tagging-directive': 'REPLACE' })).toBeUndefined();
    const path = `${pathOf(bucket, KEY)}?tagging`;
    expectStatus(await api.send({ method: 'DELETE', path }), 204);
    await expectRule(undefined);
  });

  test('rules that change or go are gone at once', async () => {
    await put();
    await setRules(rule('one', FILTER, days(1)));
    await expectRule({ id: 'one', count: 1 });
    await setRules(rule('two', FILTER, days(2)));
    await expectRule({ id: 'two', count: 2 });
    expectStatus(await api.send({ method: 'DELETE', path: `/${bucket}?lifecycle` }), 204);
    await expectRule(undefined);
  });

  test('its id as it is, with what a header cannot hold percent-encoded; no day that no date names', async () => {
    await put();
    await setRules(rule('Delete &quot;all&quot; 100% é\\', FILTER, days(1)));
    await expectRule({ id: 'Delete %22all%22 100%25 %C3%A9%5C', count: 1 });
    await setRules(rule('never', FILTER, days(2 ** 31 - 1)));
    await expectRule(undefined);
  });
});

test('an upload is told when it is aborted', async () => {
  await setRules(
    rule('other', prefix('x'), aborts(1)),
    rule('mine', FILTER, aborts(2)),
    rule('o', FILTER, days(1)),
  );
  const path = pathOf(bucket, KEY);
  const beforeMs = Date.now();
  const begun = await api.send({ method: 'POST', path: `${path}?uploads` });
  expectStatus(begun, 200);
  expect([midnight(beforeMs, 2), midnight(Date.now(), 2)]).toContain(begun.headers['x-amz-abort-date']);
  expect(begun.headers['x-amz-abort-rule-id']).toBe('mine');
  const listed = () => api.send({ method: 'GET', path: `${path}?uploadId=${fieldsOf(begun).UploadId}` });
  expect((await listed()).headers).toMatchObject({
    'x-amz-abort-date': begun.headers['x-amz-abort-date'],
    'x-amz-abort-rule-id': 'mine',
  });
  await setRules(rule('other', prefix('x'), aborts(1)));
  expect((await listed()).headers['x-amz-abort-date']).toBeUndefined();
  const another = await api.send({ method: 'POST', path: `${path}?uploads` });
  expect(another.headers['x-amz-abort-rule-id']).toBeUndefined();
});
