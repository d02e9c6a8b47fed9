// /api/v1 over HTTP, with accounts in memory: credentials, envelopes, pages, rates, repeats, who sees what, and bad input.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  basicOf,
  type ManagementWorld,
  openManagementWorld,
} from '../../../tests/support/accounts/management-world.ts';
import { openSocket, type RawSocket } from '../../../tests/support/servers/raw-socket.ts';
import { systemClock } from '../../platform/system-clock.ts';
import { LIMITS } from '../../types/limits.ts';

let world: ManagementWorld;
beforeAll(async () => {
  world = await openManagementWorld();
});
afterAll(async () => {
  await world.close();
  expect(world.faults()).toEqual([]);
});

let made = 0;
const newCustomer = (some: object = {}) => {
  made += 1;
  return {
    name: `Customer ${made}`,
    wasabiAccountEmail: `c${made}@example.com`,
    password: 'Pass-1',
    ...some,
  };
};
const create = async (some: object = {}, as = 'one@example.com') => {
  const { json } = await world.call({ path: '/sub-accounts', method: 'POST', body: newCustomer(some), as });
  return json.data;
};

test('an answer to a GET counts in the memory for bodies while it is made, by the control account', async () => {
  const counted = vi.spyOn(world.store, 'withMemory');
  await world.call({ path: '/members' });
  await world.call({ path: '/members?size=2000' });
  await create();
  const tenants = counted.mock.calls.map(([{ sizeBytes, tenant }]) => [sizeBytes, tenant.account]);
  const payer = expect.stringMatching(/^partner \d+$/);
  const { managementPageMemoryBytes, managementRecordMemoryBytes } = LIMITS;
  expect(tenants).toEqual([
    [managementPageMemoryBytes, payer],
    [1000 * managementRecordMemoryBytes, payer],
  ]);
  counted.mockRestore();
});

test('a GET waits for all that does not answer no longer than one request may', async () => {
  const fast = {
    ...systemClock,
    monotonicMs: () => 100 * systemClock.monotonicMs(),
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 100, signal),
  };
  const slow = await openManagementWorld({ clock: fast });
  vi.spyOn(slow.tenancy, 'listMembers').mockReturnValue(new Promise(() => {}));
  const { status, json } = await slow.call({ path: '/members' });
  expect([status, json.success]).toEqual([503, false]);
  await slow.close();
});

test.each([
  ['cross-site', undefined, 403],
  ['same-site', undefined, 403],
  [undefined, 'https://evil.example', 403],
  [undefined, 'null', 403],
  ['same-origin', 'https://a.name.that.a.proxy.changed', 200],
  ['none', undefined, 200],
  [undefined, 'own', 200],
])('a POST of a page, Sec-Fetch-Site %s, Origin %s: %i', async (site, origin, status) => {
  const headers = {
    ...(site !== undefined && { 'sec-fetch-site': site }),
    ...(origin !== undefined && { origin: origin === 'own' ? world.endpoint : origin }),
    'content-type': 'text/plain',
  };
  const answer = await world.call({ path: '/sub-accounts', method: 'POST', body: newCustomer(), headers });
  expect(answer.status).toBe(status);
  expect((await world.call({ path: '/members', headers })).status).toBe(200);
});

describe('credentials', () => {
  test('absent, wrong or malformed ones are answered 401 in the envelope, with WWW-Authenticate', async () => {
    for (const authorization of [
      '',
      'Bearer x',
      'Basic !',
      `Basic ${btoa('one@example.com')}`,
      `Basic ${btoa('a:b')}`,
    ]) {
      const answer = await world.call({ path: '/members', as: null, headers: { authorization } });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
        401,
        expect.stringMatching(/^Basic /),
      ]);
      expect(answer.json).toEqual({
        success: false,
        code: 'RES-E-0401',
        message: expect.not.stringContaining('***'),
        data: null,
        errors: null,
      });
    }
  });

  test('a request that others can read is refused before its key is looked at, unless a trusted proxy says https', async () => {
    const proxied = await openManagementWorld({ settings: { trustedProxies: ['127.0.0.1'] } });
    const from = (proto: string) => ({ 'x-forwarded-for': '192.0.2.7', 'x-forwarded-proto': proto });
    const answers = await Promise.all(
      ['http', 'https'].map((proto) => proxied.call({ path: '/members', headers: from(proto) })),
    );
    expect(answers.map(({ status }) => status)).toEqual([400, 200]);
    await proxied.close();
  });

  test('documents are for anybody, and nothing else is', async () => {
    const document = await world.call({ path: '/openapi.json', as: null });
    expect([document.status, document.json.openapi]).toEqual([200, '3.1.0']);
    expect((await world.call({ path: '/openapi.json/x', as: null })).status).toBe(401);
  });
});

