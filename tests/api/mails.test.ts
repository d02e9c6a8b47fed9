// Mails to customers: by SMTP where it is set up, else handed on by the operator; and the link in them, which sets a password once.
import { once } from 'node:events';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createPartner } from '../../src/cli/control-commands.ts';
import { listMails, sendMail, showMail } from '../../src/cli/mail-command.ts';
import { createSubAccount, setSubAccount } from '../../src/cli/sub-account-commands.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { useApi } from '../support/servers/s3-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const api = useApi();
const { context, taken } = createPrintedTool();
const answer = () => JSON.parse(taken());

async function makeCustomer(dataDir: string, name: string, more: object = {}): Promise<number> {
  const options = { dataDir, json: true };
  await createPartner(context, {
    ...options,
    name: `${name}s`,
    email: `${name}@p.example`,
    level: 'control',
  });
  const control = String(answer().id);
  await createSubAccount(context, { ...options, control, name, email: `${name}@c.example`, ...more });
  return answer().id;
}

async function reset(endpoint: string, body: object | string, method = 'POST') {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`${endpoint}/api/v1/password-resets`, {
    method,
    ...(method === 'POST' && { body: text }),
  });
  return { status: response.status, json: await response.json() };
}

const tokenIn = (text: string) => /\d+\.[A-Za-z0-9]{40}/.exec(text)?.[0] ?? '';

describe('where no mail server is set up', () => {
  test('the operator hands the welcome on, and its link sets a password once', async () => {
    const { dataDir, endpoint } = api.server;
    const subAccountId = await makeCustomer(dataDir, 'bakery', { welcome: true });
    await listMails(context, { dataDir, json: true });
    const [mail] = answer();
    expect(mail).toMatchObject({ kind: 'welcome', subAccountId, to: 'bakery@c.example', state: 'waiting' });
    await listMails(context, { dataDir });
    expect(taken()).toMatch(new RegExp(`\\n${mail.id} +welcome +${subAccountId} +waiting `));
    await showMail(context, String(mail.id), { dataDir, json: true });
    const first = answer();
    expect(first).toMatchObject({ to: 'bakery@c.example', subject: 'Your storage account' });
    // Each text has a link of its own, and the one before is worth nothing.
    await showMail(context, String(mail.id), { dataDir });
    const token = tokenIn(taken());
    const password = 'Lon3ly&Loaf';
    expect((await reset(endpoint, { token: tokenIn(first.text), password })).status).toBe(403);
    const short = await reset(endpoint, { token, password: 'short' });
    expect(short).toMatchObject({ status: 400, json: { errors: [{ field: 'password' }] } });
    expect(await reset(endpoint, { token, password })).toMatchObject({
      status: 200,
      json: { success: true },
    });
    expect((await reset(endpoint, { token, password })).status).toBe(403);
    await expect(sendMail(context, String(mail.id), { dataDir })).rejects.toThrow('mail.smtpUrl');
    await expect(showMail(context, '999', { dataDir })).rejects.toThrow('NoSuchEntity');
    // Nothing of it is in the log.
    expect(JSON.stringify(api.server.logs())).not.toContain(token.split('.')[1]);
  });

  test.each<[string, object | string, number]>([
    ['no JSON', '{', 400],
    ['null', 'null', 400],
    ['no fields', {}, 400],
    ['numbers', { token: 1, password: 2 }, 400],
    ['no token', { token: 'x', password: 'Lon3ly&Loaf' }, 403],
    ['of nobody', { token: `99999.${'a'.repeat(40)}`, password: 'Lon3ly&Loaf' }, 403],
    ['too much', { token: 'x'.repeat(5000), password: 'Lon3ly&Loaf' }, 400],
  ])('%s is refused', async (_name, body, status) => {
    const { json, ...refused } = await reset(api.server.endpoint, body);
    expect(refused.status).toBe(status);
    expect(json).toMatchObject({ success: false, data: null });
  });

  test('other methods are refused', async () => {
    expect((await reset(api.server.endpoint, '', 'GET')).status).toBe(405);
  });
});

describe('by SMTP', () => {
  const received: string[] = [];
  let isRefusing = false;
  let smtp: SMTPServer;
  let server: TestServer;
  beforeAll(async () => {
    smtp = new SMTPServer({
      authOptional: false,
      allowInsecureAuth: true,
      disabledCommands: ['STARTTLS'],
      onAuth({ username, password }, _session, done) {
        const isRight = username === 'post' && password === 'geh/eim';
        done(isRight ? null : new Error('wrong'), { user: username });
      },
      onData(stream, _session, done) {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          if (isRefusing) return done(Object.assign(new Error('full'), { responseCode: 452 }));
          received.push(Buffer.concat(chunks).toString());
          done();
        });
      },
    });
    const listening = smtp.listen(0, '127.0.0.1');
    await once(listening, 'listening');
    const { port } = listening.address() as { port: number };
    server = await startServer({
      settings: {
        'mail.smtpUrl': `smtp://post:geh%2Feim@127.0.0.1:${port}`,
        'mail.from': 'Store <store@example.com>',
        'mail.resetUrl': 'https://console.example/reset?lang=en',
      },
    });
  });
  afterAll(async () => {
    await server.stop();
    await new Promise<void>((resolve) => smtp.close(resolve));
  });

  const untilReceived = (count: number) =>
    vi.waitUntil(() => received.length >= count, { timeout: 120_000, interval: 50 });
  const plain = (mail: string) => mail.replace(/=\r\n/g, '').replace(/=3D/g, '=');

  test('a welcome and a reset are sent, and their links work', async () => {
    const { dataDir, endpoint } = server;
    const id = await makeCustomer(dataDir, 'studio', { welcome: true });
    await untilReceived(1);
    const welcome = plain(received[0] ?? '');
    expect(welcome).toMatch(/^From: Store <store@example.com>\r$/m);
    expect(welcome).toMatch(/^To: studio@c.example\r$/m);
    expect(welcome).toContain('https://console.example/reset?lang=en&token=');
    const password = 'Cr0iss&nts';
    expect((await reset(endpoint, { token: tokenIn(welcome), password })).status).toBe(200);
    await setSubAccount(context, String(id), { dataDir, json: true, resetPassword: true });
    taken();
    await untilReceived(2);
    expect((await reset(endpoint, { token: tokenIn(plain(received[1] ?? '')), password })).status).toBe(200);
    await vi.waitUntil(
      async () => {
        await listMails(context, { dataDir, json: true });
        return answer().every(({ state }: { state: string }) => state === 'sent');
      },
      { timeout: 120_000, interval: 100 },
    );
    expect(JSON.stringify(server.logs())).not.toContain('geh');
  });

  test('what the mail server refuses is said, and may be sent again', async () => {
    const { dataDir } = server;
    await listMails(context, { dataDir, json: true });
    const [{ id }] = answer();
    isRefusing = true;
    await expect(sendMail(context, String(id), { dataDir })).rejects.toThrow('full');
    await listMails(context, { dataDir, json: true });
    expect(answer()[0]).toMatchObject({ state: 'failed', failure: expect.stringContaining('full') });
    isRefusing = false;
    await sendMail(context, String(id), { dataDir });
    expect(taken()).toContain('sent');
  });
});
