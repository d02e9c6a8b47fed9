// Months that go by on a server: what an open month comes to, its closing by the operator, and invoices at /api/v1
// that never change. What is charged: src/billing.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from 'vitest';
import { must } from '../../src/base/assert.ts';
import type { CliContext } from '../../src/cli/connect.ts';
import { createPartner, createPartnerKey, createPartnerUser } from '../../src/cli/control-commands.ts';
import {
  closeInvoices,
  listInvoices,
  previewInvoices,
  setPrices,
  showInvoice,
} from '../../src/cli/invoice-command.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { isServerGiven } from '../support/servers/given-server.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { send } from '../support/servers/raw-s3.ts';
import { expectStatus } from '../support/servers/s3-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const JANUARY_29 = Date.UTC(2031, 0, 29, 12);
const FEBRUARY_1 = Date.UTC(2031, 1, 1, 12);
/** Workers do in the background what these tests wait for. */
const WITHIN = { timeout: 200_000, interval: 200 };
const PRICES = { from: '2031-01-01', currency: 'USD', storage: '5.99' };

let offsetMs = 0;
const nowMs = () => Date.now() + offsetMs;
let folder: string;
let dataDir: string;
let server: TestServer | undefined;
const printed: string[] = [];
const context: CliContext = { env: {}, print: (line) => void printed.push(line), nowMs, sleep };
const taken = () => printed.splice(0).join('\n');
const asked = () => ({ dataDir });

/** The time of a running server does not follow a clock that jumps (R19). */
async function startAt(wallMs: number): Promise<void> {
  await server?.stop();
  offsetMs = wallMs - Date.now();
  server = await startServer({ dataDir, clock: { ...systemClock, wallMs: nowMs } });
}

beforeAll(async () => {
  if (isServerGiven()) return;
  folder = await mkdtemp(join(tmpdir(), 'holdfast-invoices-'));
  dataDir = join(folder, 'data');
  await startAt(JANUARY_29);
});
afterAll(async () => {
  if (server === undefined) return;
  await server.stop();
  await rm(folder, { recursive: true });
});

/** A control account, and what asks /api/v1 for it. */
async function makeControl(name: string) {
  await createPartner(context, {
    ...asked(),
    json: true,
    name,
    email: `${name}@example.com`,
    level: 'control',
  });
  const { id } = JSON.parse(taken());
  const user = { email: `user@${name}.example`, firstName: 'Ann', lastName: 'Archer', role: 'Admin' };
  await createPartnerUser(context, String(id), { ...asked(), json: true, ...user });
  await createPartnerKey(context, String(JSON.parse(taken()).id), { ...asked(), json: true, name: 'portal' });
  const login = btoa(`${user.email}:${JSON.parse(taken()).apiKey}`);
  return async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${must(server, 'it runs').endpoint}/api/v1${path}`, {
      method,
      headers: { authorization: `Basic ${login}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: each call has data of its own.
    return { status: answer.status, ...((await answer.json()) as { data: any; errors: unknown }) };
  };
}

const customer = (name: string) => ({
  name,
  wasabiAccountEmail: `${name}@example.com`,
  password: 'Lon3ly&Loaf',
});

test('a month is previewed, refused while it is open, and closed for good', async () => {
  await setPrices(context, { ...asked(), ...PRICES });
  taken();
  const [acme, other] = [await makeControl('acme'), await makeControl('other')];
  const paid = (await acme('POST', '/sub-accounts', { ...customer('paid'), isTrial: false })).data;
  const trial = { ...customer('tried'), isTrial: true, trialDays: 1 };
  const { data: tried } = await acme('POST', '/sub-accounts', trial);
  await other('POST', '/sub-accounts', customer('free'));
  const as = { endpoint: must(server, 'it runs').endpoint, ...paid, nowMs };
  expectStatus(await send(as, { method: 'PUT', path: '/stored-by-paid' }), 200);
  expectStatus(await send(as, { method: 'PUT', path: '/stored-by-paid/k', body: Buffer.alloc(5000) }), 200);
  taken();

  await previewInvoices(context, '2031-01', { ...asked(), sub: String(paid.id) });
  // One day so far, of the minimum of 1 TB.
  expect(taken()).toMatch(
    /none yet: the month is open[\s\S]+minimumActiveStorage\s+0.0333333[\s\S]+total {2}0.20 USD/,
  );
  await previewInvoices(context, '2031-01', asked());
  const shown = taken();
  expect(shown).toMatch(new RegExp(` ${paid.id} +paid +0.20 USD$`, 'm'));
  expect(shown).toMatch(new RegExp(` ${tried.id} +tried +no invoice$`, 'm'));
  expect(shown).toContain('no invoice: nothing is charged: on trial');
  await previewInvoices(context, '2031-01', { ...asked(), sub: String(tried.id) });
  expect(taken()).toContain('none: nothing is charged');
  const open = /^month is still open: it ends on 2031-01-31/;
  await expect(closeInvoices(context, '2031-01', asked())).rejects.toThrow(open);
  await expect(closeInvoices(context, '2031-13', asked())).rejects.toThrow('must be a month');
  await expect(previewInvoices(context, 'January', asked())).rejects.toThrow('must be a month');

  await startAt(FEBRUARY_1);
  const close = async () => {
    await closeInvoices(context, '2031-01', asked()).catch((error: Error) => context.print(error.message));
    return taken();
  };
  await expect.poll(close, WITHIN).toBe('2031-01 is closed: 2 invoices');
  await closeInvoices(context, '2031-01', asked());
  expect(taken()).toBe('2031-01 is closed already, with 2 invoices');
  await expect(setPrices(context, { ...asked(), ...PRICES, from: '2031-01-20' })).rejects.toThrow(
    'whose invoices are written',
  );
  const ofAcme = (await acme('GET', '/invoices')).data;
  expect(ofAcme).toMatchObject({ total: 2, items: [{ subAccountId: tried.id }, { subAccountId: paid.id }] });
  const [triedOne, paidOne] = ofAcme.items;
  // Three days and one of the minimum: the trial ended on the 30th, while nothing ran.
  expect([paidOne.totalStorage, triedOne.totalStorage]).toEqual([0.6, 0.2]);
  expect(paidOne.activeStorage).toBeCloseTo((3 * 5048) / 2 ** 30, 8);
  expect((await other('GET', '/invoices')).data).toMatchObject({ total: 0, items: [] });
  expect((await other('GET', `/invoices/${paidOne.id}`)).status).toBe(404);

  const files = async () => {
    await listInvoices(context, { ...asked(), month: '2031-01', csv: true });
    const csv = taken();
    const out = join(folder, 'invoice.pdf');
    await showInvoice(context, String(paidOne.id), { ...asked(), pdf: true, out });
    taken();
    return { csv, pdf: await readFile(out, 'latin1') };
  };
  const before = await files();
  await acme('PUT', `/sub-accounts/${paid.id}`, { name: 'another name', active: false });

  await startAt(FEBRUARY_1 + 3_600_000);
  expect(await files()).toEqual(before);
}, 400_000);
