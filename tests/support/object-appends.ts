// Appends over the object world, for tests of what they leave.
import { randomBytes } from 'node:crypto';
import type { ObjectKey } from '../../src/model/names.ts';
import { ownBody, type Segment } from '../../src/model/version.ts';
import type { AppendObject, BodySource, Written } from '../../src/objects/object-store.ts';
import { type ObjectWorld, sourceOf } from './object-world.ts';

export function append(
  world: ObjectWorld,
  key: string,
  body: Buffer,
  more: Partial<Omit<AppendObject, 'body'>> & { said?: Partial<BodySource> } = {},
): Promise<Written> {
  const { said, ...rest } = more;
  return world.store.appendObject({
    ...{ calls: world.calls, bucket: world.bucket(), key: key as ObjectKey },
    ...{ body: sourceOf(body, { ...(said && { said }) }), signal: new AbortController().signal },
    ...rest,
  });
}

/** Appends as many pieces; the bytes that the object has then. */
export async function appendMany(
  world: ObjectWorld,
  key: string,
  count: number,
  sizeBytes: number,
): Promise<Buffer> {
  const pieces = [await world.get(key)];
  for (let at = 0; at < count; at++) {
    const piece = randomBytes(sizeBytes);
    pieces.push(piece);
    await append(world, key, piece);
  }
  return Buffer.concat(pieces);
}

/** Of the version's own row: all, or those behind its pages. */
export async function segmentsOf(world: ObjectWorld, key: string): Promise<Segment[]> {
  return ownBody((await world.find(key)).version.manifest)?.segments ?? [];
}
