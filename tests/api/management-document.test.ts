// The OpenAPI document of /api/v1 drives a server with real accounts, usages and invoices, as operators and users of partners:
// no request ends in a fault, and every answer is one that the document has.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect } from 'vitest';
import { must } from '../../src/base/assert.ts';
import type { CliContext } from '../../src/cli/connect.ts';
import { createPartner, createPartnerKey, createPartnerUser } from '../../src/cli/control-commands.ts';
import { closeInvoices, setPrices } from '../../src/cli/invoice-command.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { type Document, driveByDocument } from '../support/accounts/drive-by-document.ts';
import { amountOf } from '../support/run/long-form.ts';
import { isServerGiven } from '../support/servers/given-server.ts';
import { ownServerTest as test } from '../support/servers/own-server-test.ts';
import { send } from '../support/servers/raw-s3.ts';
import { expectStatus } from '../support/servers/s3-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const JANUARY_31 = Date.UTC(2031, 0, 31, 12);
const FEBRUARY_1 = Date.UTC(2031, 1, 1, 12);
const MANY = '1000000';
const RATES = Object.fromEntries(
  ['getsPerMinute', 'putsPerMinute', 'postsPerMinute', 'deletesPerMinute'].map((key) => [`api.${key}`, MANY]),
);
const CUSTOMERS = 8;
const REQUESTS = amountOf({ short: 150, long: 3000 });
/** Workers do in the background what is waited for. */
const WITHIN = { timeout: 200_000, interval: 200 };

let offsetMs = 0;
const nowMs = () => Date.now() + offsetMs;
let folder: string;
let dataDir: string;
let server: TestServer | undefined;
const printed: string[] = [];
const context: CliContext = { env: {}, print: (line) => void printed.push(line), nowMs, sleep };
const answer = () => JSON.parse(printed.splice(0).join('\n'));
const asked = () => ({ dataDir, json: true });

/** The time of a running server does not follow a clock that jumps (R19). */
async function startAt(wallMs: number): Promise<void> {
  await server?.stop();
  offsetMs = wallMs - Date.now();
  server = await startServer({ dataDir, settings: RATES, clock: { ...systemClock, wallMs: nowMs } });
}

beforeAll(async () => {
  if (isServerGiven()) return;
  folder = await mkdtemp(join(tmpdir(), 'holdfast-document-'));
  dataDir = join(folder, 'data');
  await startAt(JANUARY_31);
}, 300_000);
afterAll(async () => {
  if (server === undefined) return;
  const failed = server.logs().filter(({ status }) => status === 500);
  await server.stop();
  await rm(folder, { recursive: true });
  expect(failed, 'requests that ended in 500').toEqual([]);
});

async function makePartner(name: string, level: string, parent?: number): Promise<number> {
  const email = `${name}@partner.example`;
  await createPartner(context, { ...asked(), name, email, level, ...(parent && { parent: String(parent) }) });
  return answer().id;
}

/** Resolves with what it logs in by. */
async function makeUser(partner: number, role: string, more: object = {}): Promise<string> {
  const email = `${role.toLowerCase()}-${partner}@partner.example`;
  const user = { email, firstName: 'Ann', lastName: 'Archer', role, ...more };
  await createPartnerUser(context, String(partner), { ...asked(), ...user });
  await createPartnerKey(context, String(answer().id), { ...asked(), name: 'key' });
  return `${email}:${answer().apiKey}`;
}

async function call(request: { method: string; path: string; body?: unknown; as: string }) {
  const { method, path, body, as } = request;
  const response = await fetch(`${must(server, 'it runs').endpoint}${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(as).toString('base64')}`,
      'content-type': 'application/json',
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: each call has data of its own.
  return { status: response.status, json: (await response.json()) as any };
}

async function make(path: string, body: object, as: string) {
  const { status, json } = await call({ method: 'POST', path: `/api/v1${path}`, body, as });
  expect(status, JSON.stringify(json)).toBe(200);
  return json.data;
}

async function idsIn(path: string, as: string): Promise<string[]> {
  const { json } = await call({ method: 'GET', path: `/api/v1${path}`, as });
  return json.data.items.map(({ id }: { id: number }) => String(id));
}

test('whatever is asked, the answer is in the document and is no fault', { timeout: 600_000 }, async () => {
  await setPrices(context, { ...asked(), from: '2031-01-01', currency: 'USD', storage: '5.99' });
  answer();
  const governance = await makePartner('governance', 'governance');
  const controls = [await makePartner('one', 'control', governance), await makePartner('two', 'control')];
  const [one = 0] = controls;
  const admin = await makeUser(one, 'Admin');
  const partners = [
    admin,
    await makeUser(governance, 'Admin', { plus: true }),
    await makeUser(one, 'Viewer'),
  ];
  const password = 'Lon3ly&Loaf';
  for (let at = 0; at < CUSTOMERS; at++) {
    const fields = { name: `Seed ${at}`, wasabiAccountEmail: `seed${at}@customer.example`, password };
    const made = await make('/sub-accounts', { ...fields, isTrial: at % 2 === 1 }, admin);
    // The last Root may not be deleted, another one may.
    for (const memberRole of ['Root', 'Read Only']) {
      const person = { firstName: 'A', lastName: 'B', memberRole, password, subAccountId: made.id };
      await make('/members', { ...person, email: `${memberRole.slice(0, 4)}${at}@customer.example` }, admin);
    }
    if (at > 0) continue;
    const as = { endpoint: must(server, 'it runs').endpoint, ...made, nowMs };
    expectStatus(await send(as, { method: 'PUT', path: '/of-seed' }), 200);
    expectStatus(await send(as, { method: 'PUT', path: '/of-seed/k', body: Buffer.alloc(5000) }), 200);
  }

  await startAt(FEBRUARY_1);
  const { accessKey, secretKey, endpoint } = must(server, 'it runs');
  const operator = `${accessKey}:${secretKey}`;
  // Once its last day is counted.
  const close = () => closeInvoices(context, '2031-01', asked()).then(answer, () => undefined);
  await expect.poll(close, WITHIN).toBeDefined();
  const customers = await idsIn('/sub-accounts', operator);
  const members = await idsIn('/members', operator);
  const ids: Readonly<Record<string, string[]>> = {
    'control-accounts': controls.map(String),
    'sub-accounts': customers.slice(0, CUSTOMERS / 2),
    members: members.slice(0, CUSTOMERS),
    invoices: await idsIn('/invoices', operator),
    usages: await idsIn('/usages', operator),
  };
  // Others than those that are read and changed.
  const deleted: Readonly<Record<string, string[]>> = {
    'sub-accounts': customers.slice(CUSTOMERS / 2 + 1),
    members: members.slice(CUSTOMERS),
  };
  const days = fc.constantFrom('2031-01-31', '2031/02/01');
  const driven = {
    document: (await (await fetch(`${endpoint}/api/v1/openapi.json`)).json()) as Document,
    send: call,
    logins: [operator, ...partners],
    idsOf(method: string, path: string) {
      const [topic = ''] = path.slice('/api/v1/'.length).split('/');
      return (method === 'DELETE' ? deleted : ids)[topic] ?? [];
    },
    hints: {
      ...{ subAccountId: fc.constantFrom(...customers.map(Number)), from: days, to: days, periodEnd: days },
      controlAccountId: fc.constantFrom(...controls),
      channelAccountId: fc.constant(null),
    },
  };
  await driveByDocument(driven, REQUESTS);
});