test('bodies of one caller that do not come hold a share of memory, and the next caller has room', async () => {
  const sockets: RawSocket[] = [];
  const statuses: (number | undefined)[] = [];
  const unitBytes = 256 * 1024;
  // Four fifths of all are for one address.
  const heldCount = Math.floor((LIMITS.provedBodiesBytesMax / unitBytes) * 0.72);
  const head = [
    'POST /api/v1/members HTTP/1.1',
    'Host: x',
    `Authorization: ${basicOf('one@example.com')}`,
    `Content-Length: ${unitBytes}`,
  ];
  for (let at = 0; at < heldCount + 5; at++) {
    const socket = await openSocket(world);
    sockets.push(socket);
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    void socket.answer().then((answer) => statuses.push(answer?.status));
  }
  await expect.poll(() => statuses).toEqual(new Array(5).fill(503));
  const other = await world.call({ path: '/sub-accounts', method: 'POST', body: {}, as: 'two@example.com' });
  expect(other.status).toBe(400);
  expect((await world.call({ path: '/members' })).status).toBe(200);
  for (const socket of sockets) socket.destroy();
});

const CUSTOMER = JSON.stringify(newCustomer());

test.each([
  ['a body', `Content-Length: ${CUSTOMER.length}`, CUSTOMER],
  ['the end of an empty body', 'Transfer-Encoding: chunked', '0\r\n\r\n'],
])('a key that goes while %s comes does nothing any more', async (_what, framing, rest) => {
  const head = [
    'POST /api/v1/sub-accounts HTTP/1.1',
    'Host: x',
    `Authorization: ${basicOf('one@example.com')}`,
    'Content-Type: application/json',
    framing,
    'Expect: 100-continue',
  ];
  const socket = await openSocket(world);
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  expect(await socket.answer()).toMatchObject({ status: 100 });
  const before = world.tenancy.changeCount();
  const goes = vi.spyOn(world.tenancy, 'authenticate').mockResolvedValue(undefined);
  socket.write(rest);
  expect(await socket.answer()).toMatchObject({ status: 401 });
  goes.mockRestore();
  expect(world.tenancy.changeCount()).toBe(before);
  socket.destroy();
});

test('documents on their way to strangers are bounded, by address', async () => {
  const { promise: document, resolve: release } = Promise.withResolvers<string>();
  let askedCount = 0;
  // Once when the world is opened.
  const crowded = await openManagementWorld({
    document: () => (askedCount++ === 0 ? Promise.resolve('{}') : document),
  });
  const ask = async (localAddress: string) => {
    const socket = await openSocket(crowded, { localAddress });
    socket.write('GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n');
    return socket;
  };
  const sockets = await Promise.all(Array.from({ length: 20 }, () => ask('127.0.0.2')));
  sockets.push(await ask('127.0.0.3'));
  await expect.poll(() => askedCount).toBe(22);
  release(' '.repeat(LIMITS.publicAnswersBytesMax / 16));
  const statuses = await Promise.all(sockets.map(async (socket) => (await socket.answer())?.status));
  // Four fifths are for one address.
  expect(statuses.slice(0, 20).filter((status) => status === 200)).toHaveLength(12);
  expect(statuses.at(20)).toBe(200);
  for (const { destroy } of sockets) destroy();
  await crowded.close();
});

describe('the page of documentation', () => {
  const get = (path: string) => fetch(`${world.endpoint}/api/v1/docs${path}`, { redirect: 'manual' });

  test('has its files from this server alone, and a policy that says so', async () => {
    const page = await get('');
    const html = await page.text();
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const files = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, file]) => file);
    expect(files).toEqual(['docs/swagger-ui.css', 'docs/swagger-ui-bundle.js', 'docs/start.js']);
    for (const file of files) expect((await get(`/${file?.slice('docs/'.length)}`)).status).toBe(200);
    expect((await get('/')).headers.get('location')).toBe('/api/v1/docs');
  });

  test('gives out no other file', async () => {
    for (const path of [
      '/package.json',
      '/../package.json',
      '/%2e%2e/package.json',
      '/swagger-ui.css.map',
      '/toString',
    ]) {
      expect((await get(path)).status).toBeGreaterThanOrEqual(400);
    }
    expect((await fetch(`${world.endpoint}/api/v1/docs`, { method: 'POST' })).status).toBe(405);
  });
});

