// A seeded load that knows what it was promised. Several connections write small, chunked and multipart objects, copy,
// overwrite, tag, delete and read them, each on keys of its own, and note what was acknowledged and what was under way.
// After a crash `verify` compares a server with that: each key holds its last acknowledged value, or an outcome of the
// one request that was under way; never anything else, and never a part of it.
// Not here: the kinds of change (load-changes.ts), what is no key (load-things.ts), starting and killing the server (tests/faults/kill.test.ts).
import { Agent } from 'node:http';
import { signRequest } from '../../../src/cli/sign-request.ts';
import { seededNumbers } from '../clients/tree.ts';
import { postForm, signForm } from '../servers/forms.ts';
import { type Access, pathOf, type RawAnswer, send } from '../servers/raw-s3.ts';
import { CHANGES, type KeyState, type Label, labelOf, type Worker, WrongAnswer } from './load-changes.ts';
import { compliantObject } from './load-compliance.ts';
import { growingKey, movingBucket, renamedPrefix } from './load-extensions.ts';
import { ruledBucket } from './load-lifecycle.ts';
import { lockedObject } from './load-locks.ts';
import { sharedObject } from './load-sharing.ts';
import { passingAccount, passingBucket, type Reach, type Thing, versionedKey } from './load-things.ts';

/** Several, so that they live on several shards, and copies go from shard to shard. */
const BUCKETS = ['load-one', 'load-two', 'load-three', 'load-four'];
const VERSIONED_BUCKETS = ['load-five', 'load-six'];
const PASSING_BUCKETS = ['load-passing-one', 'load-passing-two'];
const KEYS_PER_WORKER = 8;
const READ_SHARE = 0.15;

export interface Load {
  /** Makes the buckets, and what things there have to be. */
  prepare(access: Access): Promise<void>;
  /** Runs until every connection has failed; resolves with what the server did wrong before. */
  run(access: Access): Promise<string[]>;
  /** What is wrong with every key and list; what it found is known from then on. */
  verify(access: Access): Promise<string[]>;
  /** Deletes every key of the load and aborts every upload. */
  clear(access: Access): Promise<void>;
  /** Changes and reads by kind. */
  readonly begun: Counts;
  readonly acknowledged: Counts;
}

type Counts = Map<string, number>;

function count(counts: Counts, kind: string): void {
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
}

interface Found {
  label: Label;
  answer: RawAnswer;
}

export function createLoad(options: { seed: string; workerCount: number }): Load {
  const values = new Map<string, () => Buffer>();
  const tally = { begun: new Map<string, number>(), acknowledged: new Map<string, number>() };
  const random = seededNumbers(`load:${options.seed}`);
  const keysOf = (name: string): KeyState[] =>
    Array.from({ length: KEYS_PER_WORKER }, (_, index) => ({
      path: pathOf(BUCKETS[index % BUCKETS.length] ?? '', `${name}/key + ${index} é`),
      possible: new Set([null]),
      possibleTags: new Set([null]),
    }));
  const owned = Array.from({ length: options.workerCount }, (_, index) => {
    const name = `worker ${index}`;
    return { name, keys: keysOf(name), turn: { next: 2 * index, left: CHANGES.length } };
  });
  const things = makeThings(random).map((thing): OwnedThing => ({ thing, possible: undefined }));

  return {
    ...tally,
    async prepare(access) {
      for (const bucket of [...BUCKETS, ...VERSIONED_BUCKETS]) {
        await send(access, { method: 'PUT', path: `/${bucket}` });
      }
      const enabled = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>';
      for (const bucket of VERSIONED_BUCKETS) {
        await send(access, { method: 'PUT', path: `/${bucket}?versioning=`, body: Buffer.from(enabled) });
      }
      const agent = new Agent({ keepAlive: true, maxSockets: 4 });
      for (const { thing } of things) await thing.prepare?.(reachOf(access, agent));
      agent.destroy();
    },
    async run(access) {
      const problems: string[] = [];
      const runs = owned.map(async ({ name, keys, turn }) => {
        const agent = new Agent({ keepAlive: true, maxSockets: 2 });
        const call: Worker['call'] = (wanted) => send(access, { ...wanted, agent });
        try {
          await runWorker({ name, keys, values, random, call }, turn, tally);
        } catch (error) {
          if (error instanceof WrongAnswer) problems.push(error.message);
        } finally {
          agent.destroy();
        }
      });
      const thingRuns = things.map(async (owned) => {
        const agent = new Agent({ keepAlive: true, maxSockets: 2 });
        try {
          await runThing(owned, { reach: reachOf(access, agent), random, tally });
        } catch (error) {
          if (error instanceof WrongAnswer) problems.push(error.message);
        } finally {
          agent.destroy();
        }
      });
      await Promise.all([...runs, ...thingRuns]);
      return problems;
    },
    async verify(access) {
      const agent = new Agent({ keepAlive: true, maxSockets: 8 });
      const keys = owned.flatMap((worker) => worker.keys);
      const problems = await Promise.all(keys.map((key) => verifyKey({ access, agent, key, values })));
      const lists = await Promise.all(BUCKETS.map((bucket) => verifyList({ access, agent, bucket, keys })));
      const reach = reachOf(access, agent);
      const ofThings = await Promise.all(things.map((owned) => verifyThing(owned, reach)));
      agent.destroy();
      return [...problems, ...lists, ...ofThings].flat();
    },
    async clear(access) {
      const paths = owned.flatMap(({ keys }) => keys.map(({ path }) => path));
      for (const path of paths) await send(access, { method: 'DELETE', path });
      for (const bucket of [...BUCKETS, ...PASSING_BUCKETS]) await abortUploads(access, bucket);
      const agent = new Agent({ keepAlive: true, maxSockets: 2 });
      for (const { thing } of things) await thing.clear(reachOf(access, agent));
      agent.destroy();
    },
  };
}

