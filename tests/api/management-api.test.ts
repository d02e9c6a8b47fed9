// /api/v1 on a server with real accounts: from the operator's first command to a customer that stores, is suspended and is gone
// (docs/management-api.md, extensions 1).
import { beforeAll, describe, expect, test, vi } from 'vitest';
import {
  changePartner,
  createPartner,
  createPartnerKey,
  createPartnerUser,
  deletePartnerKey,
  listPartners,
  listPartnerUsers,
  setPartnerUser,
} from '../../src/cli/control-commands.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { expectError, expectStatus, freshWord, useApi } from '../support/servers/s3-api.ts';

interface Envelope {
  success: boolean;
  code?: string;
  // biome-ignore lint/suspicious/noExplicitAny: each call has data of its own.
  data: any;
  errors: { field: string; message: string }[] | null;
}

const api = useApi();
const { context, taken } = createPrintedTool();
let login: string;
let controlId: number;
let userId: number;

const options = () => ({ dataDir: api.server.dataDir, json: true });

beforeAll(async () => {
  const word = freshWord();
  await createPartner(context, {
    ...options(),
    name: `Acme ${word}`,
    email: `${word}@acme.example`,
    level: 'control',
  });
  controlId = JSON.parse(taken()).id;
  const user = { email: `ann-${word}@acme.example`, firstName: 'Ann', lastName: 'Archer', role: 'Admin' };
  await createPartnerUser(context, String(controlId), { ...options(), ...user });
  userId = JSON.parse(taken()).id;
  await createPartnerKey(context, String(userId), { ...options(), name: 'portal' });
  login = `${user.email}:${JSON.parse(taken()).apiKey}`;
});

async function call(method: string, path: string, body?: object, as = login) {
  const answer = await fetch(`${api.server.endpoint}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(as).toString('base64')}`,
      'content-type': 'application/json',
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, headers: answer.headers, ...((await answer.json()) as Envelope) };
}

const newCustomer = () => ({
  name: `Bakery ${freshWord()}`,
  wasabiAccountEmail: `${freshWord()}@bakery.example`,
  password: 'Lon3ly&Loaf',
  isTrial: false,
});

