// What a client meets in a bucket under compliance (service 3, 7; delete rule 3; extensions 2.6): the list that a client of
// the vendor's checks, with and without versions, and every request that would remove what is kept. When the time has come, is
// told by the shard's own test (src/metadata/versions/compliance.test.ts).
import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { childOf, childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import {
  complianceOfObject,
  enableCompliance,
  sendBucketCompliance,
  sendObjectCompliance,
} from '../support/servers/compliance.ts';
import { beginUpload, putPart, sendComplete } from '../support/servers/multipart.ts';
import type { RawAnswer } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';
import {
  listVersions,
  makeVersionedBucket,
  setVersioning,
  versionOf,
  versionsIn,
} from '../support/servers/versions.ts';

const api = useApi();
const KEPT = 'Access Denied because the object is protected by compliance, and its retention has not ended.';
const HELD =
  'Access Denied because the object is protected by compliance, and its conditional hold has not been released.';
const denied = (Message: string) => ({ status: 403, code: 'AccessDenied' as const, Message });

let bucket: string;
const request = (
  method: string,
  rest: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<RawAnswer> =>
  api.send({
    method,
    path: `/${bucket}${rest}`,
    headers,
    ...(body !== undefined && { body: Buffer.from(body) }),
  });
const bodyOf = async (rest: string) => (await request('GET', rest)).body.toString();

function deleteMany(...objects: string[]): Promise<RawAnswer> {
  const body = `<Delete>${objects.map((inner) => `<Object>${inner}</Object>`).join('')}</Delete>`;
  const digest = createHash('md5').update(body).digest('base64');
  return request('POST', '?delete', { 'content-md5': digest }, body);
}

/** Code and message of each entry. */
function entriesOf(answer: RawAnswer, name: string): string[] {
  return childrenOf(xmlOf(answer), name).map((entry) => {
    const error = name === 'Error' ? entry : childOf(entry, 'Error');
    return error === undefined ? 'done' : `${textOf(error, 'Code')}: ${textOf(error, 'Message')}`;
  });
}

describe('without versions', () => {
  beforeEach(async () => {
    bucket = await api.makeBucket();
  });

  test('the list: a held object is neither deleted nor overwritten, nor when it is released, nor is its bucket', async () => {
    await enableCompliance(api, bucket, { ConditionalHold: true });
    await api.put(bucket, 'k', 'kept');
    expect(await complianceOfObject(api, { bucket, key: 'k' })).toMatchObject({ ConditionalHold: 'true' });
    expectError(await request('DELETE', '/k'), denied(HELD));
    expectError(await request('PUT', '/k', {}, 'other'), denied(HELD));
    expectStatus(await sendObjectCompliance(api, { bucket, key: 'k' }, { ConditionalHold: false }), 200);
    expect(await complianceOfObject(api, { bucket, key: 'k' })).toMatchObject({ ConditionalHold: 'false' });
    expectError(await request('DELETE', '/k'), denied(KEPT));
    expectError(await request('PUT', '/k', {}, 'other'), denied(KEPT));
    expectError(await request('DELETE', ''), { status: 409, code: 'BucketNotEmpty' });
    expect(await bodyOf('/k')).toBe('kept');
  });

  describe('an object that is kept stays, whatever would replace or remove it', () => {
    beforeEach(async () => {
      await api.put(bucket, 'k', 'kept');
      await api.put(bucket, 'source', 'source');
      await enableCompliance(api, bucket);
    });

    const cases: [string, () => Promise<RawAnswer>][] = [
      ['DeleteObject', () => request('DELETE', '/k')],
      ['DeleteObject by its null id', () => request('DELETE', '/k?versionId=null')],
      ['PutObject', () => request('PUT', '/k', {}, 'other')],
      ['PutObject of nothing', () => request('PUT', '/k')],
      ['CopyObject', () => request('PUT', '/k', { 'x-amz-copy-source': `/${bucket}/source` })],
      [
        'CopyObject onto itself',
        () =>
          request('PUT', '/k', {
            'x-amz-copy-source': `/${bucket}/k`,
            'x-amz-metadata-directive': 'REPLACE',
          }),
      ],
      [
        'ComposeObject',
        () =>
          request(
            'PUT',
            '/k?compose',
            {},
            '<ComposeRequest><Component><Key>source</Key></Component></ComposeRequest>',
          ),
      ],
      ['AppendObject', () => request('PUT', '/k?append', {}, 'more')],
      ['an append by offset', () => request('PUT', '/k', { 'x-amz-write-offset-bytes': '4' }, 'more')],
      [
        'CompleteMultipartUpload',
        async () => {
          const upload = await beginUpload(api, { bucket, key: 'k' });
          const etag = await putPart(api, upload, { partNumber: 1, body: Buffer.from('part') });
          return sendComplete(api, upload, [{ partNumber: 1, etag }]);
        },
      ],
    ];
    test.each(cases)('%s', async (_case, send) => {
      expectError(await send(), denied(KEPT));
      expect(await bodyOf('/k')).toBe('kept');
    });

    test('DeleteObjects tells it of each key, and deletes none of them', async () => {
      const answer = await deleteMany('<Key>k</Key>', '<Key>none</Key>');
      expectStatus(answer, 200);
      expect(entriesOf(answer, 'Error')).toEqual([`AccessDenied: ${KEPT}`]);
      expect(await api.keysOf(bucket)).toEqual(['k', 'source']);
    });

    test('MOVE of it, onto it, and of its prefix', async () => {
      for (const [from, to] of [
        ['k', 'new'],
        ['source', 'k'],
      ]) {
        const moved = await request('MOVE', `/${from}`, { destination: `${to}`, overwrite: 'true' });
        expectStatus(moved, 403);
        expect(entriesOf(moved, 'MoveObject')).toEqual([`AccessDenied: ${KEPT}`]);
      }
      const ofKeys = await request('MOVE', '/k', { destination: 'new', 'x-svc-prefix': 'true' });
      expect(entriesOf(ofKeys, 'MoveObject')).toEqual([`AccessDenied: ${KEPT}`]);
      expect(await api.keysOf(bucket)).toEqual(['k', 'source']);
    });

    test('a forced deletion of its bucket', async () => {
      const refused = await request('DELETE', '?force_delete=true');
      expectError(refused, { status: 403, code: 'AccessDenied', BucketName: bucket });
      expect(refused.body.toString()).toContain(KEPT);
      expect(await api.keysOf(bucket)).toEqual(['k', 'source']);
    });

    test('new keys come, and tags and lists change, as in any bucket', async () => {
      await api.put(bucket, 'new', 'bytes');
      const tags = '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>';
      expectStatus(await request('PUT', '/k?tagging', {}, tags), 200);
      expectStatus(await request('PUT', '/k?acl', { 'x-amz-acl': 'private' }), 200);
      expectError(await request('DELETE', '/k'), denied(KEPT));
    });

    test('all goes when compliance is off', async () => {
      expectStatus(await sendBucketCompliance(api, bucket, { Status: 'disabled' }), 200);
      expectStatus(await request('DELETE', '?force_delete=true'), 204);
    });
  });

  test('with no days, only holds keep anything', async () => {
    await enableCompliance(api, bucket, { RetentionDays: 0 });
    await api.put(bucket, 'k', 'one');
    await api.put(bucket, 'k', 'two');
    expectStatus(await request('DELETE', '/k'), 204);
    expectStatus(await request('DELETE', ''), 204);
  });
});

describe('with versions', () => {
  beforeEach(async () => {
    bucket = await makeVersionedBucket(api);
    await enableCompliance(api, bucket);
  });

  test('an overwrite makes a version, a delete a marker, and a version is not deleted', async () => {
    const first = versionOf(await request('PUT', '/k', {}, 'one'));
    const second = versionOf(await request('PUT', '/k', {}, 'two'));
    const deleted = await request('DELETE', '/k');
    expectStatus(deleted, 204);
    expect(deleted.headers['x-amz-delete-marker']).toBe('true');
    for (const id of [first, second]) {
      expectError(await request('DELETE', `/k?versionId=${id}`), denied(KEPT));
      const many = await deleteMany(`<Key>k</Key><VersionId>${id}</VersionId>`);
      expect(entriesOf(many, 'Error')).toEqual([`AccessDenied: ${KEPT}`]);
    }
    expect([await bodyOf(`/k?versionId=${first}`), await bodyOf(`/k?versionId=${second}`)]).toEqual([
      'one',
      'two',
    ]);
    // The marker keeps nothing.
    expectStatus(await request('DELETE', `/k?versionId=${versionOf(deleted)}`), 204);
    expect(await bodyOf('/k')).toBe('two');
    expectError(await request('DELETE', '?force_delete=true'), { status: 403, code: 'AccessDenied' });
    expect(versionsIn(await listVersions(api, bucket))).toHaveLength(2);
  });

  test('a MOVE takes no version away', async () => {
    const versionId = versionOf(await request('PUT', '/k', {}, 'one'));
    const moved = await request('MOVE', '/k', { destination: 'new' });
    expectStatus(moved, 403);
    expect(entriesOf(moved, 'MoveObject')).toEqual([`AccessDenied: ${KEPT}`]);
    expect(moved.body.toString()).toContain(`<VersionId>${versionId}</VersionId>`);
  });

  test('suspended, the null version is not replaced', async () => {
    await setVersioning(api, bucket, 'Suspended');
    await api.put(bucket, 'k', 'null version');
    expectError(await request('PUT', '/k', {}, 'other'), denied(KEPT));
    expectError(await request('DELETE', '/k'), denied(KEPT));
    expect(await bodyOf('/k')).toBe('null version');
  });

  test('each version has its own hold', async () => {
    await enableCompliance(api, bucket, { RetentionDays: 0, ConditionalHold: true });
    const first = versionOf(await request('PUT', '/k', {}, 'one'));
    const second = versionOf(await request('PUT', '/k', {}, 'two'));
    const released = await sendObjectCompliance(
      api,
      { bucket, key: 'k', versionId: first },
      { ConditionalHold: false },
    );
    expectStatus(released, 200);
    expectStatus(await request('DELETE', `/k?versionId=${first}`), 204);
    expectError(await request('DELETE', `/k?versionId=${second}`), denied(HELD));
  });
});
