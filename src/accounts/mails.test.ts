// Mails whose gateway has ended: another one sends them, once, and nobody those that were left to the operator.
import { beforeEach, expect, test } from 'vitest';
import { type MetadataShards, openMetadata } from '../../tests/support/metadata/metadata-shards.ts';
import { createSeededRandom } from '../../tests/support/run/simulated.ts';
import { createKeyring } from '../platform/memory/memory-keyring.ts';
import type { MailMessage, MailPort } from '../ports/mail.ts';
import { MAILS_MAX, type MailRecord, mayOrderMail } from '../types/records/mail-record.ts';
import { createAccounts } from './accounts.ts';
import { createTenancy, type TenancyParts } from './create-tenancy.ts';
import { OPERATOR } from './tenancy-rules.ts';

const MINUTE_MS = 60_000;
const hasher = { hash: async () => 'hash', verify: async () => true };

let world: MetadataShards;
let seed = 0;
const keyring = createKeyring();
beforeEach(async () => {
  world = await openMetadata();
});

function openGateway(post?: MailPort): TenancyParts {
  const { shards: metadata, clock } = world;
  const random = createSeededRandom(++seed);
  const deps = { metadata, keyring, random, clock, log: { warn() {} } };
  return createTenancy({
    ...{ ...deps, accounts: createAccounts(deps), hasher },
    resetRootMfa: async () => {},
    setPlanQuota: async () => {},
    mail: { post },
  });
}

/** To customers of one partner, by name. */
async function orderWelcome(
  { tenancy }: Pick<TenancyParts, 'tenancy'>,
  names: readonly string[] = ['b'],
): Promise<void> {
  const partner = { level: 'control' as const, name: 'Control', email: 'p@example.com' };
  const { id: controlAccountId } = await tenancy.createPartner(OPERATOR, partner);
  for (const letter of names) {
    const customer = { controlAccountId, name: `Bakery ${letter}`, email: `${letter}@example.com` };
    await tenancy.createCustomer(OPERATOR, { ...customer, sendWelcomeEmail: true });
  }
}

