// What the load (load.ts) does beyond S3: an object that is appended to, composed of itself and renamed, and a bucket that
// is renamed and deleted with all that is in it. Things, as those of load-things.ts.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Reach, Thing, ThingChange } from './load-things.ts';
import { succeedThing as succeed } from './load-things.ts';
import type { RawAnswer, RawRequest } from './raw-s3.ts';

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

/** Of a deletion or rename that a crash has cut short, until it has been brought to its end (LIMITS.jobLeftMs). */
const SETTLED_WITHIN_MS = 60_000;
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
