// What the load (load.ts) does beyond S3: an object that is appended to, composed of itself and renamed, a prefix that is
// renamed, and a bucket that is renamed and deleted with all that is in it. Things, as those of load-things.ts.
import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS } from '../../../src/types/limits.ts';
import type { RawAnswer, RawRequest } from '../servers/raw-s3.ts';
import { WrongAnswer } from './load-changes.ts';
import type { Reach, Thing, ThingChange } from './load-things.ts';
import { succeedThing as succeed } from './load-things.ts';
import { type PrefixOptions, RenamedPrefix } from './renamed-prefix.ts';

const ABSENT = 'absent';
const ID_LENGTH = 8;
const PIECES_MAX = 20;
/** As compose counts them: twice as many are still few enough. */
const DOUBLED_MAX = 8;

/** State: under which of its two names it is, and the pieces that it is made of, which are its bytes. */
export function growingKey(bucket: string, key: string): Thing {
  const paths = { one: `/${bucket}/${key}-one`, two: `/${bucket}/${key}-two` } as const;
  let written = 0;
  const newPiece = () => String(++written).padStart(ID_LENGTH, '0');
  const put = (): ThingChange => {
    const piece = newPiece();
    return {
      kind: 'begin a growing object',
      next: `one ${piece}`,
      async send(reach) {
        await succeed(reach, { method: 'PUT', path: paths.one, body: Buffer.from(piece) });
      },
    };
  };
  return {
    name: `/${bucket}/${key}`,
    async read(reach) {
      const found: string[] = [];
      for (const [name, path] of Object.entries(paths)) {
        const { status, body } = await reach.s3({ method: 'GET', path });
        if (status !== 404) found.push(status === 200 ? `${name} ${body}` : `status ${status}`);
      }
      return found.length === 0 ? ABSENT : found.join(' and ');
    },
    change(state, random) {
      if (state === ABSENT) return put();
      const [name = '', text = ''] = state.split(' ');
      const [path, other] = name === 'one' ? [paths.one, 'two'] : [paths.two, 'one'];
      const pieceCount = text.length / ID_LENGTH;
      const drawn = random();
      if (pieceCount > PIECES_MAX) {
        const send = async (reach: Reach) => void (await succeed(reach, { method: 'DELETE', path }));
        return { kind: 'delete a growing object', next: ABSENT, send };
      }
      if (drawn < 0.4) {
        const headers = { destination: (other === 'one' ? paths.one : paths.two).slice(bucket.length + 2) };
        return {
          kind: 'move',
          next: `${other} ${text}`,
          send: async (reach) =>
            void (await succeed(reach, { method: 'MOVE', path, headers }, '<MoveCount>1<')),
        };
      }
      if (drawn < 0.6 && pieceCount <= DOUBLED_MAX) {
        const component = `<Component><Key>${path.slice(bucket.length + 2)}</Key></Component>`;
        const body = Buffer.from(`<ComposeRequest>${component}${component}</ComposeRequest>`);
        return {
          kind: 'compose',
          next: `${name} ${text}${text}`,
          send: async (reach) =>
            void (await succeed(reach, { method: 'PUT', path: `${path}?compose=`, body })),
        };
      }
      const piece = newPiece();
      const body = Buffer.from(piece);
      return {
        kind: 'append',
        next: `${name} ${text}${piece}`,
        send: async (reach) => void (await succeed(reach, { method: 'PUT', path: `${path}?append=`, body })),
      };
    },
    async clear(reach) {
      for (const path of Object.values(paths)) await succeed(reach, { method: 'DELETE', path });
    },
  };
}

const REPEATED_SHARE = 0.2;
/** Of a job that nobody drives until the shard's own node does (LIMITS.jobStallTimeoutMs). */
const DRIVEN_WITHIN_MS = 180_000;

/** State: where all of it is. Who reads it brings a rename that was cut short to its end. */
export function renamedPrefix(options: PrefixOptions): Thing {
  const { bucket, name, keepsVersions } = options;
  const prefix = new RenamedPrefix(options);
  const kind = (what: string) => (keepsVersions ? `${what} of versions` : what);
  /** By the clock of who did it. */
  let renamedAtMs = 0;
  return {
    name: `/${bucket}/${name}/`,
    prepare: (reach) => prefix.fill(reach.s3),
    async read(reach) {
      try {
        // Under a token that is forgotten it would be done a second time.
        const isLate = reach.nowMs() - renamedAtMs >= LIMITS.idempotencyTokenKeptMs;
        if (isLate && prefix.isPending) {
          await untilJobsEnd(reach, bucket);
          await prefix.find(reach.s3);
        }
        await prefix.compare(reach.s3);
        return prefix.place;
      } catch (error) {
        if (error instanceof WrongAnswer) return error.message;
        throw error;
      }
    },
    change(state, random) {
      if (prefix.wasRenamed && random() < REPEATED_SHARE)
        return { kind: kind('repeat a prefix move'), next: state, send: (reach) => prefix.repeat(reach.s3) };
      const next = prefix.drawPlace(random);
      return {
        kind: kind('prefix move'),
        next,
        send(reach) {
          renamedAtMs = reach.nowMs();
          return prefix.rename(reach.s3, next);
        },
      };
    },
    clear: (reach) => prefix.clear(reach.s3),
  };
}

