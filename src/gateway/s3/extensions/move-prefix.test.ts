// Answers to MOVE of a prefix whose gateway does not bring it to its end, and to those who ask again.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../../tests/support/objects/gateway-world.ts';
import { type RawAnswer, send } from '../../../../tests/support/servers/raw-s3.ts';
import { childOf, childrenOf, parseXml, textOf, type XmlElement } from '../../../base/xml/parse-xml.ts';
import { systemClock } from '../../../platform/system-clock.ts';
import type { ClockPort } from '../../../ports/clock.ts';
import type { MetadataPort } from '../../../ports/metadata/port.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { BucketId, BucketName } from '../../../types/names.ts';
import { createMovePlaces, type MovePlaces } from './move-places.ts';
import { movePrefix } from './move-prefix.ts';

let world: GatewayWorld;
let failing: GatewayWorld;
/** The answers to steps of the failing gateway. */
let stepReply: 'none' | 'unknown' | 'busy' = 'none';
let isFullOfJobs = false;
/** Somebody else makes each step before it. */
let isOvertaken = false;
/** No job that has ended is kept for it. */
let isForgotten = false;
/** The answers to the failing gateway's next look-ups of a job, and their number. */
let lookReplies: ('unknown' | 'busy')[] = [];
beforeAll(async () => {
  world = await openGatewayWorld();
  const { metadata, keyring, store } = world;
  const { shards } = metadata;
  const execute: MetadataPort['execute'] = async (envelope, name, command) => {
    if (name === 'step-move' && stepReply !== 'none') return { kind: stepReply };
    if (name === 'begin-move' && isFullOfJobs) {
      return { kind: 'done', value: { kind: 'too-many-jobs' }, timeMs: 0 } as never;
    }
    if (name === 'step-move' && isOvertaken) await shards.execute({ shard: envelope.shard }, name, command);
    return shards.execute(envelope, name, command);
  };
  const port: MetadataPort = {
    shardCount: shards.shardCount,
    execute,
    async query(envelope, name, query) {
      const failed = name === 'get-job' ? lookReplies.shift() : undefined;
      if (failed !== undefined) return { kind: failed };
      const reply = await shards.query(envelope, name, query);
      return name === 'get-job' && isForgotten ? ({ ...reply, value: { job: null } } as never) : reply;
    },
  };
  failing = await openGatewayWorld({ deps: { metadata: port, objects: store, keyring } });
});
afterAll(async () => {
  await Promise.all([world.close(), failing.close()]);
  expect([...world.faults(), ...failing.faults()]).toEqual([]);
});

async function setUp(bucket: string) {
  const owner = await world.makeAccount(`owner of ${bucket}`);
  const ask = (gateway: GatewayWorld, line: string, headers: Record<string, string> = {}) => {
    const [method = '', path = ''] = line.split(' ');
    const body = method === 'PUT' ? Buffer.from('x') : undefined;
    return send({ ...owner, endpoint: gateway.endpoint }, { method, path, headers, ...(body && { body }) });
  };
  const made = await send({ ...owner, endpoint: world.endpoint }, { method: 'PUT', path: `/${bucket}` });
  expect(made.status).toBe(200);
  for (const key of ['a/1', 'a/2', 'a/3', 'b/3']) await ask(world, `PUT /${bucket}/${key}`);
  const move = async (gateway: GatewayWorld, token: string | undefined = 'once') => {
    const headers = {
      destination: 'b/',
      'x-svc-prefix': 'true',
      ...(token !== '' && { 'x-svc-idempotency-token': token }),
    };
    const answer = await ask(gateway, `MOVE /${bucket}/a/`, headers);
    expect(answer.status).toBe(200);
    return parseXml(answer.body, { depthMax: 8 });
  };
  return { ask, move };
}

test.each(['unknown', 'busy'] as const)(
  'a shard that answers %s ends the document with an error; who asks again brings the job to its end',
  async (reply) => {
    const { move } = await setUp(`moves-${reply}`);
    stepReply = reply;
    const broken = await move(failing);
    const [error] = childrenOf(broken, 'Error');
    expect(error && textOf(error, 'Code')).toBe(reply === 'busy' ? 'SlowDown' : 'ServiceUnavailable');
    expect(textOf(broken, 'MoveCount')).toBe('0');
    stepReply = 'none';
    const again = await move(world);
    const entries = childrenOf(again, 'MoveObject').map((entry) => textOf(entry, 'SourceKey'));
    expect([entries, textOf(again, 'MoveCount')]).toEqual([['a/3'], '2']);
    const third = await move(failing);
    expect(third).toEqual(again);
  },
);

