// Appends over an object world, also where versions are kept, and the pieces that an object has.
import { randomBytes } from 'node:crypto';
import type { AppendObject, BodySource, BucketTarget } from '../../../src/objects/object-store.ts';
import type { ObjectKey } from '../../../src/types/names.ts';
import { ownBody } from '../../../src/types/version.ts';
import { type ObjectWorld, sourceOf } from './object-world.ts';

export function append(
  world: ObjectWorld,
  key: string,
  body: Buffer,
  more: Partial<Omit<AppendObject, 'body'>> & { said?: Partial<BodySource> } = {},
) {
  const { said, ...rest } = more;
  return world.store.appendObject({
    calls: world.calls,
    bucket: world.bucket(),
    key: key as ObjectKey,
    body: sourceOf(body, { ...(said && { said }) }),
    signal: new AbortController().signal,
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

export const segmentsOf = async (world: ObjectWorld, key: string) =>
  ownBody((await world.find(key)).version.manifest)?.segments ?? [];

/** The world's bucket, which keeps versions from now on. */
export async function versioned(world: ObjectWorld): Promise<BucketTarget> {
  const { bucketId } = world.bucket().believed;
  await world.metadata.execute('set-bucket-config', {
    bucketId,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
  const row = await world.metadata.query('get-bucket', { bucketId });
  return { homeShard: 0, believed: { ...world.bucket().believed, cfgVersion: row.bucket?.cfgVersion ?? 0 } };
}