test('a sub-account is made, read, changed and deleted', async () => {
  const body = newCustomer({ city: 'Bonn', isTrial: false });
  const answer = await world.call({ path: '/sub-accounts', method: 'POST', body });
  expect(answer).toMatchObject({ status: 200, json: { success: true, code: 'RES-I-0001', errors: null } });
  const { id, ...record } = answer.json.data;
  expect(record).toMatchObject({
    name: body.name,
    wasabiAccountEmail: body.wasabiAccountEmail,
    accountEmail: body.wasabiAccountEmail,
    status: 'PAID_ACCOUNT',
    city: 'Bonn',
    address1: null,
    trialExpiration: '0001-01-01T00:00:00.000Z',
    creationDate: '2026-01-05T00:00:00.000Z',
    wasabiAccountNumber: expect.stringMatching(/^\d{12}$/),
    accessKey: expect.any(String),
    secretKey: expect.any(String),
  });
  const path = `/sub-accounts/${id}`;
  const read = await world.call({ path });
  expect(read.json).toMatchObject({
    success: true,
    message: 'Successfully read!',
    data: { id, city: 'Bonn' },
  });
  expect([read.json.code, read.json.data.secretKey]).toEqual([undefined, undefined]);
  expect((await world.call({ path: `${path}?includeKeys=true` })).json.data.secretKey).toBe(record.secretKey);
  const changed = await world.call({
    path,
    method: 'PUT',
    body: { active: false, city: null, unknown: [1] },
  });
  expect(changed.json).toMatchObject({ code: 'RES-I-0002', data: { status: 'SUSPENDED', city: null } });
  const gone = await world.call({ path, method: 'DELETE' });
  expect([gone.status, gone.json]).toEqual([
    200,
    { success: true, code: 'RES-I-0003', message: 'Sub-account deleted.', data: null, errors: null },
  ]);
  expect((await world.call({ path })).json).toMatchObject({ code: 'RES-E-0404', data: null });
  expect((await world.call({ path: `${path}?includeDeleted=true` })).json.data.status).toBe('DEACTIVATED');
});

test('a member is made, read, changed and deleted', async () => {
  const { id: subAccountId } = await create();
  const person = { firstName: 'Ann', lastName: 'Lee', email: 'ann@example.com', password: 'Pass-1' };
  const body = { ...person, subAccountId, memberRole: 'full_access', stateName: 'NRW' };
  const answer = await world.call({ path: '/members', method: 'POST', body });
  expect(answer.json).toMatchObject({
    code: 'RES-I-0045',
    data: {
      memberRole: 'Full Access',
      username: 'ann@example.com',
      state: 'NRW',
      stateName: 'NRW',
      status: 'Active',
    },
  });
  const path = `/members/${answer.json.data.id}`;
  const role = await world.call({ path, method: 'PUT', body: { memberRole: 'king' } });
  expect(role.json.errors).toEqual([
    { field: 'memberRole', message: expect.stringMatching(/^must be one of Root/) },
  ]);
  expect((await world.call({ path, method: 'PUT', body: { active: false } })).json).toMatchObject({
    code: 'RES-I-0036',
    data: { status: 'Deactivated' },
  });
  expect((await world.call({ path: '/members?status=Deactivated' })).json.data.total).toBe(1);
  expect((await world.call({ path: '/members?status=Locked' })).json.data).toEqual({
    items: [],
    page: 1,
    size: 100,
    total: 0,
  });
  expect((await world.call({ path, method: 'DELETE' })).json).toMatchObject({
    code: 'RES-I-0034',
    data: null,
  });
  expect((await world.call({ path })).status).toBe(404);
});

