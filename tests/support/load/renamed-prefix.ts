// A prefix that is renamed to and fro under a load, as clients do it that want it done once: each MOVE has a token, and is
// sent again until it is answered. What lists and reads find is compared with what was put there: each key is under one
// prefix alone, with all of its versions; while a MOVE goes on that is the one or the other, behind its answer the new one.
// Not here: faults, and what becomes of requests without an answer (load-extensions.ts, cluster-load.ts).
import { createHash } from 'node:crypto';
import { must } from '../../../src/base/assert.ts';
import { childOf, parseXml, textOf, type XmlElement } from '../../../src/base/xml/parse-xml.ts';
import { LIMITS } from '../../../src/types/limits.ts';
import { seededBytes } from '../clients/tree.ts';
import { pathOf, type RawAnswer, type RawRequest } from '../servers/raw-s3.ts';
import { WrongAnswer } from './load-changes.ts';

const KiB = 1024;
/** Several steps, also where others wait beside the MOVE. */
const KEY_COUNT = 2 * LIMITS.moveKeysBesideOthersMax + 22;
const VERSIONS_MAX = 3;
/** Every so many keys: versions with data of their own beside the metadata. */
const CHUNKED_EVERY = 25;
const CHUNKED_BYTES = 70 * KiB;
/** Every so many keys, where versions are kept: the latest is a delete marker. */
const MARKED_EVERY = 10;
const FILLERS = 4;
/** Bodies that are read behind a MOVE, and when all is compared. */
const READ_COUNT = { moved: 3, compared: 20 };
/** One page of a list is of one moment: all of the prefix has to be on it. */
const PAGE_MAX = 1000;

/** Of whoever asks; what it resolves with was answered. */
export type Send = (wanted: RawRequest) => Promise<RawAnswer>;

export interface PrefixOptions {
  bucket: string;
  /** Nobody else uses keys that begin with it and a slash. */
  name: string;
  /** The bucket does. */
  keepsVersions: boolean;
  random(): number;
}

interface HeldVersion {
  /** undefined: a delete marker. */
  body: Buffer | undefined;
  id: string;
}

interface Rename {
  from: string;
  to: string;
  token: string;
}

export class RenamedPrefix {
  /** MOVEs that were answered. */
  renamedCount = 0;
  readonly #bucket: string;
  readonly #name: string;
  readonly #keepsVersions: boolean;
  readonly #random: () => number;
  /** By what is behind the prefix; of each key all versions, newest first. */
  readonly #keys = new Map<string, HeldVersion[]>();
  #at: string;
  /** Sent, and not answered. */
  #pending: Rename | undefined;
  #answered: Rename | undefined;
  #tokenCount = 0;

  constructor(options: PrefixOptions) {
    this.#bucket = options.bucket;
    this.#name = options.name;
    this.#keepsVersions = options.keepsVersions;
    this.#random = options.random;
    this.#at = this.places[0];
  }

  /** The last two are within one another: keys are walked in both directions. */
  get places(): readonly [string, ...string[]] {
    const name = this.#name;
    return [`${name}/one/`, `${name}/two/`, `${name}/two/in/`];
  }

  /** Where it is, or will be once what is pending is answered. */
  get place(): string {
    return this.#pending?.to ?? this.#at;
  }

  get isPending(): boolean {
    return this.#pending !== undefined;
  }

  get wasRenamed(): boolean {
    return this.#answered !== undefined;
  }

  /** Another place than that where it is. */
  drawPlace(random: () => number = this.#random): string {
    const others = this.places.filter((place) => place !== this.place);
    return must(others[Math.floor(random() * others.length)], 'another place');
  }

  /** Puts all keys there. Nothing else goes on meanwhile. */
  async fill(send: Send): Promise<void> {
    const indexes = Array.from({ length: KEY_COUNT }, (_, index) => index).values();
    const fillSome = async () => {
      for (const index of indexes) await this.#fillKey(send, index);
    };
    await Promise.all(Array.from({ length: FILLERS }, fillSome));
  }