interface OwnedThing {
  thing: Thing;
  /** What a read may find; undefined until it was read once. */
  possible: Set<string> | undefined;
}

/** One connection each. */
function makeThings(random: () => number): Thing[] {
  return [
    ...VERSIONED_BUCKETS.flatMap((bucket) => [versionedKey(bucket, 'a'), versionedKey(bucket, 'b')]),
    ...PASSING_BUCKETS.map(passingBucket),
    ...['load-shared-one', 'load-shared-two'].map(sharedObject),
    compliantObject('load-compliant'),
    lockedObject('load-locked'),
    ruledBucket('load-ruled'),
    ...BUCKETS.slice(0, 2).map((bucket) => growingKey(bucket, 'growing')),
    renamedPrefix({ bucket: BUCKETS[2] ?? '', name: 'renamed', keepsVersions: false, random }),
    renamedPrefix({ bucket: VERSIONED_BUCKETS[1] ?? '', name: 'renamed', keepsVersions: true, random }),
    movingBucket('load-moving', VERSIONED_BUCKETS[0] ?? ''),
    ...['load-account-one', 'load-account-two'].map(passingAccount),
  ];
}

function reachOf(access: Access, agent: Agent): Reach {
  const nowMs = () => access.nowMs?.() ?? Date.now();
  return {
    s3: (wanted) => send(access, { ...wanted, agent }),
    async form(bucket, key, file) {
      const { status, body } = await postForm(access, bucket, {
        fields: signForm(access, bucket, [['key', key]]),
        file,
      });
      if (status !== 204) throw new WrongAnswer(`POST /${bucket}: ${status} ${body}`);
    },
    nowMs,
    async operator(method, path, json) {
      const url = new URL(`/holdfast-admin/v1${path}`, access.endpoint);
      const body = json === undefined ? '' : JSON.stringify(json);
      const message = { method, host: url.host, path: url.pathname, body };
      const wanted = { ...message, credentials: access, nowMs: nowMs() };
      const { host: _, ...headers } = signRequest(wanted);
      const answer = await fetch(url, { method, headers, ...(body !== '' && { body }) });
      const text = await answer.text();
      return { status: answer.status, json: text === '' ? {} : JSON.parse(text) };
    },
  };
}

/** As runWorker does with keys. */
async function runThing(
  owned: OwnedThing,
  how: { reach: Reach; random: () => number; tally: Pick<Load, 'begun' | 'acknowledged'> },
): Promise<never> {
  const { thing } = owned;
  const { reach, random, tally } = how;
  for (;;) {
    const [state = await thing.read(reach)] = owned.possible ?? [];
    const change = thing.change(state, random);
    owned.possible = new Set([state, change.next]);
    count(tally.begun, change.kind);
    await change.send(reach);
    owned.possible = new Set([change.next]);
    count(tally.acknowledged, change.kind);
  }
}

async function verifyThing(owned: OwnedThing, reach: Reach): Promise<string[]> {
  const { thing, possible } = owned;
  const found = await thing.read(reach);
  owned.possible = new Set([found]);
  if (possible === undefined || possible.has(found)) return [];
  return [`${thing.name}: is "${found}" instead of "${[...possible].join('" | "')}"`];
}

/** Each worker makes every change once, beginning with another one than the others; then as chance has it. */
interface Turn {
  next: number;
  left: number;
}

const chance = (worker: Worker) => Math.floor(worker.random() * CHANGES.length);