describe('who sees what', () => {
  const parents = ['controlAccountId', 'controlAccountName', 'governanceAccountId', 'governanceAccountName'];
  test.each([
    ['ops@example.com', parents],
    ['gov@example.com', parents.slice(0, 2)],
    ['one@example.com', []],
  ])('%s sees of the parents %j', async (as, seen) => {
    const { id } = await create();
    const { data } = (await world.call({ path: `/sub-accounts/${id}`, as })).json;
    expect(parents.filter((name) => name in data)).toEqual(seen);
    const [invoice] = (await world.call({ path: '/invoices', as })).json.data.items;
    expect(parents.filter((name) => name in invoice)).toEqual(seen);
  });

  test('what belongs to others is not there, and who may only read changes nothing', async () => {
    const { id } = await create();
    const path = `/sub-accounts/${id}`;
    const before = world.tenancy.changeCount();
    expect((await world.call({ path, as: 'two@example.com' })).status).toBe(404);
    expect((await world.call({ path, method: 'DELETE', as: 'two@example.com' })).status).toBe(404);
    const refused = await world.call({ path, method: 'DELETE', as: 'viewer@example.com' });
    expect([refused.status, refused.json.code]).toEqual([403, 'RES-E-0403']);
    expect(world.tenancy.changeCount()).toBe(before);
  });

  test('a control account sees its own record alone', async () => {
    const own = (await world.call({ path: '/control-accounts' })).json.data;
    expect([own.total, own.items[0].id, own.items[0].partnerType]).toEqual([1, 2, 'RESELLER']);
    expect((await world.call({ path: '/control-accounts/3' })).status).toBe(404);
    expect(
      (await world.call({ path: '/control-accounts?status=INACTIVE', as: 'ops@example.com' })).json.data
        .total,
    ).toBe(0);
  });
});

test('an invoice has its dates, its total and six metrics with three figures each', async () => {
  const { data } = (await world.call({ path: '/invoices/7' })).json;
  expect(data).toMatchObject({
    id: 7,
    subInvoiceId: 7,
    periodStart: '2026-02-01',
    periodEnd: '2026-02-28',
    totalStorage: 5.99,
    activeStorage: 30,
    activeStorageUnitCost: 0.00019499,
    minimumActiveStorageTotalCost: 0.0058497,
    wasabiAccountNumber: '100000000010',
  });
});

describe('pages', () => {
  test.each([
    ['', 1, 100],
    ['?page=0&size=2', 1, 2],
    ['?page=2&size=1', 2, 1],
    ['?page=1&size=5000', 1, 1000],
    ['?page=9007199254740991&size=1000', Number.MAX_SAFE_INTEGER, 1000],
    ['?unknown=1&page=1', 1, 100],
  ])('%s is page %i of size %i', async (query, page, size) => {
    await create();
    const { data } = (await world.call({ path: `/sub-accounts${query}` })).json;
    expect(data).toMatchObject({ page, size, total: expect.any(Number) });
    expect(data.items.length).toBe(Math.max(0, Math.min(size, data.total - (page - 1) * size)));
  });
});