  async #fillKey(send: Send, index: number): Promise<void> {
    const key = `key + ${String(index).padStart(4, '0')} é`;
    const path = pathOf(this.#bucket, this.#at + key);
    const held: HeldVersion[] = [];
    const versionCount = this.#keepsVersions ? 1 + (index % VERSIONS_MAX) : 1;
    for (let version = 0; version < versionCount; version++) {
      const sizeBytes = index % CHUNKED_EVERY === 0 ? CHUNKED_BYTES + version : 50 + index;
      const body = seededBytes(`${path} ${version}`, sizeBytes);
      held.unshift({ body, id: idOf(await succeed(send, { method: 'PUT', path, body })) });
    }
    if (this.#keepsVersions && index % MARKED_EVERY === 0)
      held.unshift({ body: undefined, id: idOf(await succeed(send, { method: 'DELETE', path })) });
    this.#keys.set(key, held);
  }

  /** To wherever chance says; or the last one is sent again. What is pending is settled first. */
  async renameOrRepeat(send: Send, repeatedShare: number): Promise<void> {
    if (this.#pending !== undefined) await this.settle(send);
    else if (this.wasRenamed && this.#random() < repeatedShare) await this.repeat(send);
    else await this.rename(send, this.drawPlace());
  }

  /** Resolves when it is answered and right; throws WrongAnswer, or what `send` throws: then it is pending. */
  async rename(send: Send, to: string): Promise<void> {
    const token = `${this.#name} ${++this.#tokenCount}`;
    this.#pending = { from: this.#at, to, token };
    // Somebody looks while it goes on.
    await Promise.all([this.settle(send), this.#look(send)]);
  }

  /** Sends what is pending again. */
  async settle(send: Send): Promise<void> {
    const rename = this.#pending;
    if (rename === undefined) return;
    await this.#move(send, rename);
    this.#at = rename.to;
    this.#pending = undefined;
    this.#answered = rename;
    this.renamedCount++;
    await this.#look(send);
    await this.#readSome(send, READ_COUNT.moved);
  }

  /** Sends the last one that was answered again: the answer is the same, and nothing is done. */
  async repeat(send: Send): Promise<void> {
    await this.#move(send, must(this.#answered, 'one was answered'));
    await this.#look(send);
  }

  /** Looks where it is, once nobody renames it: what was pending has been done as a whole, or was never begun. */
  async find(send: Send): Promise<void> {
    const [place, ...others] = await this.#look(send);
    if (place === undefined || others.length > 0)
      throw new WrongAnswer(`/${this.#bucket}/${this.#name}: is left in ${[place, ...others].join(' and ')}`);
    this.#at = place;
    this.#pending = undefined;
  }

  /** Throws WrongAnswer for what is not as it should be; where something is pending, before and behind it. */
  async compare(send: Send): Promise<void> {
    await this.#look(send);
    await this.settle(send);
    await this.#look(send);
    await this.#readSome(send, READ_COUNT.compared);
  }

  /** Deletes all of it. */
  async clear(send: Send): Promise<void> {
    const objects = [...(await this.#list(send)).values()].flat().map(({ key, id }) => {
      return `<Object><Key>${key}</Key><VersionId>${id}</VersionId></Object>`;
    });
    const body = Buffer.from(`<Delete>${objects.join('')}</Delete>`);
    const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
    const wanted = { method: 'POST', path: `/${this.#bucket}?delete=`, headers, body };
    const answer = await succeed(send, wanted);
    if (answer.body.includes('<Error>')) throw new WrongAnswer(answer.body.toString());
  }

  async #move(send: Send, { from, to, token }: Rename): Promise<void> {
    const answer = await succeed(send, {
      method: 'MOVE',
      path: pathOf(this.#bucket, from),
      headers: {
        destination: to,
        'x-svc-prefix': 'true',
        // Both kinds of answers.
        'x-svc-quiet': String(this.#tokenCount % 2 === 0),
        'x-svc-idempotency-token': token,
      },
    });
    const text = answer.body.toString();
    const count = Number(/<MoveCount>(\d+)<\/MoveCount><\/MoveObjectResult>$/.exec(text)?.[1]);
    const held = [...this.#keys.values()].reduce((sum, versions) => sum + versions.length, 0);
    if (text.includes('<Error>') || count !== held)
      throw new WrongAnswer(`${from} to ${to}, of ${held} versions: ${text.slice(0, 2000)}`);
  }

  /** Every key is in one place, with all that it has. Resolves with the places where there are any. */
  async #look(send: Send): Promise<readonly string[]> {
    const places = this.#pending === undefined ? [this.#at] : [this.#pending.from, this.#pending.to];
    // A place may be within another.
    places.sort((a, b) => b.length - a.length);
    const problems: string[] = [];
    const seen = new Map<string, string>();
    for (const [key, listed] of await this.#list(send)) {
      const place = places.find((each) => key.startsWith(each));
      const tail = key.slice(place?.length);
      const held = this.#keys.get(tail);
      const before = seen.get(tail);
      if (place === undefined || held === undefined) problems.push(`${key} should not be there`);
      else if (before !== undefined) problems.push(`${tail} is in ${before} and in ${place}`);
      else {
        seen.set(tail, place);
        const [found, wanted] = [listed.map(({ line }) => line).join(), linesOf(held).join()];
        if (found !== wanted) problems.push(`${key} has ${found} instead of ${wanted}`);
      }
    }
    for (const tail of this.#keys.keys())
      if (!seen.has(tail)) problems.push(`${tail} is not in ${places.join(' nor in ')}`);
    if (problems.length > 0)
      throw new WrongAnswer(
        `/${this.#bucket}/${this.#name}: ${problems.length} keys: ${problems.slice(0, 5).join('; ')}`,
      );
    return [...new Set(seen.values())];
  }

  /** Of each key its versions in their order. */
  async #list(send: Send): Promise<Map<string, { key: string; id: string; line: string }[]>> {
    const query = `versions=&max-keys=${PAGE_MAX}&prefix=${encodeURIComponent(`${this.#name}/`)}`;
    const { body } = await succeed(send, { method: 'GET', path: `/${this.#bucket}?${query}` });
    const root = parseXml(body, { depthMax: 16 });
    must(textOf(root, 'IsTruncated') === 'false' || undefined, 'a prefix is listed on one page');
    const keys = new Map<string, { key: string; id: string; line: string }[]>();
    for (const entry of root.children) {
      if (entry.name !== 'Version' && entry.name !== 'DeleteMarker') continue;
      const key = textOf(entry, 'Key') ?? '';
      const versions = keys.get(key) ?? [];
      versions.push({ key, id: textOf(entry, 'VersionId') ?? '', line: lineOf(entry) });
      keys.set(key, versions);
    }
    return keys;
  }

  async #readSome(send: Send, count: number): Promise<void> {
    const all = [...this.#keys].flatMap(([tail, held]) => held.map((version) => ({ tail, ...version })));
    for (let read = 0; read < count; read++) {
      const { tail, id, body } = must(all[Math.floor(this.#random() * all.length)], 'a version');
      if (body === undefined) continue;
      const path = `${pathOf(this.#bucket, this.#at + tail)}?versionId=${id}`;
      const answer = await succeed(send, { method: 'GET', path });
      if (!answer.body.equals(body)) throw new WrongAnswer(`${path}: other bytes`);
    }
  }
}

/** A MOVE that was answered 200, but whose answer ended early: its outcome is unknown. */
export function isBrokenOff({ status, body }: RawAnswer): boolean {
  if (status !== 200 || !body.includes('<MoveObjectResult')) return false;
  const root = parseXml(body, { depthMax: 16 });
  return childOf(root, 'Error') !== undefined;
}

function idOf({ headers }: RawAnswer): string {
  return String(headers['x-amz-version-id'] ?? 'null');
}

function linesOf(held: readonly HeldVersion[]): string[] {
  return held.map(({ body, id }, index) => {
    const etag = body === undefined ? 'marker' : `"${createHash('md5').update(body).digest('hex')}"`;
    return `${id} ${etag} ${body?.length ?? ''} ${index === 0}`;
  });
}

function lineOf(entry: XmlElement): string {
  const [id, etag, size, isLatest] = ['VersionId', 'ETag', 'Size', 'IsLatest'].map((name) =>
    textOf(entry, name),
  );
  return `${id} ${etag ?? 'marker'} ${size ?? ''} ${isLatest}`;
}

async function succeed(send: Send, wanted: RawRequest): Promise<RawAnswer> {
  const answer = await send(wanted);
  if (answer.status >= 200 && answer.status < 300) return answer;
  throw new WrongAnswer(`${wanted.method} ${wanted.path}: ${answer.status} ${answer.body}`);
}
