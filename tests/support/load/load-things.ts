// What else the load (load.ts) changes: things whose whole state can be read back as one text. A versioned key with its
// history, a bucket that comes and goes, an account. Each is changed by one connection alone; a change
// says beforehand which state it leads to.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededBytes } from '../clients/tree.ts';
import type { RawAnswer, RawRequest } from '../servers/raw-s3.ts';
import { WrongAnswer } from './load-changes.ts';

const KiB = 1024;
const VERSIONS_MAX = 6;
const ABSENT = 'absent';
const MARKER = 'marker';

export interface Reach {
  s3(wanted: RawRequest): Promise<RawAnswer>;
  /** An upload by a signed form. Throws WrongAnswer. */
  form(bucket: string, key: string, file: Buffer): Promise<void>;
  /** The client's clock. */
  nowMs(): number;
  /** Below /holdfast-admin/v1. */
  operator(method: string, path: string, body?: object): Promise<{ status: number; json: unknown }>;
}

export interface ThingChange {
  kind: string;
  /** The state when it is done. */
  next: string;
  /** Resolves when it is acknowledged; throws WrongAnswer for an answer that is no success. */
  send(reach: Reach): Promise<void>;
}

export interface Thing {
  readonly name: string;
  /** Once, behind its bucket, before the load runs. */
  prepare?(reach: Reach): Promise<void>;
  /** As the server shows it, every byte of it looked at. */
  read(reach: Reach): Promise<string>;
  change(state: string, random: () => number): ThingChange;
  clear(reach: Reach): Promise<void>;
}

/** The answer, which must be a success with that in it. */
export async function succeedThing(reach: Reach, wanted: RawRequest, needle = ''): Promise<RawAnswer> {
  const answer = await reach.s3(wanted);
  if (answer.status < 200 || answer.status > 299 || !answer.body.includes(needle)) {
    throw new WrongAnswer(`${wanted.method} ${wanted.path}: ${answer.status} ${answer.body}`);
  }
  return answer;
}

const pick = <T>(random: () => number, some: readonly T[]): T =>
  some[Math.floor(random() * some.length)] as T;
const xml = (text: string) => Buffer.from(text);

/** State: the sizes of its versions, newest first; every size is written once, so it names the bytes. */
export function versionedKey(bucket: string, key: string): Thing {
  const path = `/${bucket}/${key}`;
  let written = 0;
  const bytesOf = (sizeBytes: number) => seededBytes(`${path} ${sizeBytes}`, sizeBytes);
  async function list(reach: Reach): Promise<{ text: string; id: string }[]> {
    const { body } = await succeedThing(reach, { method: 'GET', path: `/${bucket}?prefix=${key}&versions=` });
    return [...body.toString().matchAll(/<(Version|DeleteMarker)>(.*?)<\/\1>/gs)].map(
      ([, kind, inner = '']) => ({
        text: kind === 'Version' ? (/<Size>(\d+)</.exec(inner)?.[1] ?? '') : MARKER,
        id: /<VersionId>(.*?)</.exec(inner)?.[1] ?? '',
      }),
    );
  }
  const putNew = (state: string, sizeBytes: number): ThingChange => ({
    kind: 'put version',
    next: joined(String(sizeBytes), state),
    send: async (reach) =>
      void (await succeedThing(reach, { method: 'PUT', path, body: bytesOf(sizeBytes) })),
  });
  return {
    name: path,
    async read(reach) {
      const versions = await list(reach);
      for (const { text, id } of versions) {
        if (text === MARKER) continue;
        const { body } = await succeedThing(reach, { method: 'GET', path: `${path}?versionId=${id}` });
        if (!body.equals(bytesOf(Number(text)))) return `other bytes in version ${id} of ${text}`;
      }
      return versions.map(({ text }) => text).join();
    },
    change(state, random) {
      const versions = state === '' ? [] : state.split(',');
      const sizeBytes = (random() < 0.5 ? 100 : 70 * KiB) + ++written + Math.floor(random() * 1000) * 1000;
      const kinds = ['put', 'put', 'marker', 'itself', 'version', 'versions'];
      const kind = versions.length > VERSIONS_MAX ? 'versions' : pick(random, kinds);
      if (versions.length === 0 || kind === 'put') return putNew(state, sizeBytes);
      if (kind === 'marker') {
        const send = async (reach: Reach) => void (await succeedThing(reach, { method: 'DELETE', path }));
        return { kind: 'delete marker', next: joined(MARKER, state), send };
      }
      if (kind === 'itself') {
        if (versions[0] === MARKER) return putNew(state, sizeBytes);
        const headers = { 'x-amz-copy-source': path, 'x-amz-metadata-directive': 'REPLACE' };
        const send = async (reach: Reach) =>
          void (await succeedThing(reach, { method: 'PUT', path, headers }, '<ETag>'));
        return { kind: 'copy version onto itself', next: joined(versions[0] ?? '', state), send };
      }
      const count = kind === 'version' ? 1 : 1 + Math.floor(random() * versions.length);
      const from = Math.floor(random() * (versions.length - count + 1));
      return {
        kind: count === 1 ? 'delete version' : 'delete versions',
        next: versions.toSpliced(from, count).join(),
        async send(reach) {
          const ids = (await list(reach)).slice(from, from + count).map(({ id }) => id);
          if (ids.length === 1)
            await succeedThing(reach, { method: 'DELETE', path: `${path}?versionId=${ids[0]}` });
          else
            await deleteMany(
              reach,
              bucket,
              ids.map((id) => ({ key, id })),
            );
        },
      };
    },
    async clear(reach) {
      const ids = (await list(reach)).map(({ id }) => ({ key, id }));
      if (ids.length > 0) await deleteMany(reach, bucket, ids);
    },
  };
}

