// MFA delete (service 3 and 5, extensions 3.1): who switches it, and what it asks for where versions go for good.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { addMfaDevice, addUser, beginSession } from '../../../tests/support/objects/identities.ts';
import { callIam } from '../../../tests/support/servers/iam-api.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import { codeAt, stepAt } from '../identity-api/one-time-codes.ts';

let world: GatewayWorld;
let owner: Awaited<ReturnType<GatewayWorld['makeAccount']>>;
let device: { serial: string; seed: Uint8Array };
beforeAll(async () => {
  world = await openGatewayWorld();
  owner = await world.makeAccount('owner');
  device = await addMfaDevice(world, owner.accountId, { name: 'root-account-mfa-device', owner: 'root' });
});
afterAll(() => world.close());

interface Keys {
  accessKey: string;
  secretKey: string;
  token?: string;
}

interface Sent {
  keys?: Keys;
  mfa?: string;
  body?: string;
  headers?: Record<string, string>;
}

async function ask(method: string, path: string, { keys = owner, mfa, body, headers: more }: Sent = {}) {
  const bytes = Buffer.from(body ?? '');
  const headers: Record<string, string> = {
    ...more,
    ...(mfa !== undefined && { 'x-amz-mfa': mfa }),
    ...(keys.token !== undefined && { 'x-amz-security-token': keys.token }),
    ...(body !== undefined && { 'content-md5': createHash('md5').update(bytes).digest('base64') }),
  };
  const answer = await send({ ...keys, endpoint: world.endpoint }, { method, path, headers, body: bytes });
  const text = String(answer.body);
  return { status: answer.status, text, versionId: String(answer.headers['x-amz-version-id']) };
}

const nowStep = () => stepAt(Date.now());
let usedStep = 0;

/**
 * A code of `device` that nobody has used: of this step or of the next one, which a clock allows. Not of the one before: where
 * this step ends on the way, that is two behind.
 */
function nextMfa(): string {
  usedStep = Math.max(usedStep + 1, nowStep());
  if (usedStep > nowStep() + 1) throw new Error('no code is left');
  return `${device.serial} ${codeAt(device.seed, usedStep)}`;
}

const versioning = (inner: string) => `<VersioningConfiguration>${inner}</VersioningConfiguration>`;
const ON = versioning('<Status>Enabled</Status><MfaDelete>Enabled</MfaDelete>');
const OFF = versioning('<Status>Enabled</Status><MfaDelete>Disabled</MfaDelete>');

test('MFA delete is switched by the root with a code, and versions go for good only with a factor', async () => {
  await ask('PUT', '/guarded');
  const statements = [{ Effect: 'Allow', Action: 's3:*', Resource: '*' }];
  const user = await addUser(world, owner.accountId, { name: 'admin', statements });
  const put = (body: string, sent: Sent = {}) => ask('PUT', '/guarded?versioning', { body, ...sent });
  expect((await put(ON)).status).toBe(403);
  expect((await put(ON, { keys: user })).status).toBe(403);
  expect(
    await put(versioning('<MfaDelete>Enabled</MfaDelete>'), { mfa: `${device.serial} 000000` }),
  ).toMatchObject({
    status: 400,
    text: expect.stringContaining('IllegalVersioningConfigurationException'),
  });
  const mfa = nextMfa();
  expect((await put(ON, { mfa })).status).toBe(200);
  expect((await put(versioning('<Status>Suspended</Status>'), { mfa })).status).toBe(403);
  expect((await ask('GET', '/guarded?versioning')).text).toContain('<MfaDelete>Enabled</MfaDelete>');

  const { versionId } = await ask('PUT', '/guarded/key');
  const path = `/guarded/key?versionId=${versionId}`;
  const [plain, marker] = [await ask('DELETE', path), await ask('DELETE', '/guarded/key')];
  expect([plain.status, marker.status]).toEqual([403, 204]);
  expect(plain.text).toContain('Mfa Authentication');
  const list = `<Delete><Object><Key>key</Key><VersionId>${versionId}</VersionId></Object><Object><Key>other</Key></Object></Delete>`;
  const multi = (await ask('POST', '/guarded?delete', { body: list })).text;
  expect(multi.match(/<Error>.*<Key>key<.*AccessDenied.*<\/Error>/)).not.toBeNull();
  expect(multi).toContain('<Deleted><Key>other</Key>');
  expect((await ask('DELETE', '/guarded?force_delete=true')).status).toBe(403);
  expect((await ask('DELETE', path, { mfa: nextMfa() })).status).toBe(204);
});

