// The coordinator of the embedded form: one process, one voter per shard, so an epoch is a counter in the store that
// the shards use anyway, bumped at each open. It elects nobody and watches nothing; a second process is kept out by
// the lock of the store itself.
import { utf8 } from '../base/bytes/bytes.ts';
import { defineRecord } from '../base/record-codec.ts';
import type { CoordinatorPort, EpochGrant } from '../ports/coordination.ts';
import type { KvPort } from '../ports/kv.ts';

const grantCodec = defineRecord<EpochGrant>({ name: 'epoch-grant', version: 1 });

/** Rows of shards begin with their number, of two bytes; this one is above all of them. */
const KEY_PREFIX = Buffer.concat([Buffer.of(0xff, 0xff), utf8('epoch/')]);
const FIRST_INCARNATION = 1;

export function createLocalCoordinator(kv: KvPort, column = 'rows'): CoordinatorPort {
  const acquiring = new Map<number, Promise<EpochGrant>>();

  async function bump(shard: number, before: Promise<unknown> | undefined): Promise<EpochGrant> {
    await before?.catch(() => undefined);
    const suffix = Buffer.alloc(2);
    suffix.writeUInt16BE(shard);
    const key = Buffer.concat([KEY_PREFIX, suffix]);
    const [row] = await kv.getMany(column, [key]);
    const last = row === undefined ? { incarnation: FIRST_INCARNATION, epoch: 0 } : grantCodec.decode(row);
    const grant = { ...last, epoch: last.epoch + 1 };
    await kv.commit([{ column, key, value: grantCodec.encode(grant) }]);
    return grant;
  }

  return {
    acquire(shard) {
      const grant = bump(shard, acquiring.get(shard));
      acquiring.set(shard, grant);
      const done = () => {
        if (acquiring.get(shard) === grant) acquiring.delete(shard);
      };
      grant.then(done, done);
      return grant;
    },
  };
}
