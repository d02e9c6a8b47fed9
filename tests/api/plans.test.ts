// What the plan of a sub-account allows, over HTTP: uploads that are refused over a trial's quota and over what was purchased, and
// those to an account that does not pay; reads and deletes are served.
import { beforeAll, describe, expect, test } from 'vitest';
import { setAccount, showAccount } from '../../src/cli/account-commands.ts';
import { createPartner, createPartnerKey, createPartnerUser } from '../../src/cli/control-commands.ts';
import { setQuota } from '../../src/cli/quota-command.ts';
import { setSubAccount } from '../../src/cli/sub-account-commands.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { postForm, signForm } from '../support/servers/forms.ts';
import { type Access, pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, freshWord, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const { context, taken } = createPrintedTool();
const asked = () => ({ dataDir: api.server.dataDir, json: true });
const printed = () => JSON.parse(taken());
let login: string;

beforeAll(async () => {
  const word = freshWord();
  const names = { name: `Acme ${word}`, email: `${word}@acme.example`, level: 'control' };
  await createPartner(context, { ...asked(), ...names });
  const user = { email: `ann-${word}@acme.example`, firstName: 'Ann', lastName: 'Archer', role: 'Admin' };
  await createPartnerUser(context, String(printed().id), { ...asked(), ...user });
  await createPartnerKey(context, String(printed().id), { ...asked(), name: 'portal' });
  login = `${user.email}:${printed().apiKey}`;
});

async function call(method: string, path: string, body: object) {
  const answer = await fetch(`${api.server.endpoint}/api/v1${path}`, {
    method,
    headers: { authorization: `Basic ${btoa(login)}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: each call has data of its own.
  const { data } = (await answer.json()) as { data: any };
  expect(answer.status, `answered ${answer.status}`).toBe(200);
  return data;
}

interface Customer extends Access {
  id: number;
  accountNumber: string;
  bucket: string;
  change(changes: object): Promise<unknown>;
}

async function makeCustomer(plan: object): Promise<Customer> {
  const word = freshWord();
  const fields = {
    name: `Bakery ${word}`,
    wasabiAccountEmail: `${word}@bakery.example`,
    password: 'Lon3ly&Loaf',
  };
  const { id, accessKey, secretKey, wasabiAccountNumber } = await call('POST', '/sub-accounts', {
    ...fields,
    ...plan,
  });
  const as = { endpoint: api.server.endpoint, accessKey, secretKey };
  const change = (changes: object) => call('PUT', `/sub-accounts/${id}`, changes);
  return { ...as, id, accountNumber: wasabiAccountNumber, bucket: await api.makeBucket(as), change };
}

const put = (customer: Customer, key: string, sizeBytes: number, as: Access = customer) =>
  api.send({ method: 'PUT', path: pathOf(customer.bucket, key), body: Buffer.alloc(sizeBytes) }, as);
const read = (customer: Customer, key: string) =>
  api.send({ method: 'GET', path: pathOf(customer.bucket, key) }, customer);
const remove = (customer: Customer, key: string) =>
  api.send({ method: 'DELETE', path: pathOf(customer.bucket, key) }, customer);

const KIB = 1024;
/** Of a number of KiB. */
const storageTB = (kib: number) => kib / 2 ** 30;
const over = (limit: number) =>
  ({ status: 403, code: 'QuotaExceeded', Quota: 'account-bytes', Limit: limit }) as const;

describe('uploads are refused', () => {
  test('over the quota of a trial, from its creation on; reads and deletes are served', async () => {
    const customer = await makeCustomer({ trialQuotaTB: storageTB(16) });
    expectStatus(await put(customer, 'fits', 16 * KIB), 200);
    expectError(await put(customer, 'more', 1), over(16 * KIB));
    expectStatus(await read(customer, 'fits'), 200);
    await customer.change({ trialQuotaTB: storageTB(20) });
    expectStatus(await put(customer, 'more', 4 * KIB), 200);
    expectError(await put(customer, 'much', 1), over(20 * KIB));
    expectStatus(await remove(customer, 'fits'), 204);
    expectStatus(await put(customer, 'much', 16 * KIB), 200);
    await customer.change({ trialToPaid: true });
    expectStatus(await put(customer, 'paid for', 64 * KIB), 200);
  });

  test('over what was purchased with a hard quota, and not with a soft one', async () => {
    const plan = { isTrial: false, purchasedStorageTB: storageTB(16), storageQuotaType: 'Hard quota' };
    const customer = await makeCustomer(plan);
    expectError(await put(customer, 'more', 16 * KIB + 1), over(16 * KIB));
    await customer.change({ storageQuotaType: 'Soft quota' });
    expectStatus(await put(customer, 'more', 16 * KIB + 1), 200);
  });

  test("by the narrower of the plan's quota and the operator's own, which changes of the plan leave alone", async () => {
    const customer = await makeCustomer({ trialQuotaTB: storageTB(16) });
    const target = { of: 'account', name: customer.accountNumber };
    await setQuota(context, target, { ...asked(), hardBytes: '100' });
    expectError(await put(customer, 'k', 101), over(100));
    await customer.change({ trialQuotaTB: storageTB(64) });
    expectError(await put(customer, 'k', 101), over(100));
    await setQuota(context, target, asked());
    expectError(await put(customer, 'k', 64 * KIB + 1), over(64 * KIB));
    expectStatus(await put(customer, 'k', 64 * KIB), 200);
  });

  test('of every kind, by whoever sends them, while the account does not pay', async () => {
    const customer = await makeCustomer({ isTrial: false });
    const { bucket } = customer;
    expectStatus(await put(customer, 'k', 10), 200);
    const begun = await api.send({ method: 'POST', path: `${pathOf(bucket, 'parts')}?uploads` }, customer);
    const uploadId = /<UploadId>(.*)<\/UploadId>/.exec(begun.body.toString())?.[1];
    const policy = Buffer.from(
      JSON.stringify({
        Version: '2012-10-17',
        Statement: [
          { Effect: 'Allow', Principal: '*', Action: 's3:*', Resource: [`arn:aws:s3:::${bucket}/*`] },
        ],
      }),
    );
    expectStatus(await api.send({ method: 'PUT', path: `/${bucket}?policy`, body: policy }, customer), 204);
    taken();
    await setAccount(context, customer.accountNumber, { ...asked(), unpaid: 'yes' });
    expect(printed().isUnpaid).toBe(true);
    const seen = await call('PUT', `/sub-accounts/${customer.id}`, { ftpEnabled: false });
    expect(seen.isUnpaid).toBe(true);

    const refused = { status: 403, code: 'AccountProblem' } as const;
    expectError(await put(customer, 'new', 10), refused);
    const other = await api.makeAccount();
    expectError(await put(customer, 'new', 10, other), refused);
    const copy = { 'x-amz-copy-source': `/${bucket}/k` };
    const composed = Buffer.from('<ComposeRequest><Component><Key>k</Key></Component></ComposeRequest>');
    const part = `${pathOf(bucket, 'parts')}?partNumber=1&uploadId=${uploadId}`;
    for (const wanted of [
      { path: pathOf(bucket, 'copy'), headers: copy },
      {
        path: `${pathOf(bucket, 'composed')}?compose`,
        headers: { 'content-type': 'text/xml' },
        body: composed,
      },
      { path: `${pathOf(bucket, 'k')}?append`, body: Buffer.alloc(10) },
      { path: part, body: Buffer.alloc(10) },
      { path: part, headers: copy },
    ])
      expectError(await api.send({ method: 'PUT', ...wanted }, customer), refused);
    const begins = { method: 'POST', path: `${pathOf(bucket, 'others')}?uploads` };
    expectError(await api.send(begins, customer), refused);
    const fields = signForm(customer, bucket, [['key', 'posted']]);
    expectError(await postForm(customer, bucket, { fields }), refused);

    expectStatus(await read(customer, 'k'), 200);
    const renamed = { method: 'MOVE', path: pathOf(bucket, 'k'), headers: { destination: 'l' } };
    expectStatus(await api.send(renamed, customer), 200);
    expectStatus(await remove(customer, 'l'), 204);
    await expect(customer.change({ isUnpaid: false })).rejects.toThrow('403');
    expectError(await put(customer, 'new', 10), refused);
    await setSubAccount(context, String(customer.id), { ...asked(), unpaid: 'no' });
    await showAccount(context, customer.accountNumber, asked());
    expect(taken()).not.toContain('"isUnpaid": true');
    expectStatus(await put(customer, 'new', 10), 200);
  });
});