const compliance = (inner: string) =>
  `<BucketComplianceConfiguration><Status>enabled</Status><RetentionDays>0</RetentionDays>${inner}</BucketComplianceConfiguration>`;

test.each([
  [
    '?lifecycle',
    '<LifecycleConfiguration><Rule><Filter/><Status>Enabled</Status><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration></Rule></LifecycleConfiguration>',
  ],
  ['?compliance', compliance('<DeleteAfterRetention>true</DeleteAfterRetention>')],
])(
  'with MFA delete, what makes the service remove versions is put with a factor only: %s',
  async (query, body) => {
    const path = `/by-service-${query.slice(1)}`;
    await ask('PUT', path);
    const withFactor = sessionWith(Date.now());
    // Without MFA delete none is needed.
    expect((await ask('PUT', path + query, { body })).status).toBe(200);
    const none = query === '?lifecycle' ? undefined : compliance('');
    if (none === undefined) await ask('DELETE', path + query);
    else expect((await ask('PUT', path + query, { body: none })).status).toBe(200);
    const before = await ask('GET', path + query);
    expect((await ask('PUT', `${path}?versioning`, { body: ON, keys: withFactor })).status).toBe(200);

    const refused = { status: 403, text: expect.stringContaining('Mfa Authentication') };
    expect(await ask('PUT', path + query, { body })).toMatchObject(refused);
    expect(await ask('PUT', path + query, { body, keys: sessionWith(undefined) })).toMatchObject(refused);
    expect(await ask('PUT', path + query, { body, mfa: `${device.serial} 000000` })).toMatchObject(refused);
    const after = await ask('GET', path + query);
    expect([after.status, settingsIn(after.text)]).toEqual([before.status, settingsIn(before.text)]);
    // Settings that remove nothing need none.
    if (none !== undefined) expect((await ask('PUT', path + query, { body: none })).status).toBe(200);
    expect((await ask('PUT', path + query, { body, keys: withFactor })).status).toBe(200);
  },
);

/** Without what is of the answer alone. */
const settingsIn = (text: string) => text.replace(/<(RequestId|HostId)>[^<]*</g, '');

test('with MFA delete, a code of the device lets compliance that deletes be put', async () => {
  const other = await world.makeAccount('by-code');
  const { accountId, accessKey: issuer } = other;
  const { serial, seed } = await addMfaDevice(world, accountId, { name: 'by-code', owner: 'root' });
  await ask('PUT', '/by-code', { keys: other });
  const keys = beginSession(world, { kind: 'root', accountId, id: 'root', issuer, mfaAtMs: Date.now() });
  expect((await ask('PUT', '/by-code?versioning', { body: ON, keys })).status).toBe(200);
  const body = compliance('<DeleteAfterRetention>true</DeleteAfterRetention>');
  const mfa = `${serial} ${codeAt(seed, nowStep())}`;
  expect((await ask('PUT', '/by-code?compliance', { body, keys: other, mfa })).status).toBe(200);
});

const TMP = '<Filter><Prefix>tmp/</Prefix></Filter>';
const TAG = '<Tag><Key>temporary</Key><Value>yes</Value></Tag>';
const ruleOf = (filter: string, status = 'Enabled') =>
  `<Rule>${filter}<Status>${status}</Status><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration></Rule>`;

