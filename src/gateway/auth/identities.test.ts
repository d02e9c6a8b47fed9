import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { amongOthers, cutOut, keptBytesOf } from '../../../tests/support/run/kept-memory.ts';
import { createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { MEMBER_PATH, MEMBER_POLICY, memberPolicy } from '../../accounts/member-roles.ts';
import { utf8 } from '../../base/bytes/bytes.ts';
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import { createKeyring } from '../../platform/memory/memory-keyring.ts';
import type { IdentityChange, IdentityFeed } from '../../ports/identity-feed.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { AccountId } from '../../types/names.ts';
import { createIdentities, type Identities } from './identities.ts';
import type { Principal } from './principal.ts';
import type { Session } from './sessions.ts';

const ANN = '000000000011' as AccountId;
const BOB = '000000000022' as AccountId;

let metadata: MetadataShards;
let identities: Identities;
let tell: (changes: readonly IdentityChange[] | 'all') => void;
let isCurrent: boolean;
let isAway: boolean;
/** What was asked of the shard since it was last looked at. */
let asked: string[];
/** Of all answers since it was last looked at. */
let answeredBytes: number;
/** Beside each answer. */
let othersBytes: number;
/** Answers wait for it. */
let gate: Promise<void>;
const keyring = createKeyring();

beforeEach(async () => {
  metadata = await openMetadata();
  [isCurrent, isAway, asked, answeredBytes, othersBytes, gate] = [true, false, [], 0, 0, Promise.resolve()];
  const port: MetadataPort = {
    shardCount: 1,
    execute: metadata.shards.execute,
    async query(envelope, name, query) {
      asked.push(name);
      if (isAway) return { kind: 'unknown' };
      const reply = await metadata.shards.query(envelope, name, query);
      answeredBytes += packPlain(reply).length;
      await gate;
      return amongOthers(reply, othersBytes);
    },
  };
  const feed: IdentityFeed = {
    isCurrent: () => isCurrent,
    listen(onChange) {
      tell = onChange;
    },
  };
  identities = createIdentities({ metadata: port, keyring, random: createSeededRandom(1), feed });
  await create(ANN, 'ann');
  await create(BOB, 'bob');
});

function create(accountId: AccountId, name: string) {
  const account = { accountId, name, email: name, canonicalId: name, state: 'paid' as const };
  return metadata.execute('create-account', {
    account: { ...account, bucketsMax: 1, isRoot: false },
    accessKey: { accessKey: `AK${name}`, sealedSecret: keyring.wrap(utf8(`secret of ${name}`)) },
  });
}

function suspend(accountId: AccountId) {
  return metadata.execute('set-account', { accountId, changes: { state: 'suspended' } });
}

const stateOf = async (accessKey: string) => (await identities.find(accessKey))?.account.state;
const takeAsked = () => asked.splice(0);
function takeAnsweredBytes(): number {
  const bytes = answeredBytes;
  answeredBytes = 0;
  return bytes;
}

test('an identity is read once while the feed is current', async () => {
  expect([await stateOf('AKann'), await stateOf('AKann')]).toEqual(['paid', 'paid']);
  expect(await identities.account(ANN)).toEqual(await identities.account(ANN));
  expect(takeAsked()).toEqual(['get-access-key', 'get-account']);
  await suspend(ANN);
  expect(await stateOf('AKann')).toBe('paid');
});

test('a crowd of one key, or of sessions of one role, reads it once; while the feed is not current, twice', async () => {
  const crowd = (act: () => Promise<unknown>) => Promise.all(Array.from({ length: 20 }, act));
  expect(await crowd(() => stateOf('AKann'))).toEqual(Array.from({ length: 20 }, () => 'paid'));
  expect(takeAsked()).toEqual(['get-access-key']);
  isCurrent = false;
  await crowd(() => stateOf('AKann'));
  expect(takeAsked()).toEqual(['get-access-key', 'get-access-key']);
  isCurrent = true;
  const ofRole = { kind: 'role', accountId: BOB, id: 'AROAGONE', issuer: 'AKann', name: 'job' } as const;
  const session: Session = { ...ofRole, accessKey: 'ASIA', secretKey: 's', issuedAtMs: 0, expiresAtMs: 1 };
  const token = identities.sessions.seal(session);
  await crowd(() => identities.findSession('ASIA', token, 0));
  expect(takeAsked()).toEqual(['get-principal', 'get-principal']);
});

test('an identity keeps nothing of the request that named its key', async () => {
  await create('000000000033' as AccountId, 'with-a-longer-name');
  const MiB = 1024 * 1024;
  const keptBytes = await keptBytesOf(() => stateOf(cutOut('AKwith-a-longer-name', 32 * MiB)));
  expect(keptBytes).toBeLessThan(16 * MiB);
  expect(takeAsked()).toEqual(['get-access-key']);
  expect(await stateOf('AKwith-a-longer-name')).toBe('paid');
  expect(takeAsked()).toEqual([]);
});

test('an identity keeps nothing of what came together with it', async () => {
  const MiB = 1024 * 1024;
  othersBytes = 32 * MiB;
  const keptBytes = await keptBytesOf(async () => {
    await stateOf('AKann');
    // The decoder itself keeps the bytes that it has read last.
    othersBytes = 0;
    await stateOf('AKbob');
  });
  expect(keptBytes).toBeLessThan(16 * MiB);
  takeAsked();
  expect(await stateOf('AKann')).toBe('paid');
  expect(takeAsked()).toEqual([]);
});

test('a reported identity is read again, and no other', async () => {
  for (const key of ['AKann', 'AKbob']) await stateOf(key);
  for (const id of [ANN, BOB]) await identities.account(id);
  await suspend(ANN);
  tell([{ accountId: ANN }]);
  takeAsked();
  expect([await stateOf('AKann'), await stateOf('AKbob')]).toEqual(['suspended', 'paid']);
  expect((await identities.account(ANN))?.state).toBe('suspended');
  await identities.account(BOB);
  expect(takeAsked()).toEqual(['get-access-key', 'get-account']);
  tell('all');
  for (const key of ['AKann', 'AKbob']) await stateOf(key);
  expect(takeAsked()).toEqual(['get-access-key', 'get-access-key']);
});

test('a deleted identity is unknown, and found when it is created again', async () => {
  await stateOf('AKann');
  await metadata.execute('delete-account', { accountId: ANN });
  tell([{ accountId: ANN }]);
  expect(await identities.find('AKann')).toBeUndefined();
  expect(await identities.account(ANN)).toBeNull();
  await create(ANN, 'ann');
  expect(await stateOf('AKann')).toBe('paid');
  expect(await identities.account(ANN)).not.toBeNull();
});

describe('a session', () => {
  const ROLE = 'AROAROLE';
  beforeEach(async () => {
    const role = {
      kind: 'role',
      id: ROLE,
      name: 'r',
      path: '/',
      createdAtMs: 0,
      tags: [],
      trustPolicy: '{}',
    };
    const record = { ...role, maxSessionSeconds: 3600, inlinePolicies: [], attachedPolicies: [] } as never;
    await metadata.execute('change-identities', {
      accountId: BOB,
      ifRevision: 0,
      rows: [
        { key: 'role/r', record },
        { key: `id/${ROLE}`, record: { kind: 'index', to: 'role/r' } },
      ],
      isSeen: false,
    });
  });

  async function begin(changes: Partial<Session>) {
    const principal = (await identities.find('AKann'))?.principal;
    const createdAtMs = principal?.keyCreatedAtMs ?? 0;
    const session: Session = {
      kind: 'root',
      accountId: ANN,
      id: 'root',
      accessKey: 'ASIAANN',
      secretKey: 'secret',
      issuer: 'AKann',
      issuerKey: { accountId: ANN, principalId: 'root', createdAtMs },
      issuedAtMs: 0,
      expiresAtMs: 1,
      ...changes,
    };
    const token = identities.sessions.seal(session);
    return async () => (await identities.findSession('ASIAANN', token, 0))?.principal.caller.kind;
  }
  const ofRole = { kind: 'role', accountId: BOB, id: ROLE, name: 'job' } as const;

  test('ends with the very key that began it: one that is made anew under its name is another', async () => {
    const sessions = [await begin({}), await begin(ofRole)];
    const kinds = () => Promise.all(sessions.map((find) => find()));
    expect(await kinds()).toEqual(['root', 'role-session']);
    metadata.clock.advance(1);
    await metadata.execute('delete-account', { accountId: ANN });
    await create(ANN, 'ann');
    tell('all');
    expect(await kinds()).toEqual([undefined, undefined]);
  });

  test.each([
    ['is of another user by now', { principalId: 'AIDAOTHER' }],
    ['is of another account by now', { accountId: BOB }],
  ])('ends where its key %s', async (_, other) => {
    const createdAtMs = (await identities.find('AKann'))?.principal.keyCreatedAtMs ?? 0;
    const issuerKey = { accountId: ANN, principalId: 'root', createdAtMs, ...other };
    expect(await (await begin({ ...ofRole, issuerKey }))()).toBeUndefined();
  });

  test('of an earlier release, which does not say which key it was, goes by its name', async () => {
    const { issuerKey: _, ...session } = { ...ofRole, issuerKey: undefined };
    const token = identities.sessions.seal({
      ...session,
      accessKey: 'ASIAANN',
      secretKey: 'secret',
      issuer: 'AKann',
      issuedAtMs: 0,
      expiresAtMs: 1,
    });
    expect(await identities.findSession('ASIAANN', token, 0)).toBeDefined();
  });

  test('ends with each role on its way, and with the account of one', async () => {
    const through = [{ accountId: BOB, id: ROLE }];
    const find = await begin({ through });
    expect(await find()).toBe('root');
    expect(await (await begin({ through: [{ accountId: BOB, id: 'AROAGONE' }] }))()).toBeUndefined();
    await suspend(BOB);
    tell([{ accountId: BOB }]);
    expect(await find()).toBeUndefined();
  });

  test.each(['active', 'inactive'])(
    'of a role is the one of a member that is %s: it goes on while the member is active',
    async (state) => {
      const isActive = state === 'active';
      const member = {
        kind: 'user',
        id: 'AIDAMEMBER',
        name: 'm',
        path: MEMBER_PATH,
        createdAtMs: 0,
        tags: [],
      };
      const nothing = { groups: [], attachedPolicies: [], accessKeys: [], mfaDevices: [] };
      const inlinePolicies = [{ name: MEMBER_POLICY, text: memberPolicy('Root', { isActive }) }];
      const record = { ...member, ...nothing, inlinePolicies } as never;
      await metadata.execute('change-identities', {
        accountId: ANN,
        ifRevision: 0,
        rows: [
          { key: 'user/m', record },
          { key: 'id/AIDAMEMBER', record: { kind: 'index', to: 'user/m' } },
        ],
        keys: [
          {
            kind: 'add',
            key: { accessKey: 'AKmember', sealedSecret: keyring.wrap(utf8('s')), userId: member.id },
          },
        ],
        isSeen: false,
      });
      const createdAtMs = (await identities.find('AKmember'))?.principal.keyCreatedAtMs ?? 0;
      const issuerKey = { accountId: ANN, principalId: member.id, createdAtMs };
      const find = await begin({ ...ofRole, issuer: 'AKmember', issuerKey });
      expect(await find()).toBe(isActive ? 'role-session' : undefined);
    },
  );

  test('counts with its own policies in what is cached, and requests under way keep none of what is compiled', async () => {
    const createdAtMs = (await identities.find('AKann'))?.principal.keyCreatedAtMs ?? 0;
    const Action = Array.from({ length: 1200 }, () => ':?');
    const policyOf = (Sid: string) => ({
      name: Sid,
      text: JSON.stringify({
        Version: '2012-10-17',
        Statement: { Sid, Effect: 'Allow', Action, Resource: '*' },
      }),
    });
    const underWay: Principal[] = [];
    const bytes = await keptBytesOf(async () => {
      for (let at = 0; at < 60; at++) {
        const accessKey = `ASIA${at}`;
        const token = identities.sessions.seal({
          ...ofRole,
          accessKey,
          secretKey: 'secret',
          issuer: 'AKann',
          issuerKey: { accountId: ANN, principalId: 'root', createdAtMs },
          issuedAtMs: 0,
          expiresAtMs: 1,
          policies: Array.from({ length: 10 }, (_, policy) => policyOf(`s${at}p${policy}`)),
        });
        const identity = await identities.findSession(accessKey, token, 0);
        if (identity !== undefined) underWay.push(identity.principal);
      }
    });
    expect(underWay).toHaveLength(60);
    expect(bytes).toBeLessThan(100 * 1024 * 1024);
    for (const principal of underWay) {
      const { session = [] } = await principal.policies();
      expect(session.map(({ name }) => name)).toEqual(principal.session?.policies?.map(({ name }) => name));
    }
  });

  test('is opened by a whole tag alone', async () => {
    const token = Buffer.from(identities.sessions.seal({ ...ofRole } as never), 'base64');
    // With less of it, fewer guesses would do.
    const parts = unpackPlain(token) as { sealed: Buffer };
    for (const sealed of [parts.sealed.subarray(0, -4), Buffer.alloc(4), Buffer.alloc(0)]) {
      const shorter = packPlain({ ...parts, sealed });
      const text = Buffer.from(shorter).toString('base64');
      expect(() => identities.sessions.open(text)).toThrow(expect.objectContaining({ code: 'InvalidToken' }));
    }
    expect(identities.sessions.open(token.toString('base64'))).toMatchObject(ofRole);
  });
});

test('an unknown key is looked up each time', async () => {
  expect(await identities.find('AKnew')).toBeUndefined();
  expect(await identities.find('AKnew')).toBeUndefined();
  expect(takeAsked()).toHaveLength(2);
});

describe('while the feed is behind', () => {
  test('each lookup reads through the cache', async () => {
    await stateOf('AKann');
    await identities.account(ANN);
    isCurrent = false;
    await suspend(ANN);
    expect([await stateOf('AKann'), await stateOf('AKann')]).toEqual(['suspended', 'suspended']);
    expect((await identities.account(ANN))?.state).toBe('suspended');
    await metadata.execute('delete-account', { accountId: ANN });
    expect(await identities.find('AKann')).toBeUndefined();
    expect(await identities.account(ANN)).toBeNull();
  });

  test('without an answer the error is 503; the cache is used again when the feed is current', async () => {
    await stateOf('AKann');
    [isCurrent, isAway] = [false, true];
    await expect(identities.find('AKann')).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    await expect(identities.account(ANN)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    isCurrent = true;
    expect(await stateOf('AKann')).toBe('paid');
    await expect(identities.find('AKbob')).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  });

  test('an unchanged secret keeps its signing keys', async () => {
    const before = await identities.find('AKann');
    isCurrent = false;
    expect((await identities.find('AKann'))?.secret).toBe(before?.secret);
  });
});

test('a read that a change has overtaken serves its request, and is not cached', async () => {
  const held = Promise.withResolvers<void>();
  gate = held.promise;
  const reads = [stateOf('AKann'), identities.account(ANN)] as const;
  // The shard has read, and its answer is on its way.
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  await suspend(ANN);
  tell([{ accountId: ANN }]);
  held.resolve();
  expect([await reads[0], (await reads[1])?.state]).toEqual(['paid', 'paid']);
  expect([await stateOf('AKann'), (await identities.account(ANN))?.state]).toEqual([
    'suspended',
    'suspended',
  ]);
});

test('a read during which another account has changed is cached', async () => {
  const held = Promise.withResolvers<void>();
  gate = held.promise;
  const read = stateOf('AKann');
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  tell([{ accountId: BOB }]);
  held.resolve();
  expect([await read, await stateOf('AKann')]).toEqual(['paid', 'paid']);
  expect(takeAsked()).toEqual(['get-access-key']);
});

/** Users of ANN, `AKuser0` and so on, each with a policy of this text. */
async function createUsers(count: number, text: string) {
  const users = Array.from({ length: count }, (_, at) => ({
    name: `u${at}`,
    id: `AIDA${at}`,
    accessKey: `AKuser${at}`,
  }));
  for (const [revision, { name, id, accessKey }] of users.entries()) {
    const user = {
      kind: 'user',
      id,
      name,
      path: '/',
      createdAtMs: 0,
      tags: [],
      groups: [],
      mfaDevices: [],
      inlinePolicies: [{ name: 'long', text }],
      attachedPolicies: [],
      accessKeys: [],
    } as const;
    const sealedSecret = keyring.wrap(utf8('secret of a user'));
    const outcome = await metadata.execute('change-identities', {
      accountId: ANN,
      ifRevision: revision,
      rows: [
        { key: `user/${name}`, record: user as never },
        { key: `id/${id}`, record: { kind: 'index', to: `user/${name}` } },
      ],
      keys: [{ kind: 'add', key: { accessKey, sealedSecret, userId: id } }],
      isSeen: false,
    });
    expect(outcome.kind).toBe('changed');
  }
  return users;
}

test('of one account two users with long policies are read at once, and one of another account beside them', async () => {
  const users = await createUsers(6, ' '.repeat(100_000));
  const { promise: first, resolve: endFirst } = Promise.withResolvers<void>();
  gate = first;
  const states = users.map(({ accessKey }) => stateOf(accessKey));
  await turnsOfLoop();
  // Whose they are, and that they are long, is known by then, and nothing of their policies.
  expect(takeAsked()).toHaveLength(6);
  expect(takeAnsweredBytes()).toBeLessThan(6000);
  const { promise: second, resolve: endSecond } = Promise.withResolvers<void>();
  gate = second;
  endFirst();
  await turnsOfLoop();
  expect(takeAsked()).toHaveLength(2);
  gate = Promise.resolve();
  expect(await stateOf('AKbob')).toBe('paid');
  endSecond();
  expect(new Set(await Promise.all(states))).toEqual(new Set(['paid']));
  expect(takeAsked()).toHaveLength(1 + 4);
});

test('of roles with long policies nothing is read before a session has a place', async () => {
  const policy = { name: 'long', text: ' '.repeat(100_000) };
  const roles = Array.from({ length: 6 }, (_, at) => ({ name: `r${at}`, id: `AROA${at}` }));
  const of = { kind: 'role', path: '/', createdAtMs: 0, trustPolicy: '{}', maxSessionSeconds: 3600 } as const;
  const rows = roles.flatMap(({ name, id }) => [
    {
      key: `role/${name}`,
      record: { ...of, id, name, tags: [], inlinePolicies: [policy], attachedPolicies: [] } as never,
    },
    { key: `id/${id}`, record: { kind: 'index' as const, to: `role/${name}` } },
  ]);
  await metadata.execute('change-identities', { accountId: ANN, ifRevision: 0, rows, isSeen: false });
  await stateOf('AKann');
  const { promise, resolve: end } = Promise.withResolvers<void>();
  gate = promise;
  takeAnsweredBytes();
  const found = roles.map(({ id, name }) => {
    const of = { kind: 'role', accountId: ANN, id, issuer: 'AKann', name } as const;
    const session = { ...of, accessKey: `ASIA${id}`, secretKey: 's', issuedAtMs: 0, expiresAtMs: 1 };
    return identities.findSession(session.accessKey, identities.sessions.seal(session), 0);
  });
  await turnsOfLoop();
  expect(takeAnsweredBytes()).toBeLessThan(6000);
  end();
  expect((await Promise.all(found)).map((one) => one?.account.state)).toEqual(roles.map(() => 'paid'));
  expect(takeAnsweredBytes()).toBeGreaterThan(600_000);
  // On the way to another session such a role is looked up once.
  const on = { kind: 'role', accountId: ANN, id: 'AROA0', issuer: 'AKann', name: 'r0' } as const;
  const through = [{ accountId: ANN, id: 'AROA1' }];
  const chained = { ...on, accessKey: 'ASIACHAINED', secretKey: 's', issuedAtMs: 0, expiresAtMs: 1, through };
  tell([{ accountId: ANN }]);
  const token = identities.sessions.seal(chained);
  for (let count = 0; count < 3; count++) await identities.findSession(chained.accessKey, token, 0);
  takeAsked();
  await identities.findSession(chained.accessKey, token, 0);
  expect(takeAsked()).toEqual([]);
});

async function turnsOfLoop(): Promise<void> {
  for (let count = 0; count < 20; count++) await nextTurn();
}

test('what is cached of users is bounded by the texts of their policies, too', async () => {
  const users = await createUsers(20, ' '.repeat(2 << 20));
  await stateOf('AKbob');
  for (const { accessKey } of users) await stateOf(accessKey);
  takeAsked();
  await stateOf('AKuser19');
  expect(takeAsked()).toEqual([]);
  await stateOf('AKuser0');
  // Once to know that it is long, and once in its place.
  expect(takeAsked()).toEqual(['get-access-key', 'get-access-key']);
});
