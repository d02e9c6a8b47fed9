// A model of the versions of few keys, and of what puts, copies, compositions, appends, renames and deletions do to them
// (service 4.2): for tests/models/changes-model.test.ts. Pure.
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { compareBytes, utf8 } from '../../../src/base/bytes/bytes.ts';
import { planPrefixMove } from '../../../src/metadata/moves/plan-prefix-move.ts';
import { type ETag, multipartETag } from '../../../src/types/etag.ts';
import { LIMITS } from '../../../src/types/limits.ts';
import { CHUNK_BYTES } from '../objects/object-world.ts';

const KEYS = ['a', 'b', 'c'];
/** Beginnings of keys, and of what those become that are renamed with them. */
const PREFIXES = ['a', 'b', 'bb', 'c'];
/** Inline, of one chunk, and of more than one. */
const SIZES = [1, 900, CHUNK_BYTES, CHUNK_BYTES + 7];
const COMMITS_MAX = 6;

export type Versioning = 'unversioned' | 'enabled' | 'suspended';
export type Step = (
  | { kind: 'put' | 'append'; key: string; size: number }
  | { kind: 'copy'; key: string; from: string; pick: number }
  | { kind: 'compose'; key: string; parts: string[] }
  | { kind: 'move'; key: string; from: string; overwrites: boolean }
  | { kind: 'move-prefix'; from: string; to: string; overwrites: boolean }
  | { kind: 'delete'; key: string; pick: number | null }
  | { kind: 'set'; versioning: 'enabled' | 'suspended' }
) & {
  /** The process ends before so many commits more. */
  crash: number | null;
  /** Where it may bear a token, it does, and is asked for again, whatever has become of it. */
  again?: boolean;
};

const key = fc.constantFrom(...KEYS);
const crash = fc.option(fc.nat(COMMITS_MAX), { freq: 6 });
const size = fc.constantFrom(...SIZES);
const once: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('put' as const), key, size, crash }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('append' as const), key, size, crash }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('copy' as const), key, from: key, pick: fc.nat(3), crash }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('compose' as const),
      key,
      parts: fc.array(key, { minLength: 1, maxLength: 4 }),
      crash,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('move' as const),
      key,
      from: key,
      overwrites: fc.boolean(),
      crash,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('move-prefix' as const),
      from: fc.constantFrom(...PREFIXES),
      to: fc.constantFrom(...PREFIXES),
      overwrites: fc.boolean(),
      crash,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('delete' as const), key, pick: fc.option(fc.nat(3)), crash }),
  },
);
export const stepArbitrary: fc.Arbitrary<Step> = fc
  .tuple(once, fc.boolean())
  .map(([step, again]) => ({ ...step, again }));
export const setArbitrary: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant('set' as const),
  versioning: fc.constantFrom('enabled' as const, 'suspended' as const),
  crash,
});

export interface ModelVersion {
  id: string;
  /** Absent: a delete marker. */
  bytes?: Buffer;
  /** MD5s of the data objects that it is made of; one alone that was put has it as its ETag. */
  originals: string[];
  isComposed: boolean;
}

/** Versions of each key, newest first. */
export type Model = ReadonlyMap<string, readonly ModelVersion[]>;

const md5 = (bytes: Buffer) => createHash('md5').update(bytes).digest('hex');
export const of = (model: Model, name: string) => model.get(name) ?? [];
const objectOf = (model: Model, name: string) => {
  const [latest] = of(model, name);
  return latest?.bytes === undefined ? undefined : latest;
};

export function etagOf({ originals, isComposed }: ModelVersion): ETag {
  const [first = ''] = originals;
  return isComposed ? multipartETag(originals) : first;
}

function withVersions(model: Model, name: string, versions: readonly ModelVersion[]): Model {
  const next = new Map(model);
  if (versions.length === 0) next.delete(name);
  else next.set(name, versions);
  return next;
}

/** A key has one null version. */
function written(model: Model, name: string, version: ModelVersion): Model {
  const others = of(model, name).filter(({ id }) => version.id !== 'null' || id !== 'null');
  return withVersions(model, name, [version, ...others]);
}