test.each([
  { rules: 'by-prefix', text: ruleOf(TMP), forbids: ['MOVE', 'prefix'] },
  { rules: 'by-tag', text: ruleOf(`<Filter>${TAG}</Filter>`), forbids: ['tags'] },
  { rules: 'off', text: ruleOf(TMP, 'Disabled'), forbids: [] },
  { rules: 'of-all', text: ruleOf('<Filter/>'), forbids: [] },
])(
  'with MFA delete, versions come under a rule that removes them with a factor only: rules $rules',
  async ({ rules, text, forbids }) => {
    const bucket = `/rules-${rules}`;
    const withFactor = sessionWith(Date.now());
    await ask('PUT', bucket);
    const body = `<LifecycleConfiguration>${text}</LifecycleConfiguration>`;
    expect((await ask('PUT', `${bucket}?lifecycle`, { body })).status).toBe(200);
    expect((await ask('PUT', `${bucket}?versioning`, { body: ON, keys: withFactor })).status).toBe(200);
    for (const key of ['one', 'some/one']) await ask('PUT', `${bucket}/${key}`);
    const tagging = `<Tagging><TagSet>${TAG}</TagSet></Tagging>`;
    const asked = {
      tags: (sent: Sent) => ask('PUT', `${bucket}/one?tagging`, { body: tagging, ...sent }),
      MOVE: (sent: Sent) => ask('MOVE', `${bucket}/one`, { headers: { destination: 'tmp/one' }, ...sent }),
      prefix: (sent: Sent) =>
        ask('MOVE', `${bucket}/some/`, {
          headers: { destination: 'tmp/some/', 'x-svc-prefix': 'true' },
          ...sent,
        }),
    };
    for (const [what, send] of Object.entries(asked)) {
      if (forbids.includes(what))
        expect(await send({}), what).toMatchObject({
          status: 403,
          text: expect.stringContaining('Mfa Authentication'),
        });
      expect((await send(forbids.includes(what) ? { keys: withFactor } : {})).status, what).toBe(200);
    }
  },
);

test('a session that was given with MFA needs no code', async () => {
  await ask('PUT', '/by-session');
  expect(
    (await ask('PUT', '/by-session?versioning', { body: ON, keys: sessionWith(Date.now()) })).status,
  ).toBe(200);
  const { versionId } = await ask('PUT', '/by-session/key');
  const path = `/by-session/key?versionId=${versionId}`;
  expect((await ask('DELETE', path, { keys: sessionWith(undefined) })).status).toBe(403);
  expect((await ask('DELETE', path, { keys: sessionWith(Date.now()) })).status).toBe(204);
});

test('a device that nobody with a second factor has vouched for, or of another account, does not stand for MFA delete', async () => {
  await ask('PUT', '/vouched');
  expect((await ask('PUT', '/vouched?versioning', { body: ON, keys: sessionWith(Date.now()) })).status).toBe(
    200,
  );
  const { versionId } = await ask('PUT', '/vouched/key');
  const path = `/vouched/key?versionId=${versionId}`;
  const refused = { status: 403, text: expect.stringContaining('Mfa Authentication') };
  // Whoever has the root's key alone can make a user with a device of his own.
  const statements = [{ Effect: 'Allow', Action: ['s3:*', 'iam:*'], Resource: '*' }];
  const user = await addUser(world, owner.accountId, { name: 'made-up', statements });
  const enable = (name: string, keys: Keys) => enableDevice(name, { account: owner, user: 'made-up', keys });
  const unvouched = await enable('unvouched', owner);
  const mfa = `${unvouched.SerialNumber} ${unvouched.next}`;
  expect(await ask('DELETE', path, { keys: user, mfa })).toMatchObject(refused);
  const base = { kind: 'user', accountId: owner.accountId, id: user.id, issuer: user.accessKey } as const;
  const weak = beginSession(world, { ...base, mfaAtMs: Date.now(), isMfaUnvouched: true });
  expect(await ask('DELETE', path, { keys: weak })).toMatchObject(refused);

  const other = await world.makeAccount('with-a-device');
  const statement = { Effect: 'Allow', Principal: { AWS: other.accountId }, Action: 's3:*' };
  const Resource = ['arn:aws:s3:::vouched', 'arn:aws:s3:::vouched/*'];
  const policy = { Version: '2012-10-17', Statement: { ...statement, Resource } };
  expect((await ask('PUT', '/vouched?policy', { body: JSON.stringify(policy) })).status).toBe(204);
  const { accountId, accessKey: issuer } = other;
  const foreign = beginSession(world, { kind: 'root', accountId, id: 'root', issuer, mfaAtMs: Date.now() });
  expect((await ask('GET', path, { keys: foreign })).status).toBe(200);
  expect(await ask('DELETE', path, { keys: foreign })).toMatchObject(refused);
  // Nor does the root that has it switch MFA delete.
  for (const body of [OFF, ON, versioning('<Status>Suspended</Status>')])
    expect((await ask('PUT', '/vouched?versioning', { body, keys: foreign })).status, body).toBe(403);
  expect((await ask('GET', '/vouched?versioning')).text).toContain('<MfaDelete>Enabled</MfaDelete>');

  const vouched = await enable('vouched', sessionWith(Date.now()));
  const right = `${vouched.SerialNumber} ${vouched.next}`;
  expect((await ask('DELETE', path, { keys: user, mfa: right })).status).toBe(204);
});