describe('bad input changes nothing, and the answer names the field', () => {
  const LONG = 'x'.repeat(2000);
  test.each([
    ['GET', '/sub-accounts?page=-1', undefined, 'page'],
    ['GET', '/sub-accounts?page=one', undefined, 'page'],
    ['GET', '/sub-accounts?page=1&page=2', undefined, 'page'],
    ['GET', '/sub-accounts?page=1.5', undefined, 'page'],
    ['GET', '/sub-accounts?size=0', undefined, 'size'],
    ['GET', '/sub-accounts?size=', undefined, 'size'],
    ['GET', '/sub-accounts?includeKeys=maybe', undefined, 'includeKeys'],
    ['GET', '/sub-accounts?status=GOLD', undefined, 'status'],
    ['GET', `/sub-accounts?name=${LONG}`, undefined, 'name'],
    ['GET', '/sub-accounts/x', undefined, 'id'],
    ['GET', '/sub-accounts/0', undefined, 'id'],
    ['GET', "/members/1'%20OR%20'1'='1", undefined, 'id'],
    ['GET', '/invoices?from=2026-02-30', undefined, 'from'],
    ['GET', '/invoices?to=2026/13/01', undefined, 'to'],
    ['GET', '/invoices?periodEnd=yesterday', undefined, 'periodEnd'],
    ['GET', '/control-accounts?status=gold', undefined, 'status'],
    ['GET', '/control-accounts?status=constructor', undefined, 'status'],
    ['GET', '/members?status=constructor', undefined, 'status'],
    ['POST', '/sub-accounts', { wasabiAccountEmail: 'a@b.c' }, 'name'],
    ['POST', '/sub-accounts', { name: 'A name' }, 'wasabiAccountEmail'],
    ['POST', '/sub-accounts', { name: 5, wasabiAccountEmail: 'a@b.c' }, 'name'],
    ['POST', '/sub-accounts', { name: 'ab', wasabiAccountEmail: 'a@b.c' }, 'name'],
    ['POST', '/sub-accounts', { name: 'A name', wasabiAccountEmail: 'nobody' }, 'wasabiAccountEmail'],
    ['POST', '/sub-accounts', { name: 'A name', wasabiAccountEmail: 'a@b.c', isTrial: 'true' }, 'isTrial'],
    ['POST', '/sub-accounts', { name: 'A name', wasabiAccountEmail: 'a@b.c', trialDays: 1.5 }, 'trialDays'],
    [
      'POST',
      '/sub-accounts',
      { name: 'A name', wasabiAccountEmail: 'a@b.c', trialQuotaTB: -1 },
      'trialQuotaTB',
    ],
    [
      'POST',
      '/sub-accounts',
      { name: 'A name', wasabiAccountEmail: 'a@b.c', storageQuotaType: 'Hard' },
      'storageQuotaType',
    ],
    [
      'POST',
      '/sub-accounts',
      { name: 'A name', wasabiAccountEmail: 'a@b.c', storageQuotaType: 'Hard quota' },
      'purchasedStorageTB',
    ],
    ['POST', '/sub-accounts', { name: 'A name', wasabiAccountEmail: 'a@b.c', city: { a: 1 } }, 'city'],
    [
      'POST',
      '/sub-accounts',
      { name: 'A name', wasabiAccountEmail: 'a@b.c', controlAccountId: 2 ** 70 },
      'controlAccountId',
    ],
    ['POST', '/members', { subAccountId: '10' }, 'subAccountId'],
  ])('%s %.60s %j: %s', async (method, path, body, field) => {
    const before = world.tenancy.changeCount();
    const answer = await world.call({ method, path, ...(body && { body }) });
    expect([answer.status, answer.json.code, answer.json.data]).toEqual([400, 'RES-E-0400', null]);
    expect(answer.json.errors.map((problem: { field: string }) => problem.field)).toContain(field);
    expect(answer.json.message).not.toBe('');
    expect(world.tenancy.changeCount()).toBe(before);
  });

  test.each(['{', '[]', '5', '"x"', 'null', '\u0000', '{"name": "a",}'])(
    'a body %j is no object',
    async (body) => {
      const answer = await world.call({ method: 'POST', path: '/sub-accounts', body });
      expect([answer.status, answer.json.success]).toEqual([400, false]);
    },
  );

  test('a duplicate e-mail address is 409 and names it', async () => {
    const body = newCustomer();
    expect((await world.call({ method: 'POST', path: '/sub-accounts', body })).status).toBe(200);
    const again = await world.call({
      method: 'POST',
      path: '/sub-accounts',
      body: { ...body, name: 'Other' },
    });
    expect([again.status, again.json.errors]).toEqual([
      409,
      [{ field: 'wasabiAccountEmail', message: 'is in use' }],
    ]);
  });

  test('a body of 10 MB is 413 in the envelope', async () => {
    const body = newCustomer({ city: 'x'.repeat(10 * 1024 * 1024) });
    const answer = await world.call({ method: 'POST', path: '/sub-accounts', body });
    expect([answer.status, answer.json]).toMatchObject([413, { success: false, code: 'RES-E-0413' }]);
  });

  test('names of any writing stay as they are', async () => {
    for (const name of ["Robert'); DROP TABLE x;--", '東京ストレージ', 'ẞ Ω é \u202e rtl', '<b>&amp;</b>']) {
      const { id } = await create({ name });
      expect((await world.call({ path: `/sub-accounts/${id}` })).json.data.name).toBe(name);
    }
  });

  test('another method of a path is 405, and another path 404', async () => {
    const wrong = await world.call({ method: 'PATCH', path: '/members/1', body: {} });
    expect([wrong.status, wrong.headers.get('allow'), wrong.json.code]).toEqual([
      405,
      'GET, PUT, DELETE',
      'RES-E-0405',
    ]);
    expect((await world.call({ path: '/nothing' })).json).toMatchObject({
      success: false,
      code: 'RES-E-0404',
    });
  });
});

describe('too many requests in a minute', () => {
  test('are 429 with Retry-After, by key and method', async () => {
    const few = await openManagementWorld({ rateLimits: { DELETE: 2 } });
    const remove = (as: string) => few.call({ method: 'DELETE', path: '/members/1', as });
    const statuses: number[] = [];
    // The minute may end in between.
    for (let count = 0; count < 6; count++) statuses.push((await remove('one@example.com')).status);
    expect(statuses).toContain(429);
    const refused = await remove('one@example.com');
    const others = await Promise.all([remove('two@example.com'), few.call({ path: '/members' })]);
    expect(others.map(({ status }) => status)).toEqual([404, 200]);
    if (refused.status === 429) {
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(refused.json).toMatchObject({ success: false, code: 'RES-E-0429', errors: null });
    }
    await few.close();
  });
});

