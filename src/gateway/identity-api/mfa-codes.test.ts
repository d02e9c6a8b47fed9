// Codes of MFA devices are used once, by their owner, within a step of now; who guesses has to wait.
import { beforeEach, expect, test } from 'vitest';
import { kek, type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { createKeyring } from '../../platform/memory/memory-keyring.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { AccountId } from '../../types/names.ts';
import { identityKeys, type MfaDeviceRecord } from '../../types/records/identity-records.ts';
import { createMfaCodes, type MfaCodes } from './mfa-codes.ts';
import { codeAt, stepAt } from './one-time-codes.ts';

const ANN = '000000000011' as AccountId;
const OWNER = 'AIDAUSER';
const SERIAL = `arn:aws:iam::${ANN}:mfa/team/Phone`;
const keyring = createKeyring();
const sealed = Buffer.alloc(32, 7);
const seed = sealed.subarray(0, 20);
let world: MetadataShards;
let codes: MfaCodes;

beforeEach(async () => {
  world = await openMetadata({});
  const account = { accountId: ANN, name: 'ann', email: 'ann', canonicalId: 'ann', state: 'paid' as const };
  await world.execute('create-account', {
    account: { ...account, bucketsMax: 1, isRoot: false },
    accessKey: { accessKey: 'AKann', sealedSecret: kek },
  });
  const { clock } = world;
  // The pauses of withIdentities take no time; its longest wait does.
  const hurried: ClockPort = {
    ...clock,
    sleep: async (ms, signal) => (ms < 1000 ? undefined : clock.sleep(ms, signal)),
  };
  codes = createMfaCodes({ metadata: world.shards, clock: hurried, random: createSeededRandom(1), keyring });
  await setDevice({ enabled: { owner: OWNER, atMs: 1 } });
});

async function setDevice(changes: Partial<MfaDeviceRecord>): Promise<void> {
  const { revision } = await world.query('read-identities', { accountId: ANN });
  const sealedSeed = keyring.wrap(sealed);
  const device = {
    kind: 'mfa-device' as const,
    name: 'Phone',
    path: '/team/',
    createdAtMs: 1,
    sealedSeed,
    tags: [],
  };
  await world.execute('change-identities', {
    accountId: ANN,
    ifRevision: revision,
    isSeen: false,
    rows: [
      { key: identityKeys.mfaDevice('Phone'), record: { ...device, ...changes } },
      { key: identityKeys.settings, record: { kind: 'settings', rootMfaDevices: ['Phone'] } },
    ],
  });
}

const code = (steps = 0) => codeAt(seed, stepAt(world.clock.wallMs()) + steps);
const verify = (changes: { code?: string; serial?: string; owner?: string } = {}) =>
  codes.verify({ accountId: ANN, serial: SERIAL, code: code(), owner: OWNER, ...changes });

test('a code is right once', async () => {
  expect(await verify()).toBe('vouched');
  expect(await verify()).toBe('wrong');
});

test('a code is right within one step, and none is behind one that was used', async () => {
  expect(await verify({ code: code(2) })).toBe('wrong');
  expect(await verify({ code: code(-2) })).toBe('wrong');
  expect(await verify({ code: code(-1) })).toBe('vouched');
  expect(await verify({ code: code(1) })).toBe('vouched');
  expect(await verify({ code: code() })).toBe('wrong');
});

test('of many who send one code at once, one is told that it is right', async () => {
  const answers = await Promise.all(Array.from({ length: 4 }, () => verify()));
  expect(answers.filter((answer) => answer !== 'wrong')).toEqual(['vouched']);
});

test("a device is its owner's alone, under its own serial number", async () => {
  expect(await verify({ owner: 'AIDAOTHER' })).toBe('wrong');
  expect(await verify({ owner: 'root' })).toBe('wrong');
  for (const serial of [`arn:aws:iam::${ANN}:mfa/Phone`, SERIAL.replace('Phone', 'phone'), 'Phone', '']) {
    expect(await verify({ serial, owner: OWNER })).toBe('wrong');
  }
});

test("the root's device goes by the name that consoles give it, too", async () => {
  await setDevice({ enabled: { owner: 'root', atMs: 1 } });
  const serial = `arn:aws:iam::${ANN}:mfa/root-account-mfa-device`;
  expect(await verify({ serial, owner: 'root' })).toBe('vouched');
  expect(await verify({ serial, owner: OWNER, code: code(1) })).toBe('wrong');
});

test('a device that is not enabled has no codes', async () => {
  await setDevice({});
  expect(await verify()).toBe('wrong');
});

test('it says of a device that was enabled without MFA that nobody has vouched for it', async () => {
  await setDevice({ enabled: { owner: OWNER, atMs: 1, isUnvouched: true } });
  expect(await verify()).toBe('unvouched');
});

test('a clock that is ahead is looked for where it was found', async () => {
  await setDevice({ enabled: { owner: OWNER, atMs: 1 }, driftSteps: 10 });
  expect(await verify({ code: code() })).toBe('wrong');
  expect(await verify({ code: code(11) })).toBe('vouched');
});

test('who guesses waits longer each time, also where all guesses come at once', async () => {
  await Promise.all(Array.from({ length: 50 }, () => verify({ code: 'wrong!' })));
  // Even a right one is not heard now.
  expect(await verify()).toBe('wrong');
  await world.clock.advance(30_001);
  expect(await verify({ code: 'wrong!' })).toBe('wrong');
  await world.clock.advance(30_001);
  expect(await verify()).toBe('wrong');
  await world.clock.advance(30_001);
  expect(await verify()).toBe('vouched');
  // And a right one ends it.
  expect(await verify({ code: 'wrong!' })).toBe('wrong');
  expect(await verify({ code: code(1) })).toBe('vouched');
});

test('another owner does not wait for it', async () => {
  for (let at = 0; at < 10; at++) await verify({ owner: 'AIDAOTHER' });
  expect(await verify()).toBe('vouched');
});