test('a device of a user that was enabled before the root had one does not stand for it either', async () => {
  const late = await world.makeAccount('late');
  const statements = [{ Effect: 'Allow', Action: ['s3:*', 'iam:*'], Resource: '*' }];
  const user = await addUser(world, late.accountId, { name: 'early', statements });
  const early = await enableDevice('early', { account: late, user: 'early', keys: user });
  await addMfaDevice(world, late.accountId, { name: 'late-root', owner: 'root' });
  const { accountId, accessKey: issuer } = late;
  const root = beginSession(world, { kind: 'root', accountId, id: 'root', issuer, mfaAtMs: Date.now() });
  await ask('PUT', '/late', { keys: late });
  expect((await ask('PUT', '/late?versioning', { body: ON, keys: root })).status).toBe(200);
  const { versionId } = await ask('PUT', '/late/key', { keys: late });
  const mfa = `${early.SerialNumber} ${early.next}`;
  expect(await ask('DELETE', `/late/key?versionId=${versionId}`, { keys: user, mfa })).toMatchObject({
    status: 403,
    text: expect.stringContaining('Mfa Authentication'),
  });
});

/** Makes a device and enables it by `keys`. `next`: a code of it that is not used. */
async function enableDevice(
  name: string,
  { account, user, keys }: { account: Keys; user: string; keys: Keys },
): Promise<{ SerialNumber: string; next: string }> {
  const iam = async (Action: string, parameters: Record<string, string>, credentials: Keys) => {
    const { token } = credentials;
    const call = { credentials, ...(token !== undefined && { token }) };
    const answer = await callIam({ ...account, endpoint: world.endpoint }, { Action, ...parameters }, call);
    expect(answer.status).toBe(200);
    return answer;
  };
  const made = await iam('CreateVirtualMFADevice', { VirtualMFADeviceName: name }, account);
  const seed = seedOf(Buffer.from(made.text('Base32StringSeed') ?? '', 'base64').toString());
  const SerialNumber = made.text('SerialNumber') ?? '';
  // The next code is that behind the pair, of whatever step the server takes them for.
  const step = nowStep();
  const [AuthenticationCode1, AuthenticationCode2] = [codeAt(seed, step - 1), codeAt(seed, step)];
  const codes = { AuthenticationCode1, AuthenticationCode2 };
  await iam('EnableMFADevice', { UserName: user, SerialNumber, ...codes }, keys);
  return { SerialNumber, next: codeAt(seed, step + 1) };
}

/** The bytes of Base32 (RFC 4648). */
function seedOf(base32: string): Buffer {
  const bits = [...base32].map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter));
  const text = bits.map((each) => each.toString(2).padStart(5, '0')).join('');
  return Buffer.from((text.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}

function sessionWith(mfaAtMs: number | undefined): Keys {
  const { accountId, accessKey: issuer } = owner;
  return beginSession(world, { kind: 'root', accountId, id: 'root', issuer, ...(mfaAtMs && { mfaAtMs }) });
}