/** Throws when the connection fails, leaving what was under way among the possible values of its keys. */
async function runWorker(
  worker: Worker,
  turn: Turn,
  tally: Pick<Load, 'begun' | 'acknowledged'>,
): Promise<never> {
  for (;;) {
    const key = worker.keys[Math.floor(worker.random() * worker.keys.length)];
    const make = turn.left-- > 0 ? CHANGES[turn.next++ % CHANGES.length] : CHANGES[chance(worker)];
    if (key === undefined || make === undefined) continue;
    if (worker.random() < READ_SHARE) {
      count(tally.begun, 'read');
      const answer = await worker.call({ method: 'GET', path: key.path });
      const problem = compareValue({ key, answer, values: worker.values });
      if (problem !== undefined) throw new WrongAnswer(problem);
      count(tally.acknowledged, 'read');
      continue;
    }
    const change = make(worker, key);
    for (const { key: changed, label, tag = null } of change.outcomes) {
      changed.possible.add(label);
      changed.possibleTags.add(tag);
    }
    count(tally.begun, change.kind);
    await change.send();
    for (const { key: changed, label, tag = null } of change.outcomes) {
      changed.possible = new Set([label]);
      changed.possibleTags = new Set([tag]);
    }
    count(tally.acknowledged, change.kind);
  }
}

function foundIn(answer: RawAnswer): Found {
  const label = answer.headers['x-amz-meta-label'];
  return { answer, label: answer.status === 404 ? null : decodeURIComponent(String(label)) };
}

/** What is wrong with the answer to a GET of a key, if anything. */
function compareValue(options: {
  key: KeyState;
  answer: RawAnswer;
  values: Worker['values'];
}): string | undefined {
  const { key, answer } = options;
  const { label } = foundIn(answer);
  const wanted = [...key.possible].join(' | ');
  if (answer.status !== 200 && answer.status !== 404)
    return `${key.path}: status ${answer.status} ${answer.body}`;
  if (!key.possible.has(label)) return `${key.path}: holds "${label}" instead of "${wanted}"`;
  if (label === null) return undefined;
  const bytes = options.values.get(label)?.();
  return bytes?.equals(answer.body) === true
    ? undefined
    : `${key.path}: other bytes than those of "${label}"`;
}

async function verifyKey(options: {
  access: Access;
  agent: Agent;
  key: KeyState;
  values: Worker['values'];
}): Promise<string[]> {
  const { access, agent, key } = options;
  const answer = await send(access, { method: 'GET', path: key.path, agent });
  const problem = compareValue({ key, answer, values: options.values });
  key.possible = new Set([foundIn(answer).label]);
  const tags = await send(access, { method: 'GET', path: `${key.path}?tagging=`, agent });
  const tag = elements(tags.body, 'Value')[0] ?? null;
  const isKnown = key.possibleTags.has(tag);
  const wanted = [...key.possibleTags].join(' | ');
  key.possibleTags = new Set([tag]);
  if (problem !== undefined) return [problem];
  return isKnown ? [] : [`${key.path}: has the tag "${tag}" instead of "${wanted}"`];
}

/** The list of a bucket names exactly the keys that are there, each as HEAD describes it. */
async function verifyList(options: {
  access: Access;
  agent: Agent;
  bucket: string;
  keys: readonly KeyState[];
}): Promise<string[]> {
  const { access, agent, bucket } = options;
  const wanted = await Promise.all(
    options.keys
      .filter((key) => key.path.startsWith(`/${bucket}/`) && labelOf(key) !== null)
      .map(async ({ path }) => {
        const { headers } = await send(access, { method: 'HEAD', path, agent });
        const name = decodeURIComponent(path.slice(bucket.length + 2));
        return `${name} ${headers['content-length']} ${headers.etag}`;
      }),
  );
  const { body } = await send(access, { method: 'GET', path: `/${bucket}?list-type=2&prefix=worker`, agent });
  const found = elements(body, 'Contents').map((entry) => {
    const [name, size, etag] = ['Key', 'Size', 'ETag'].map((tag) => elements(Buffer.from(entry), tag)[0]);
    return `${name} ${size} ${etag?.replaceAll('&quot;', '"')}`;
  });
  const [a, b] = [wanted.sort().join('\n'), found.sort().join('\n')];
  return a === b ? [] : [`the list of ${bucket} is\n${b}\nand HEAD says\n${a}`];
}

/** The content of every element of this name; the names in these documents nest nowhere in themselves. */
function elements(xml: Buffer, name: string): string[] {
  return [...xml.toString().matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'gs'))].map(
    (match) => match[1] ?? '',
  );
}

async function abortUploads(access: Access, bucket: string): Promise<void> {
  const uploads = await send(access, { method: 'GET', path: `/${bucket}?uploads=` });
  for (const upload of elements(uploads.body, 'Upload')) {
    const [name = '', id = ''] = ['Key', 'UploadId'].map((tag) => elements(Buffer.from(upload), tag)[0]);
    const path = `${pathOf(bucket, name)}?uploadId=${encodeURIComponent(id)}`;
    await send(access, { method: 'DELETE', path });
  }
}