/** Until no prefix of the bucket is being renamed by any client. */
async function untilJobsEnd(reach: Reach, bucket: string): Promise<void> {
  const endMs = Date.now() + DRIVEN_WITHIN_MS;
  for (;;) {
    const { json } = await reach.operator('GET', '/jobs');
    const { jobs } = json as { jobs: { kind: string; bucket: string; state: string }[] };
    const isOfIt = (job: (typeof jobs)[number]) => job.kind === 'move-prefix' && job.bucket === bucket;
    if (!jobs.some((job) => isOfIt(job) && job.state === 'under-way')) return;
    if (Date.now() > endMs) throw new WrongAnswer(`a prefix of ${bucket} is renamed by nobody`);
    await sleep(ASK_AGAIN_MS);
  }
}

/** Of a deletion or rename that a crash has cut short, until it has been brought to its end (LIMITS.jobStallTimeoutMs). */
const SETTLED_WITHIN_MS = 180_000;
const ASK_AGAIN_MS = 200;

/** The last answer that is no OperationAborted: what is under way is waited for, as clients are told to. */
async function persist(reach: Reach, wanted: RawRequest): Promise<RawAnswer> {
  const endMs = Date.now() + SETTLED_WITHIN_MS;
  for (;;) {
    const answer = await reach.s3(wanted);
    const isUnderWay = answer.status === 409 && answer.body.includes('OperationAborted');
    if (!isUnderWay || Date.now() > endMs) return answer;
    await sleep(ASK_AGAIN_MS);
  }
}

/** As `succeed`, once nothing else is under way. */
async function doIt(reach: Reach, wanted: RawRequest): Promise<void> {
  const persistent = { ...reach, s3: (request: RawRequest) => persist(reach, request) };
  await succeed(persistent, wanted);
}

/** State: the name that it bears. `inUse`: a bucket of the same owner. */
export function movingBucket(bucket: string, inUse: string): Thing {
  const names = [bucket, `${bucket}-too`];
  return {
    name: `moving bucket ${bucket}`,
    async read(reach) {
      const found: string[] = [];
      for (const name of names) {
        // Asked for a name that is in use: what was cut short is at its end when nothing else stands in the way.
        const wanted = { method: 'MOVE', path: `/${name}`, headers: { destination: inUse } };
        const { status, body } = await persist(reach, wanted);
        if (status === 404) continue;
        found.push(body.includes('BucketAlreadyOwnedByYou') ? name : `status ${status}`);
      }
      return found.length === 0 ? ABSENT : found.join(' and ');
    },
    change(state, random) {
      if (state === ABSENT) {
        const wanted = { method: 'PUT', path: `/${bucket}` };
        return { kind: 'make', next: bucket, send: (reach) => doIt(reach, wanted) };
      }
      const drawn = random();
      if (drawn < 0.4) {
        const wanted = {
          method: 'PUT',
          path: `/${state}/${Math.floor(drawn * 100)}`,
          body: Buffer.from('filled'),
        };
        return { kind: 'fill', next: state, send: (reach) => doIt(reach, wanted) };
      }
      if (drawn < 0.7) {
        const wanted = { method: 'DELETE', path: `/${state}?force_delete=true` };
        return {
          kind: 'force delete',
          next: ABSENT,
          send: (reach) => doIt(reach, wanted),
        };
      }
      const next = state === bucket ? `${bucket}-too` : bucket;
      const wanted = { method: 'MOVE', path: `/${state}`, headers: { destination: next } };
      return { kind: 'rename bucket', next, send: (reach) => doIt(reach, wanted) };
    },
    async clear(reach) {
      for (const name of names) {
        const { status } = await reach.s3({ method: 'HEAD', path: `/${name}` });
        if (status === 200) await succeed(reach, { method: 'DELETE', path: `/${name}?force_delete=true` });
      }
    },
  };
}