test.each(['unknown', 'busy'] as const)(
  'a shard that answers %s to the look at the end of a job: what moved is told first, then its count, or why there is none',
  async (reply) => {
    const entriesOf = (answer: XmlElement) =>
      childrenOf(answer, 'MoveObject').map((entry) => textOf(entry, 'SourceKey'));
    lookReplies = [reply];
    const { move } = await setUp(`moves-look-${reply}`);
    const whole = await move(failing);
    expect(lookReplies).toEqual([]);
    expect([entriesOf(whole), textOf(whole, 'MoveCount')]).toEqual([['a/1', 'a/2', 'a/3'], '2']);
    expect(childrenOf(whole, 'Error')).toEqual([]);

    lookReplies = [reply, reply];
    const other = await setUp(`moves-looks-${reply}`);
    const broken = await other.move(failing);
    expect(lookReplies).toEqual([]);
    const [error] = childrenOf(broken, 'Error');
    expect(error && textOf(error, 'Code')).toBe(reply === 'busy' ? 'SlowDown' : 'ServiceUnavailable');
    expect([entriesOf(broken), textOf(broken, 'MoveCount')]).toEqual([['a/1', 'a/2', 'a/3'], '2']);
  },
);

test('errors that another driver met are reported to the request that it overtook', async () => {
  const { move } = await setUp('moves-overtaken');
  isOvertaken = true;
  const answer = await move(failing);
  isOvertaken = false;
  const entries = childrenOf(answer, 'MoveObject').map((entry) => textOf(entry, 'SourceKey'));
  expect([entries, textOf(answer, 'MoveCount')]).toEqual([['a/3'], '2']);
});

test('errors beyond those that a job stores are reported by number, and by name to the request that met them', async () => {
  const { ask, move } = await setUp('moves-many');
  const count = LIMITS.moveErrorsUnderTokenMax + 20;
  const names = Array.from({ length: count }, (_, at) => `many-${String(at).padStart(4, '0')}`);
  for (const name of names)
    for (const prefix of ['a', 'b']) await ask(world, `PUT /moves-many/${prefix}/${name}`);
  const told = (answer: XmlElement) => ({
    errorCount: childrenOf(answer, 'MoveObject').filter((entry) => childOf(entry, 'Error')).length,
    unlisted: textOf(answer, 'UnlistedErrorCount'),
    moved: textOf(answer, 'MoveCount'),
  });
  // a/3 is in use, too.
  expect(told(await move(world))).toEqual({ errorCount: count + 1, unlisted: undefined, moved: '2' });
  const kept = { errorCount: LIMITS.moveErrorsUnderTokenMax, unlisted: '21' };
  expect(told(await move(world))).toEqual({ ...kept, moved: '2' });
  isOvertaken = true;
  const overtaken = await move(failing, 'again');
  isOvertaken = false;
  expect(told(overtaken)).toEqual({ ...kept, moved: '0' });
  // Without a token the job keeps more.
  isOvertaken = true;
  const tokenless = await move(failing, '');
  isOvertaken = false;
  expect(told(tokenless)).toEqual({ errorCount: count + 1, unlisted: undefined, moved: '0' });
});

test('after others ended and forgot the job its errors are unknown, and the answer says so', async () => {
  const { move } = await setUp('moves-forgotten');
  isOvertaken = true;
  isForgotten = true;
  const answer = await move(failing, '');
  isOvertaken = false;
  isForgotten = false;
  const [error] = childrenOf(answer, 'Error');
  expect(error && textOf(error, 'Code')).toBe('ServiceUnavailable');
});

type Asked = ['execute' | 'query', name: string, requestId: string];