/** Stands for the id of a version that the step makes; what it is only the answer of the store tells. */
export const NEW = 'new';

/** What the step leads to; a string: the refusal; undefined: it makes no sense here. `body`: of put and append. */
export function nextModel(
  model: Model,
  step: Step,
  { versioning, body }: { versioning: Versioning; body: Buffer },
): Model | string | undefined {
  const id = versioning === 'enabled' ? NEW : 'null';
  switch (step.kind) {
    case 'put':
      return written(model, step.key, { id, bytes: body, originals: [md5(body)], isComposed: false });
    case 'append': {
      const before = objectOf(model, step.key);
      if (before?.bytes === undefined) return 'NoSuchKey';
      const bytes = Buffer.concat([before.bytes, body]);
      const originals = [...before.originals, md5(body)];
      return written(model, step.key, { id, bytes, originals, isComposed: true });
    }
    case 'copy': {
      const source = of(model, step.from)[step.pick];
      return source?.bytes === undefined ? undefined : written(model, step.key, { ...source, id });
    }
    case 'compose': {
      const parts = step.parts.map((name) => objectOf(model, name));
      if (parts.some((part) => part === undefined)) return undefined;
      const originals = parts.flatMap((part) => part?.originals ?? []);
      if (originals.length > LIMITS.composeOriginalsMax) return 'InvalidRequest';
      const bytes = Buffer.concat(parts.map((part) => part?.bytes ?? Buffer.alloc(0)));
      return written(model, step.key, { id, bytes, originals, isComposed: true });
    }
    case 'move':
      return moved(model, step, versioning);
    case 'move-prefix':
      return step.from === step.to ? undefined : movedPrefix(model, step, versioning).model;
    case 'delete':
      return deleted(model, step, versioning);
    case 'set':
      return model;
  }
}

function moved(
  model: Model,
  { from, key: to, overwrites }: { from: string; key: string; overwrites: boolean },
  versioning: Versioning,
): Model | string | undefined {
  if (from === to) return undefined;
  const source = of(model, from);
  if (source.length === 0) return 'no-such-key';
  if (!overwrites && objectOf(model, to) !== undefined) return 'exists';
  const bringsNull = source.some(({ id }) => id === 'null');
  const replaced = bringsNull ? of(model, to).find(({ id }) => id === 'null') : undefined;
  if (replaced?.bytes !== undefined && !(overwrites && versioning !== 'enabled')) return 'exists';
  const below = of(model, to).filter((version) => version !== replaced);
  return withVersions(withVersions(model, to, [...source, ...below]), from, []);
}

/** One key after the other, in the order of the walk; those that cannot move stay. */
export function movedPrefix(
  model: Model,
  { from, to, overwrites }: Step & { kind: 'move-prefix' },
  versioning: Versioning,
): { model: Model; movedCount: number } {
  let [next, movedCount] = [model, 0];
  for (const { gte, lt, reverse } of planPrefixMove(from, to)) {
    const names = [...next.keys()].filter((name) => {
      return compareBytes(utf8(name), gte) >= 0 && compareBytes(utf8(name), lt) < 0;
    });
    for (const name of reverse ? names.sort().reverse() : names.sort()) {
      const move = { from: name, key: to + name.slice(from.length), overwrites };
      const result = moved(next, move, versioning);
      if (result === undefined || typeof result === 'string') continue;
      movedCount += of(next, name).length;
      next = result;
    }
  }
  return { model: next, movedCount };
}

function deleted(
  model: Model,
  { key: name, pick }: Step & { kind: 'delete' },
  versioning: Versioning,
): Model | undefined {
  const versions = of(model, name);
  if (pick !== null) {
    const target = versions[pick];
    return (
      target &&
      withVersions(
        model,
        name,
        versions.filter((version) => version !== target),
      )
    );
  }
  if (versioning === 'unversioned') return withVersions(model, name, []);
  const id = versioning === 'enabled' ? NEW : 'null';
  return written(model, name, { id, originals: [], isComposed: false });
}
