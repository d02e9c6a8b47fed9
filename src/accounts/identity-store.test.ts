// Changes of an account that others overtake: they are decided anew, and not for ever.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../tests/support/objects/gateway-world.ts';
import { createManualClock } from '../../tests/support/run/simulated.ts';
import { callIam } from '../../tests/support/servers/iam-api.ts';
import { must } from '../base/assert.ts';
import { nextTurn } from '../base/async/next-turn.ts';
import { systemRandom } from '../platform/system-clock.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import type { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import type { AccountId } from '../types/names.ts';
import { withIdentities } from './identity-store.ts';

let shards: MetadataPort | undefined;
/** Runs before the next changes are written, as long as it gives true: then others were faster. */
let overtake: () => Promise<boolean> = async () => false;
const port: MetadataPort = {
  get shardCount() {
    return shards?.shardCount ?? 1;
  },
  async execute(envelope, name, command) {
    if (name === 'change-identities' && (await overtake())) {
      return { kind: 'done', value: { kind: 'conflict' } } as never;
    }
    return must(shards, 'requests come later').execute(envelope, name, command);
  },
  query: async (envelope, name, query) =>
    shards === undefined ? { kind: 'unknown' } : shards.query(envelope, name, query),
};

let world: GatewayWorld;
beforeAll(async () => {
  world = await openGatewayWorld({ deps: { metadata: port } });
  shards = world.metadata.shards;
});
afterAll(async () => {
  await world.close();
  expect(world.faults()).toEqual([]);
});

const call = (Action: string, parameters: Record<string, string> = {}) =>
  callIam({ endpoint: world.endpoint, ...world.root }, { Action, ...parameters });

test('what others have made meanwhile is seen in the next run', async () => {
  let isFirst = true;
  overtake = async () => {
    if (!isFirst) return false;
    isFirst = false;
    await call('CreateUser', { UserName: 'Same' });
    return true;
  };
  expect(await call('CreateUser', { UserName: 'same' })).toMatchObject({
    status: 409,
    code: 'EntityAlreadyExists',
  });
  expect((await call('ListUsers')).texts('UserName')).toEqual(['Same']);
});

test('who is overtaken again and again is told so', async () => {
  let runCount = 0;
  overtake = async () => {
    runCount++;
    return true;
  };
  expect(await call('CreateGroup', { GroupName: 'never' })).toMatchObject({
    status: 409,
    code: 'ConcurrentModification',
  });
  expect(runCount).toBe(12);
  overtake = async () => false;
  expect((await call('ListGroups')).texts('GroupName')).toEqual([]);
  expect((await call('CreateGroup', { GroupName: 'now' })).status).toBe(200);
});

test('actions that were overtaken run again one after the other: of a crowd all are done', async () => {
  const users = Array.from({ length: 40 }, (_, at) => `crowd-${at}`);
  const areAllThere = Promise.withResolvers<void>();
  let runCount = 0;
  let underWay = 0;
  let mostUnderWay = 0;
  overtake = async () => {
    if (++runCount === users.length) areAllThere.resolve();
    if (runCount <= users.length) await areAllThere.promise;
    else {
      mostUnderWay = Math.max(mostUnderWay, ++underWay);
      // A disk takes some time.
      for (let turn = 0; turn < 20; turn++) await nextTurn();
      underWay--;
    }
    return false;
  };
  const answers = await Promise.all(users.map((UserName) => call('CreateUser', { UserName })));
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect([mostUnderWay, runCount]).toEqual([1, 2 * users.length - 1]);
});

test('who was overtaken waits for its turn no longer than a request waits, and then has not run', async () => {
  const clock = createManualClock(0);
  let writeCount = 0;
  const metadata = {
    shardCount: 1,
    query: async () => ({ kind: 'done', value: { revision: 1, rows: [], ranges: [] } }),
    // Both are overtaken; then the shard is silent.
    async execute() {
      if (++writeCount <= 2) return { kind: 'done', value: { kind: 'conflict' } };
      areInLine.resolve();
      return new Promise(() => {});
    },
  } as unknown as MetadataPort;
  const areInLine = Promise.withResolvers<void>();
  const runs: string[] = [];
  const change = (name: string) =>
    withIdentities({ metadata, clock, random: systemRandom }, 'account' as AccountId, async (store) => {
      runs.push(name);
      await store.count('user', { add: 1, max: 10 });
    });
  void change('first');
  const second = change('second').catch((error: AppError) => error.code);
  await areInLine.promise;
  clock.advance(LIMITS.requestWaitMaxMs);
  expect(await second).toBe('ServiceUnavailable');
  expect([writeCount, runs]).toEqual([3, ['first', 'second', 'first']]);
});

test('a user who is renamed meanwhile goes on as itself, and not as who has its name now', async () => {
  await call('CreateUser', { UserName: 'ann' });
  const everything = {
    Version: '2012-10-17',
    Statement: { Effect: 'Allow', Action: 'iam:*', Resource: '*' },
  };
  const PolicyDocument = JSON.stringify(everything);
  await call('PutUserPolicy', { UserName: 'ann', PolicyName: 'all', PolicyDocument });
  const key = await call('CreateAccessKey', { UserName: 'ann' });
  const credentials = {
    accessKey: key.text('AccessKeyId') ?? '',
    secretKey: key.text('SecretAccessKey') ?? '',
  };
  let isFirst = true;
  overtake = async () => {
    if (!isFirst) return false;
    isFirst = false;
    await call('UpdateUser', { UserName: 'ann', NewUserName: 'anna' });
    await call('CreateUser', { UserName: 'ann' });
    return true;
  };
  const own = await callIam(
    { endpoint: world.endpoint, ...world.root },
    { Action: 'CreateAccessKey' },
    { credentials },
  );
  expect([own.status, own.text('UserName')]).toEqual([200, 'anna']);
  expect((await call('ListAccessKeys', { UserName: 'ann' })).texts('AccessKeyId')).toEqual([]);
});
