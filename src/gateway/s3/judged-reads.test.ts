// Objects that are replaced between a decision and what it allows: nobody reads or shares what he was not judged by.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { addUser } from '../../../tests/support/objects/identities.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';

let world: GatewayWorld;
let owner: Awaited<ReturnType<GatewayWorld['makeAccount']>>;
let other: typeof owner;
/** Runs once, behind the next look at a version. */
let behindLook: (() => Promise<unknown>) | undefined;
beforeAll(async () => {
  const intercept = (shards: MetadataPort): MetadataPort => ({
    shardCount: shards.shardCount,
    execute: (...asked) => shards.execute(...asked),
    async query(...asked) {
      const answer = await shards.query(...asked);
      if (asked[1] === 'get-version') {
        const act = behindLook;
        behindLook = undefined;
        await act?.();
      }
      return answer;
    },
  });
  world = await openGatewayWorld({ intercept });
  [owner, other] = [await world.makeAccount('owner'), await world.makeAccount('other')];
  await ask(owner, 'PUT', '/shared');
  await ask(owner, 'PUT', '/shared?acl', { 'x-amz-grant-read': `id=${other.canonicalId}` });
  await ask(other, 'PUT', '/theirs');
});
afterAll(() => world.close());
beforeEach(() => ask(owner, 'DELETE', '/shared/key'));

async function ask(keys: typeof owner, method: string, path: string, headers: Record<string, string> = {}) {
  const { status, body } = await send({ ...keys, endpoint: world.endpoint }, { method, path, headers });
  return { status, text: String(body) };
}

const put = (headers?: Record<string, string>) => ask(owner, 'PUT', '/shared/key', headers);

/** The object takes the place of what the request was judged by. */
async function meanwhile(act: () => Promise<{ status: number; text: string }>) {
  behindLook = () => put();
  const { status, text } = await act();
  expect(behindLook).toBeUndefined();
  expect((await ask(owner, 'GET', '/shared/key')).status).toBe(200);
  return { status, code: /<Code>(\w+)</.exec(text)?.[1] };
}

const read = () => ask(other, 'GET', '/shared/key');
const copy = () => ask(other, 'PUT', '/theirs/copy', { 'x-amz-copy-source': '/shared/key' });

test('a private object that comes behind the decision about a missing one stays missing', async () => {
  expect(await meanwhile(read)).toEqual({ status: 404, code: 'NoSuchKey' });
  await ask(owner, 'DELETE', '/shared/key');
  expect(await meanwhile(copy)).toEqual({ status: 404, code: 'NoSuchKey' });
  expect((await read()).status).toBe(403);
});

test('a private object in the place of one that was granted is neither read nor copied', async () => {
  const granted = { 'x-amz-grant-full-control': `id=${other.canonicalId}` };
  await put(granted);
  expect((await read()).status).toBe(200);
  expect(await meanwhile(read)).toEqual({ status: 503, code: 'ServiceUnavailable' });
  await put(granted);
  expect(await meanwhile(copy)).toEqual({ status: 503, code: 'ServiceUnavailable' });
  await put(granted);
  const share = () =>
    ask(other, 'PUT', '/shared/key?acl', { 'x-amz-grant-full-control': `id=${other.canonicalId}` });
  expect(await meanwhile(share)).toEqual({ status: 503, code: 'ServiceUnavailable' });
  expect((await read()).status).toBe(403);
});

/** Lets the other account do it to objects that have the tag. */
const allowByTag = (...Action: string[]) =>
  setPolicy({ Action, Condition: { StringEquals: { 's3:ExistingObjectTag/mine': 'yes' } } });

/** Of the other account; default: allows. */
async function setPolicy(...statements: object[]): Promise<void> {
  const Principal = { AWS: `arn:aws:iam::${other.accountId}:root` };
  const common = { Effect: 'Allow', Principal, Resource: 'arn:aws:s3:::shared/*' };
  const Statement = statements.map((statement) => ({ ...common, ...statement }));
  const policy = JSON.stringify({ Version: '2012-10-17', Statement });
  const request = { method: 'PUT', path: '/shared?policy', body: Buffer.from(policy) };
  expect((await send({ ...owner, endpoint: world.endpoint }, request)).status).toBe(204);
}

test('tags are not taken from an object in the place of the one whose tags were judged', async () => {
  await allowByTag('s3:DeleteObjectTagging');
  const untag = () => ask(other, 'DELETE', '/shared/key?tagging');
  await put({ 'x-amz-tagging': 'mine=yes' });
  expect(await meanwhile(untag)).toEqual({ status: 503, code: 'ServiceUnavailable' });
  await put({ 'x-amz-tagging': 'mine=yes' });
  expect((await untag()).status).toBe(204);
});

test('tags are not taken from an object that comes behind the decision about a missing one', async () => {
  const Action = 's3:DeleteObjectTagging';
  const Condition = { StringEquals: { 's3:ExistingObjectTag/keep': 'yes' } };
  const statements = [{ Effect: 'Allow', Action: [Action, 's3:ListBucket'], Resource: '*' }];
  const user = await addUser(world, owner.accountId, { name: 'tagger', statements });
  await setPolicy({ Effect: 'Deny', Principal: '*', Action, Condition });
  const untag = () => ask({ ...owner, ...user }, 'DELETE', '/shared/key?tagging');
  expect((await untag()).status).toBe(404);
  behindLook = () => put({ 'x-amz-tagging': 'keep=yes' });
  expect((await untag()).status).toBe(503);
  expect(behindLook).toBeUndefined();
  expect((await ask(owner, 'GET', '/shared/key?tagging')).text).toContain('<Key>keep</Key>');
  expect((await untag()).status).toBe(403);
  await put();
  expect((await untag()).status).toBe(204);
});

test('a list is not set on an object whose tags changed behind the decision', async () => {
  await allowByTag('s3:PutObjectAcl');
  const share = () => ask(other, 'PUT', '/shared/key?acl', { 'x-amz-acl': 'authenticated-read' });
  await put({ 'x-amz-tagging': 'mine=yes' });
  // Behind the look of the decision, and behind that of the operation, which makes the list for the version's owner.
  for (const looks of [1, 2]) {
    let left = looks;
    const wait = async () => {
      left -= 1;
      if (left > 0) behindLook = wait;
      else await ask(owner, 'DELETE', '/shared/key?tagging');
    };
    behindLook = wait;
    const { status, text } = await share();
    expect([left, status, /<Code>(\w+)</.exec(text)?.[1]]).toEqual([0, 503, 'ServiceUnavailable']);
    expect((await read()).status).toBe(403);
    await put({ 'x-amz-tagging': 'mine=yes' });
  }
  expect((await share()).status).toBe(200);
  expect((await read()).status).toBe(200);
});