/** A request to this gateway without a connection: its document can be read as slowly as a test likes. */
async function requestOf(
  bucket: string,
  requestId: string,
  asked: Asked[],
  more: {
    movePlaces?: MovePlaces;
    signal?: AbortSignal;
    mayAsk?: () => Promise<void>;
    clock?: Pick<ClockPort, 'monotonicMs' | 'sleep'>;
  } = {},
) {
  const { shards } = world.metadata;
  const found = await world.metadata.query('find-name', { name: bucket as BucketName });
  const { homeShard = 0, bucketId = '' as BucketId } = found.record ?? {};
  const context = {
    requestId,
    bucket: () => ({ homeShard, believed: { bucketId, name: bucket, cfgVersion: 1 } }),
    metadata: {
      execute(...call: Parameters<typeof shards.execute>) {
        asked.push(['execute', call[1], requestId]);
        return shards.execute(...call);
      },
      async query(...call: Parameters<typeof shards.query>) {
        asked.push(['query', call[1], requestId]);
        await more.mayAsk?.();
        return shards.query(...call);
      },
    },
    signal: () => more.signal ?? new AbortController().signal,
    movePlaces: more.movePlaces ?? createMovePlaces(),
    hasCompany: () => true,
    clock: { ...systemClock, sleep: () => new Promise<void>(setImmediate), ...more.clock },
    record: { item() {} },
  };
  const move = { from: 'a/', to: 'b/', overwrites: false, isQuiet: false };
  return async (token?: string) => {
    const { body } = await movePrefix(
      context as never,
      { ...move, token: token === undefined ? undefined : { token, digest: 'd' } } as never,
    );
    if (body?.kind !== 'xml-stream') throw new Error('no stream');
    return body.texts[Symbol.asyncIterator]() as AsyncGenerator<string, void>;
  };
}

async function restOf(texts: AsyncGenerator<string, void>): Promise<string> {
  let text = '';
  for await (const piece of texts) text += piece;
  return text;
}

test("a job's errors are read before the client delays the answer with the last of its keys", async () => {
  await setUp('moves-slowly');
  const asked: Asked[] = [];
  const texts = await (await requestOf('moves-slowly', 'first', asked))();
  let text = '';
  for await (const piece of texts) {
    text += piece;
    if (piece.includes('a/1')) expect(asked.map(([, name]) => name)).toContain('get-job');
  }
  expect(text).toContain('<MoveCount>2</MoveCount>');
  expect(asked.filter(([, name]) => name === 'get-job')).toHaveLength(1);
});

describe('a request whose client pauses between two steps', () => {
  const many = 3 * LIMITS.moveKeysBesideOthersMax;

  /** Up to the first step's keys. */
  async function begin(bucket: string, asked: Asked[]) {
    const owner = await world.makeAccount(`owner of ${bucket}`);
    const sent = { ...owner, endpoint: world.endpoint };
    expect((await send(sent, { method: 'PUT', path: `/${bucket}` })).status).toBe(200);
    const names = Array.from({ length: many }, (_, at) => String(at).padStart(4, '0'));
    const body = Buffer.from('x');
    await Promise.all(names.map((name) => send(sent, { method: 'PUT', path: `/${bucket}/a/${name}`, body })));
    const first = await (await requestOf(bucket, 'first', asked))('once');
    let text = '';
    while (!text.includes('<MoveObject>')) text += (await first.next()).value;
    return { first, text };
  }

  test('keeps its job: a repeated request waits for the end and takes no step', async () => {
    const asked: Asked[] = [];
    const { first, text } = await begin('moves-repeated', asked);
    const repeated = restOf(await (await requestOf('moves-repeated', 'second', asked))('once'));
    const looks = () => asked.filter(([, name, by]) => by === 'second' && name === 'get-job').length;
    while (looks() < 10) await new Promise(setImmediate);
    const whole = text + (await restOf(first));
    expect(whole.split('<MoveObject>')).toHaveLength(many + 1);
    expect(whole).toContain(`<MoveCount>${many}</MoveCount>`);
    expect(await repeated).toContain(`<MoveCount>${many}</MoveCount>`);
    expect(asked.filter(([, name, by]) => by === 'second' && name === 'step-move')).toEqual([]);
  });

  test('and disconnects: a repeated request continues the job at once', async () => {
    const asked: Asked[] = [];
    const { first } = await begin('moves-left', asked);
    await first.return();
    expect(asked.at(-1)).toEqual(['execute', 'hold-move', 'first']);
    const repeated = restOf(await (await requestOf('moves-left', 'second', asked))('once'));
    expect(await repeated).toContain(`<MoveCount>${many}</MoveCount>`);
    expect(asked.filter(([, name, by]) => by === 'second' && name === 'step-move')).not.toEqual([]);
  });
});