describe('a customer', () => {
  test('is made with keys that store, suspended, restored, and deleted with what it owns', async () => {
    const made = await call('POST', '/sub-accounts', newCustomer());
    expect(made).toMatchObject({ status: 200, success: true, code: 'RES-I-0001' });
    const { id, accessKey, secretKey, status } = made.data;
    expect(status).toBe('PAID_ACCOUNT');
    const as = { endpoint: api.server.endpoint, accessKey, secretKey };
    const bucket = await api.makeBucket(as);
    expectStatus(await api.send({ method: 'PUT', path: `/${bucket}/k`, body: Buffer.from('x') }, as), 200);

    expect(await call('PUT', `/sub-accounts/${id}`, { active: false })).toMatchObject({ status: 200 });
    const read = { method: 'GET', path: `/${bucket}/k` };
    expectError(await api.send(read, as), { status: 403, code: 'AccountProblem' });
    const restored = await call('PUT', `/sub-accounts/${id}`, { active: true });
    expect(restored.data.status).toBe('PAID_ACCOUNT');
    expectStatus(await api.send(read, as), 200);

    const locked = `locked-${freshWord()}`;
    const withLock = { 'x-amz-bucket-object-lock-enabled': 'true' };
    expectStatus(await api.send({ method: 'PUT', path: `/${locked}`, headers: withLock }, as), 200);
    const untilMs = Math.ceil(Date.now() / 1000 + 3600) * 1000;
    const lock = {
      'x-amz-object-lock-mode': 'COMPLIANCE',
      'x-amz-object-lock-retain-until-date': new Date(untilMs).toISOString(),
    };
    for (const [key, headers] of Object.entries({ kept: lock, free: {} }))
      expectStatus(
        await api.send({ method: 'PUT', path: `/${locked}/${key}`, headers, body: Buffer.from('x') }, as),
        200,
      );
    expect(await call('DELETE', `/sub-accounts/${id}`)).toMatchObject({ status: 200, data: null });
    expectError(await api.send({ method: 'GET', path: '/' }, as), {
      status: 403,
      code: 'InvalidAccessKeyId',
    });
    expect(await call('GET', `/sub-accounts/${id}`)).toMatchObject({ status: 404 });
    const gone = await call('GET', `/sub-accounts/${id}?includeDeleted=true`);
    expect(gone.data.status).toBe('DEACTIVATED');
    // What is protected stays; all else goes, in the background.
    const path = `/sub-accounts/${id}?includeDeleted=true`;
    const removal = await vi.waitUntil(
      async () => {
        const { data } = await call('GET', path);
        return data.removal?.keptBucketsCount === 1 && data.removal;
      },
      { timeout: 120_000, interval: 200 },
    );
    expect(removal).toMatchObject({
      removedBuckets: 1,
      keptBuckets: [{ name: locked, versionCount: 1, keptUntil: new Date(untilMs).toISOString() }],
    });
    expectError(await api.send({ method: 'GET', path: `/${bucket}` }), { status: 404, code: 'NoSuchBucket' });
    // Its name is free, and its address.
    const again = { ...newCustomer(), name: made.data.name, wasabiAccountEmail: made.data.accountEmail };
    expect(await call('POST', '/sub-accounts', again)).toMatchObject({ status: 200 });
  });

  test('has new keys when they are reset, and the old ones are refused', async () => {
    const { data } = await call('POST', '/sub-accounts', newCustomer());
    const changed = await call('PUT', `/sub-accounts/${data.id}?includeKeys=true`, { resetKeys: true });
    const { accessKey, secretKey } = changed.data;
    expect(accessKey).not.toBe(data.accessKey);
    const { endpoint } = api.server;
    const list = { method: 'GET', path: '/' };
    expectStatus(await api.send(list, { endpoint, accessKey, secretKey }), 200);
    const old = { endpoint, accessKey: data.accessKey, secretKey: data.secretKey };
    expectError(await api.send(list, old), { status: 403, code: 'InvalidAccessKeyId' });
  });

  test('has members, each an IAM user with what its role allows', async () => {
    const { data } = await call('POST', '/sub-accounts', newCustomer());
    const member = {
      subAccountId: data.id,
      firstName: 'Bo',
      lastName: 'Baker',
      email: `${freshWord()}@bakery.example`,
      password: 'Cr0iss&nts',
      memberRole: 'read_only',
    };
    const made = await call('POST', '/members', member);
    expect(made).toMatchObject({ status: 200, data: { memberRole: 'Read Only', status: 'Active' } });
    expect(await call('POST', '/members', member)).toMatchObject({ status: 409 });
    const listed = await call('GET', `/members?subAccountId=${data.id}`);
    expect(listed.data).toMatchObject({ page: 1, size: 100, total: 1 });
    expect(await call('DELETE', `/members/${made.data.id}`)).toMatchObject({
      status: 200,
      code: 'RES-I-0034',
    });
  });

  test('fields that are wrong are named, and nothing is made', async () => {
    const before = await call('GET', '/sub-accounts');
    const wrong = await call('POST', '/sub-accounts', {
      ...newCustomer(),
      name: 'x',
      wasabiAccountEmail: 'nobody',
    });
    expect(wrong).toMatchObject({ status: 400, success: false });
    expect(wrong.errors?.map(({ field }) => field).sort()).toEqual(['name', 'wasabiAccountEmail']);
    expect((await call('GET', '/sub-accounts')).data.total).toBe(before.data.total);
  });
});

describe('who may call', () => {
  test('nobody without a key, nor with a wrong one; the root account as the operator', async () => {
    const { accessKey, secretKey } = api.server;
    for (const as of [`nobody@acme.example:x`, `${login}x`]) {
      const refused = await call('GET', '/sub-accounts', undefined, as);
      expect(refused.status).toBe(401);
      expect(refused.headers.get('www-authenticate')).toContain('Basic');
    }
    const all = await call(
      'GET',
      `/control-accounts?id=${controlId}`,
      undefined,
      `${accessKey}:${secretKey}`,
    );
    expect(all.data.items).toMatchObject([{ id: controlId, partnerType: 'RESELLER' }]);
    expect((await call('GET', `/control-accounts/${controlId + 1000}`)).status).toBe(404);
  });

  test('a key that is deleted, a user and a partner that are deactivated are refused', async () => {
    await createPartnerKey(context, String(userId), { ...options(), name: 'second' });
    const { apiKey, key } = JSON.parse(taken());
    const second = `${login.split(':')[0]}:${apiKey}`;
    const list = async (as = second) => (await call('GET', '/sub-accounts', undefined, as)).status;
    expect(await list()).toBe(200);
    await setPartnerUser(context, String(userId), { ...options(), status: 'deactivated' });
    expect(await list()).toBe(401);
    await setPartnerUser(context, String(userId), { ...options(), status: 'active' });
    await changePartner(context, String(controlId), { ...options(), status: 'deactivated' });
    expect(await list()).toBe(401);
    await changePartner(context, String(controlId), { ...options(), status: 'active' });
    await deletePartnerKey(context, { user: String(userId), key: key.id }, options());
    expect(await list()).toBe(401);
    expect(await list(login)).toBe(200);
    taken();
    await listPartners(context, { dataDir: api.server.dataDir });
    await listPartnerUsers(context, String(controlId), { dataDir: api.server.dataDir });
    expect(taken()).toContain('portal');
  });
});