/** Until all that the loops of gateways do by now is done. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
}

async function pass(minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    world.clock.advance(MINUTE_MS);
    await settle();
  }
}

test('what a gateway has not sent when it ends is sent by another one, once', async () => {
  const ended = openGateway({ send: () => new Promise(() => {}) });
  await orderWelcome(ended);
  await expect.poll(async () => (await ended.mails.list())[0]?.triedAtMs).toBeDefined();
  const sent: MailMessage[] = [];
  const others = [1, 2].map(() => openGateway({ send: async (message) => void sent.push(message) }));
  const stop = new AbortController();
  const running = others.map(({ mails }) => mails.run(stop.signal));
  await pass(3);
  expect(sent, 'the first one may be at it').toEqual([]);
  await expect.poll(() => pass(1).then(() => sent.length), { timeout: 60_000 }).toBe(1);
  await pass(10);
  expect(sent.map(({ to }) => to)).toEqual(['b@example.com']);
  expect(await ended.mails.list()).toMatchObject([{ state: 'sent' }]);
  stop.abort();
  await Promise.all(running);
});

test('of several tries each is its own: what fails thrice is left to the operator', async () => {
  let tries = 0;
  const refusing = openGateway({ send: () => Promise.reject(new Error(`full ${++tries}`)) });
  await orderWelcome(refusing);
  await settle();
  await pass(3);
  const stop = new AbortController();
  const running = refusing.mails.run(stop.signal);
  await pass(10);
  expect(await refusing.mails.list()).toMatchObject([{ state: 'failed', failure: 'full 3' }]);
  expect(tries).toBe(3);
  stop.abort();
  await running;
});

test('what was ordered without a mail server is sent by nobody but the operator', async () => {
  await orderWelcome(openGateway());
  const later = openGateway({ send: () => expect.unreachable('it was handed on, maybe') });
  const stop = new AbortController();
  const running = later.mails.run(stop.signal);
  await pass(10);
  expect(await later.mails.list()).toMatchObject([{ state: 'waiting' }]);
  stop.abort();
  await running;
});

test('a link ends with a password that is set otherwise, and with the address that it was mailed to', async () => {
  const { tenancy, mails } = openGateway();
  await orderWelcome({ tenancy });
  const [mail] = await mails.list();
  const { id = 0, customerId = 0 } = mail ?? {};
  const linkOf = async () => /^\d+\.\S+$/m.exec((await mails.text(id)).text)?.[0] ?? '';
  const reset = (token: string) => mails.resetPassword({ token, password: 'Lon3ly&Loaf' });
  const refused = { code: 'AccessDenied' };

  const before = await linkOf();
  await tenancy.changeCustomer(OPERATOR, customerId, { password: 'Cr0iss&nts' });
  await expect(reset(before)).rejects.toMatchObject(refused);

  const toOld = await linkOf();
  await tenancy.changeCustomer(OPERATOR, customerId, { email: 'new@example.com' });
  await expect(reset(toOld)).rejects.toMatchObject(refused);
  await expect(linkOf(), 'it is for the old address').rejects.toMatchObject({ code: 'NoSuchEntity' });

  await tenancy.changeCustomer(OPERATOR, customerId, { sendPasswordReset: true });
  const newest = (await mails.list()).find(({ to }) => to === 'new@example.com');
  const toNew = /^\d+\.\S+$/m.exec((await mails.text(newest?.id ?? 0)).text)?.[0] ?? '';
  await tenancy.changeCustomer(OPERATOR, customerId, { name: 'Bakery 2' });
  await reset(toNew);
  await expect(reset(toNew)).rejects.toMatchObject(refused);
});

test('a reset goes to a new address as it is stored, however it was written', async () => {
  const sent: MailMessage[] = [];
  const { tenancy } = openGateway({ send: async (message) => void sent.push(message) });
  await orderWelcome({ tenancy });
  const { items } = await tenancy.listCustomers(OPERATOR, {}, { page: 1, size: 1 });
  const changes = { email: 'New@Bakery.Example', sendPasswordReset: true };
  await tenancy.changeCustomer(OPERATOR, items[0]?.id ?? 0, changes);
  await expect.poll(() => sent.map(({ to }) => to)).toContain('new@bakery.example');
});

test('mails of one partner that are put off keep nobody else’s waiting that were left', async () => {
  const ended = openGateway({ send: () => new Promise(() => {}) });
  await orderWelcome(ended, ['b', 'c', 'd']);
  await pass(6);
  await orderWelcome(ended, ['other']);
  await pass(4);
  const tried: string[] = [];
  const { mails } = openGateway({
    async send({ to }) {
      tried.push(to);
      if (to !== 'other@example.com') throw Object.assign(new Error('full'), { responseCode: 452 });
    },
  });
  const stop = new AbortController();
  const running = mails.run(stop.signal);
  await pass(3);
  // Those before it take some minutes yet, and none of them has more tries for being looked at again.
  expect(tried).toContain('other@example.com');
  await pass(10);
  expect(tried.filter((to) => to === 'b@example.com')).toHaveLength(3);
  stop.abort();
  await running;
});

test('a partner orders none that would push out one of its own of the day, which would count no more', () => {
  const mails = Array.from(
    { length: MAILS_MAX },
    (_, at): MailRecord => ({
      ...{ id: at + 1, kind: 'welcome', customerId: at, controlId: at % 3, to: `${at}@example.com` },
      ...{ createdAtMs: 1000, state: 'sent' },
    }),
  );
  const asked = { customerId: -1, to: 'new@example.com' };
  expect([0, 1, 7].map((controlId) => mayOrderMail(mails, { ...asked, controlId }, 2000))).toEqual([
    false,
    true,
    true,
  ]);
});

test('while a mail waits to be sent no second one of its kind is ordered', async () => {
  const { mails, tenancy } = openGateway({ send: () => new Promise(() => {}) });
  await orderWelcome({ tenancy });
  const { items } = await tenancy.listCustomers(OPERATOR, {}, { page: 1, size: 1 });
  const ask = () => tenancy.changeCustomer(OPERATOR, items[0]?.id ?? 0, { sendPasswordReset: true });
  await Promise.all([ask(), ask().catch(() => ask())]);
  await ask();
  expect((await mails.list()).map(({ kind }) => kind)).toEqual(['password-reset', 'welcome']);
});