test('of the MOVEs of one account a few make a step at once, and the others wait; those of other accounts do not', async () => {
  const names = ['moves-crowd', 'moves-beside'];
  await Promise.all(names.map(setUp));
  const asked: Asked[] = [];
  const answers = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const shared = { movePlaces: createMovePlaces(), mayAsk: () => answers.promise };
  const begin = async (bucket: string, name: string, signal?: AbortSignal) =>
    restOf(await (await requestOf(bucket, name, asked, { ...shared, ...(signal && { signal }) }))());
  const ofCrowd = Array.from({ length: 11 }, (_, at) => begin('moves-crowd', `crowd ${at}`));
  const left = expect(begin('moves-crowd', 'leaves', leaving.signal)).rejects.toThrow();
  const beside = begin('moves-beside', 'beside');
  const looks = () => asked.filter(([, name]) => name === 'find-moves').map(([, , by]) => by);
  await vi.waitFor(() => expect(looks()).toContain('beside'));
  expect(looks().filter((by) => by.startsWith('crowd'))).toHaveLength(8);
  // Who waits for a place and leaves gives up its job at once.
  leaving.abort();
  await left;
  expect(asked.at(-1)).toEqual(['execute', 'hold-move', 'leaves']);
  answers.resolve();
  const texts = await Promise.all([beside, ...ofCrowd]);
  const moved = texts.map((text) => text.match(/<MoveCount>(\d+)/)?.[1]).map(Number);
  expect([moved[0], moved.reduce((sum, count) => sum + count)]).toEqual([2, 4]);
});

test('a step that has waited for its place is followed by a rest for its work alone', async () => {
  const { ask } = await setUp('moves-waiting');
  const names = Array.from({ length: LIMITS.moveKeysBesideOthersMax }, (_, at) => `more-${at}`);
  await Promise.all(names.map((name) => ask(world, `PUT /moves-waiting/a/${name}`)));
  let nowMs = 0;
  const slept: number[] = [];
  const clock = {
    monotonicMs: () => nowMs,
    sleep(ms: number) {
      slept.push(ms);
      return new Promise<void>(setImmediate);
    },
  };
  let underWay = 0;
  const movePlaces: MovePlaces = {
    async within(_owner, _signal, call) {
      if (underWay++ === 0) nowMs += 5000;
      return call().finally(() => underWay--);
    },
  };
  await restOf(await (await requestOf('moves-waiting', 'first', [], { clock, movePlaces }))());
  expect(new Set(slept)).toEqual(new Set([LIMITS.jobHoldMs]));
});