const joined = (first: string, rest: string) => (rest === '' ? first : `${first},${rest}`);

async function deleteMany(reach: Reach, bucket: string, items: { key: string; id: string }[]): Promise<void> {
  const objects = items.map(
    ({ key, id }) => `<Object><Key>${key}</Key><VersionId>${id}</VersionId></Object>`,
  );
  const body = xml(`<Delete>${objects.join('')}</Delete>`);
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
  const answer = await succeedThing(reach, { method: 'POST', path: `/${bucket}?delete=`, headers, body });
  if (answer.body.includes('<Error>')) throw new WrongAnswer(answer.body.toString());
}

/** State: whether it is there, and its versioning. It is deleted with an open upload in it now and then. */
export function passingBucket(bucket: string): Thing {
  const path = `/${bucket}`;
  const uploadPart = async (reach: Reach) => {
    const { body } = await succeedThing(reach, { method: 'POST', path: `${path}/left?uploads=` });
    const id = encodeURIComponent(/<UploadId>(.*?)</.exec(body.toString())?.[1] ?? '');
    const part = {
      method: 'PUT',
      path: `${path}/left?partNumber=1&uploadId=${id}`,
      body: seededBytes(bucket, 70_000),
    };
    await succeedThing(reach, part);
  };
  return {
    name: `bucket ${bucket}`,
    async read(reach) {
      const { status, body } = await reach.s3({ method: 'GET', path: `${path}?versioning=` });
      if (status === 404) return ABSENT;
      return /<Status>(.*?)</.exec(body.toString())?.[1] ?? (status === 200 ? 'none' : `status ${status}`);
    },
    change(state, random) {
      if (state === ABSENT) {
        const wanted = { method: 'PUT', path };
        return {
          kind: 'create bucket',
          next: 'none',
          send: async (reach) => void (await succeedThing(reach, wanted)),
        };
      }
      const kind = pick(random, ['delete', 'delete', 'delete', 'upload', 'Enabled', 'Suspended']);
      if (kind === 'upload') return { kind: 'upload into a passing bucket', next: state, send: uploadPart };
      if (kind === 'delete') {
        const wanted = { method: 'DELETE', path };
        return {
          kind: 'delete bucket',
          next: ABSENT,
          send: async (reach) => void (await succeedThing(reach, wanted)),
        };
      }
      const body = xml(`<VersioningConfiguration><Status>${kind}</Status></VersioningConfiguration>`);
      const wanted = { method: 'PUT', path: `${path}?versioning=`, body };
      return {
        kind: 'set versioning',
        next: kind,
        send: async (reach) => void (await succeedThing(reach, wanted)),
      };
    },
    async clear(reach) {
      const { status } = await reach.s3({ method: 'HEAD', path });
      if (status === 200) await succeedThing(reach, { method: 'DELETE', path });
    },
  };
}

/** State: the account's state and limit, or that it is absent. Now and then its owner rotates the master key. */
export function passingAccount(name: string): Thing {
  const email = `${name}@example.com`;
  const call = async (reach: Reach, wanted: Parameters<Reach['operator']>) => {
    const { status, json } = await reach.operator(...wanted);
    const isBusy = wanted[1] === '/keys/rotate' && status === 409;
    if (status > 299 && !isBusy)
      throw new WrongAnswer(`${wanted[0]} ${wanted[1]}: ${status} ${JSON.stringify(json)}`);
  };
  return {
    name: `account ${name}`,
    async read(reach) {
      const { status, json } = await reach.operator('GET', `/accounts/${name}`);
      if (status === 404) return ABSENT;
      const account = json as { state?: string; bucketsMax?: number };
      return `${account.state} ${account.bucketsMax}`;
    },
    change(state, random) {
      const [was = '', limit = ''] = state.split(' ');
      if (state === ABSENT) {
        const wanted = ['POST', '/accounts', { name, email }] as const;
        return { kind: 'create account', next: 'paid 1000', send: (reach) => call(reach, [...wanted]) };
      }
      const kind = pick(random, ['delete', 'state', 'limit', 'rotate']);
      if (kind === 'delete') {
        return {
          kind: 'delete account',
          next: ABSENT,
          send: (reach) => call(reach, ['DELETE', `/accounts/${name}`]),
        };
      }
      if (kind === 'rotate') {
        const send = async (reach: Reach) => {
          await call(reach, ['POST', '/keys/rotate']);
          await sleep(50);
        };
        return { kind: 'rotate keys', next: state, send };
      }
      const bucketsMax = Math.floor(random() * 100) + 1;
      const changed = was === 'paid' ? 'suspended' : 'paid';
      const isState = kind === 'state';
      const body = isState ? { state: changed } : { bucketsMax };
      return {
        kind: 'change account',
        next: isState ? `${changed} ${limit}` : `${was} ${bucketsMax}`,
        send: (reach) => call(reach, ['PATCH', `/accounts/${name}`, body]),
      };
    },
    async clear(reach) {
      await reach.operator('DELETE', `/accounts/${name}`);
    },
  };
}