describe('Idempotency-Key', () => {
  const post = (key: string, body: object, as = 'one@example.com') =>
    world.call({ method: 'POST', path: '/sub-accounts', body, as, headers: { 'idempotency-key': key } });

  test('a request that is sent again is answered as before, with its secret, and not done again', async () => {
    const body = newCustomer();
    const first = await post('again', body);
    const before = world.tenancy.changeCount();
    const second = await post('again', body);
    expect([second.status, second.json]).toEqual([200, first.json]);
    expect(world.tenancy.changeCount()).toBe(before);
  });

  test('two at once are done once', async () => {
    const body = newCustomer();
    const before = world.tenancy.changeCount();
    const answers = await Promise.all([1, 2, 3].map(() => post('at once', body)));
    expect(new Set(answers.map(({ json }) => json.data.secretKey)).size).toBe(1);
    expect(world.tenancy.changeCount()).toBe(before + 1);
  });

  test('with another body it is 409; of another caller it is another key; what was refused may be sent again', async () => {
    await post('mine', newCustomer());
    const other = await post('mine', newCustomer());
    expect([other.status, other.json.code]).toEqual([409, 'RES-E-0409']);
    expect((await post('mine', newCustomer({ controlAccountId: 2 }), 'gov@example.com')).status).toBe(200);
    const body = newCustomer();
    expect((await post('refused', { ...body, name: 'x' })).status).toBe(400);
    expect((await post('refused', body)).status).toBe(200);
  });

  test('one that is empty or too long is 400', async () => {
    const answer = await post('x'.repeat(300), newCustomer());
    expect([answer.status, answer.json.errors[0].field]).toEqual([400, 'Idempotency-Key']);
  });
});

describe('usages', () => {
  test('of a new sub-account there is a record of today, found by its id, and by those above it alone', async () => {
    const { id } = await create();
    const list = await world.call({ path: `/usages?subAccountId=${id}` });
    expect(list.json.data).toMatchObject({ total: 1, page: 1, size: 100 });
    const [record] = list.json.data.items;
    expect(record).toMatchObject({ subAccountId: id, activeStorage: 0, apiCalls: 0, egress: 0 });
    expect(Date.parse(record.endTime) - Date.parse(record.startTime)).toBe(86_400_000);
    expect(Object.keys(record)).not.toContain('controlAccountId');
    expect((await world.call({ path: `/usages/${record.id}` })).json.data).toEqual(record);
    const above = await world.call({ path: `/usages/${record.id}`, as: 'gov@example.com' });
    expect(above.json.data).toMatchObject({ controlAccountId: 2, subAccountId: id });
    for (const path of [`/usages/${record.id}`, `/sub-accounts/${id}/buckets`])
      expect(await world.call({ path, as: 'two@example.com' })).toMatchObject({
        status: 404,
        json: { success: false, code: 'RES-E-0404' },
      });
    expect(
      (await world.call({ path: `/usages?subAccountId=${id}`, as: 'two@example.com' })).json.data,
    ).toMatchObject({
      items: [],
      total: 0,
    });
    expect((await world.call({ path: `/usages/${record.id - 3}` })).status).toBe(404);
  });

  test.each([
    ['/usages?from=2026-02-30', 'from'],
    ['/usages?to=yesterday', 'to'],
    ['/usages?latest=maybe', 'latest'],
    ['/usages/0', 'id'],
    ['/sub-accounts/x/buckets', 'subAccountId'],
    ['/sub-accounts/10/buckets?bucketNumber=-1', 'bucketNumber'],
  ])('%s is refused by the name of %s', async (path, field) => {
    const { status, json } = await world.call({ path, as: 'ops@example.com' });
    expect([status, json.errors?.map((one: { field: string }) => one.field)]).toEqual([400, [field]]);
  });

  test('both forms of dates are taken, and another region has no buckets', async () => {
    const { id } = await create();
    for (const path of [
      '/usages?from=2026/01/01&to=2026-01-02',
      `/sub-accounts/${id}/buckets?region=eu-west&latest=true`,
    ])
      expect((await world.call({ path })).json.data).toMatchObject({ items: [], total: 0 });
  });
});