describe('a key with more versions than one entry may hold', () => {
  const count = 40;
  const token = { 'x-svc-idempotency-token': 'once' };
  const limits = LIMITS as { moveVersionsMax: number; moveStepVersionsMax: number };
  const { moveVersionsMax, moveStepVersionsMax } = LIMITS;
  // Small ones, so that few versions are too many.
  beforeAll(() => void Object.assign(limits, { moveVersionsMax: 10, moveStepVersionsMax: 7 }));
  afterAll(() => void Object.assign(limits, { moveVersionsMax, moveStepVersionsMax }));

  async function prepare(bucket: string) {
    const owner = await world.makeAccount(`owner of ${bucket}`);
    const ask = (method: string, key: string, headers: Record<string, string> = {}) => {
      const path = `/${bucket}${key}`;
      return send({ ...owner, endpoint: world.endpoint }, { method, path, headers });
    };
    expect((await ask('PUT', '')).status).toBe(200);
    const { record } = await world.metadata.query('find-name', { name: bucket as BucketName });
    const { bucketId = '' as BucketId, homeShard = 0 } = record ?? {};
    const enabled = { bucketId, kind: 'versioning', document: { status: 'enabled' } } as const;
    await world.metadata.execute('set-bucket-config', enabled, homeShard);
    for (let put = 0; put < count; put++) expect((await ask('PUT', '/old')).status).toBe(200);
    const versions = async () => {
      const page = { bucketId, prefix: '', max: 100 };
      return (await world.metadata.query('list-versions', page, homeShard)).versions;
    };
    return { ask, versions };
  }

  const told = (body: Buffer) => {
    const root = parseXml(body, { depthMax: 8 });
    const ids = childrenOf(root, 'MoveObject').map((entry) => textOf(entry, 'VersionId'));
    return { ids, moveCount: textOf(root, 'MoveCount') };
  };

  test('moves with all of them, is reported like others, and is repeated by its count', async () => {
    const { versions, ask } = await prepare('large-key');
    const ids: string[] = (await versions()).map(({ versionId }) => versionId);
    const headers = { destination: 'new', ...token };
    const moved = await ask('MOVE', '/old', headers);
    expect(moved.status).toBe(200);
    expect(told(moved.body)).toEqual({ ids, moveCount: String(count) });
    expect(moved.body.toString()).not.toContain('SourcePrefix');
    expect((await versions()).map(({ key, versionId }) => `${key} ${versionId}`)).toEqual(
      ids.map((id) => `new ${id}`),
    );
    expect(told((await ask('MOVE', '/old', headers)).body)).toEqual({ ids: [], moveCount: String(count) });
    const other = await ask('MOVE', '/old', { destination: 'other', ...token });
    expect([other.status, other.body.toString()]).toEqual([
      400,
      expect.stringContaining('IdempotencyParameterMismatch'),
    ]);
  });

  test('gets the same errors as other keys', async () => {
    const { ask } = await prepare('large-kept');
    expect((await ask('PUT', '/new')).status).toBe(200);
    const exists = await ask('MOVE', '/old', { destination: 'new' });
    expect([exists.status, exists.body.toString()]).toEqual([
      409,
      expect.stringContaining('ObjectAlreadyExists'),
    ]);
    const failed = await ask('MOVE', '/old', { destination: 'other', 'if-none-match': '*' });
    expect(failed.status).toBe(412);
  });

  test('refuses writes to both keys until it has moved completely, and a repeated request waits', async () => {
    const { versions, ask } = await prepare('large-held');
    const headers = { destination: 'new', ...token };
    const { isFinished, moved } = await pausedMove(() => ask('MOVE', '/old', headers));
    for (const key of ['/old', '/new']) {
      const put = await ask('PUT', key);
      expect([put.status, put.body.toString()]).toEqual([409, expect.stringContaining('OperationAborted')]);
    }
    const repeated = ask('MOVE', '/old', headers);
    isFinished();
    expect(told((await moved).body).moveCount).toBe(String(count));
    expect(told((await repeated).body)).toEqual({ ids: [], moveCount: String(count) });
    expect((await ask('PUT', '/old')).status).toBe(200);
    const ofNew = (await versions()).filter(({ key }) => key === 'new');
    expect(ofNew).toHaveLength(count);
  });

  /** Its first entry has been made, and the others wait. */
  async function pausedMove(begin: () => Promise<RawAnswer>) {
    const { shards } = world.metadata;
    const { execute } = shards;
    const finish = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    shards.execute = async (envelope, name, command) => {
      if (name === 'step-key-move') {
        begun.resolve();
        await finish.promise;
      }
      return execute(envelope, name, command);
    };
    const moved = begin();
    await begun.promise;
    const isFinished = () => {
      shards.execute = execute;
      finish.resolve();
    };
    return { isFinished, moved };
  }
});

test('a repeated request waits for the end of the one under way', async () => {
  const { move } = await setUp('moves-twice');
  const [first, second] = await Promise.all([move(world), move(world)]);
  const counts = [first, second].map((answer) => textOf(answer, 'MoveCount'));
  expect(counts).toEqual(['2', '2']);
  const moved = [first, second].map((answer) => childrenOf(answer, 'MoveObject').length);
  // One of them began it and lists all that it moved itself; the other lists errors.
  expect(Math.min(...moved)).toBe(1);
});

test('a shard with the maximum of jobs: 503 before anything is begun', async () => {
  const { ask } = await setUp('moves-full');
  isFullOfJobs = true;
  const headers = { destination: 'b/', 'x-svc-prefix': 'true' };
  const answer = await ask(failing, 'MOVE /moves-full/a/', headers);
  expect([answer.status, textOf(parseXml(answer.body, { depthMax: 4 }), 'Code')]).toEqual([503, 'SlowDown']);
});
