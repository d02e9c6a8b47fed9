// The operations of the simulation as the product's own commands: small objects of one unversioned bucket, put and deleted
// under conditions, read and listed. The value of a key is the body of its object, and its ETag as well.
import { fromUtf8, toHex, utf8 } from '../../src/base/bytes/bytes.ts';
import { metadataMachine } from '../../src/metadata/state-machine.ts';
import type {
  BelievedBucket,
  CommandOf,
  OutcomeOf,
  QueryOf,
  ResultOf,
} from '../../src/ports/metadata/port.ts';
import {
  type AccountId,
  type BucketId,
  type BucketName,
  makeBlobId,
  makeLinkId,
  type ObjectKey,
} from '../../src/types/names.ts';
import { packOriginals } from '../../src/types/originals.ts';
import type { BlobUse } from '../../src/types/version.ts';
import type { Chance } from './chance.ts';
import type { Driver } from './driver.ts';
import type { Operation, Outcome } from './operations.ts';
import { SimulationFailure } from './scheduler.ts';

const OWNER = '000000000001' as AccountId;
const ETAG_DIGITS = 32;

const bucketIdOf = (shard: number) => `b${String(shard).padStart(15, '0')}` as BucketId;
const bucketNameOf = (shard: number) => `bucket-${shard}` as BucketName;
const booleanOf = (shard: number): BelievedBucket => ({
  bucketId: bucketIdOf(shard),
  name: bucketNameOf(shard),
  cfgVersion: 1,
});

function etagOf(value: string): string {
  const digits = toHex(utf8(value)).padEnd(ETAG_DIGITS, '0');
  if (digits.length !== ETAG_DIGITS) throw new Error(`a value of at most 16 bytes: ${value}`);
  return digits;
}
const valueOfEtag = (etag: string) => Buffer.from(etag.replace(/(00)+$/, ''), 'hex').toString('utf8');

function commitOf(
  operation: Operation & { kind: 'put' | 'create' },
  options: { shard: number; timeMs: number; chance: Chance },
): CommandOf<'commit-version'> {
  const { shard, timeMs, chance } = options;
  const body = utf8(operation.value);
  const etag = etagOf(operation.value);
  const use: BlobUse = {
    blobId: makeBlobId({ timeMs, homeShard: shard, random: chance.bytes(8) }),
    linkId: makeLinkId({ timeMs, random: chance.bytes(10) }),
    sizeBytes: body.length,
    storage: 'inline',
    chunkSizeBytes: 1024 * 1024,
    wrappedDataKey: Uint8Array.of(7),
  };
  return {
    bucketId: bucketIdOf(shard),
    key: operation.key as ObjectKey,
    version: {
      sizeBytes: body.length,
      etag,
      owner: OWNER,
      kek: { by: 'master', keyId: 'k1', wrapped: Uint8Array.of(1) },
      sealedHeaders: Uint8Array.of(9),
      originals: packOriginals({ sizeBytes: body.length, md5: etag }),
      manifest: {
        kind: 'direct',
        uses: [use],
        segments: [{ use: 0, offsetBytes: 0, sizeBytes: body.length }],
        parts: [],
      },
    },
    data: { births: [{ use, body }], links: [] },
    ...(operation.kind === 'create' && { conditions: { ifNoneMatch: '*' } }),
  };
}

function commandOf(
  operation: Operation,
  options: { shard: number; timeMs: number; chance: Chance },
): { kind: 'execute' | 'query'; name: string; body: object } {
  const bucketId = bucketIdOf(options.shard);
  switch (operation.kind) {
    case 'put':
    case 'create':
      return { kind: 'execute', name: 'commit-version', body: commitOf(operation, options) };
    case 'remove': {
      const conditions = operation.ifValue === undefined ? {} : { ifMatch: [etagOf(operation.ifValue)] };
      const items = [{ key: operation.key as ObjectKey, conditions }];
      const body: CommandOf<'delete-versions'> = { bucketId, owner: OWNER, items };
      return { kind: 'execute', name: 'delete-versions', body };
    }
    case 'read': {
      const body: QueryOf<'get-version'> = { bucketId, key: operation.key as ObjectKey, includeBody: true };
      return { kind: 'query', name: 'get-version', body };
    }
    case 'list': {
      const { after, limit: max } = operation;
      const body: QueryOf<'list-objects'> = { bucketId, prefix: '', after, max };
      return { kind: 'query', name: 'list-objects', body };
    }
    case 'append':
      throw new Error('there is no append yet');
  }
}

function readOutcome(found: ResultOf<'get-version'>): Outcome {
  if (found.kind !== 'found') return { kind: 'value', value: null };
  const { version, inlineBody } = found;
  const value = inlineBody === undefined ? undefined : fromUtf8(inlineBody);
  if (value === undefined || value !== valueOfEtag(version.etag))
    throw new SimulationFailure(`I12: a body ${value} under the ETag of ${valueOfEtag(version.etag)}`);
  return { kind: 'value', value };
}

function writeOutcome(outcome: OutcomeOf<'commit-version'>): Outcome | undefined {
  if (outcome.kind === 'committed') return { kind: 'written' };
  if (outcome.kind === 'precondition-failed') return { kind: 'exists' };
  // Minted from a time that the shard has left behind, or not reached (R25): with a new id it goes.
  if (outcome.kind === 'late') return undefined;
  throw new SimulationFailure(`commit-version: ${outcome.kind}`);
}

export const metadataDriver: Driver = {
  name: 'metadata',
  machine: metadataMachine,
  operations: ['put', 'create', 'remove', 'read', 'list'],
  prepare(shard) {
    const body: CommandOf<'create-bucket'> = {
      bucketId: bucketIdOf(shard),
      name: bucketNameOf(shard),
      owner: OWNER,
    };
    return [{ kind: 'execute', envelope: { shard }, name: 'create-bucket', body }];
  },
  call(operation, options) {
    const { shard } = options;
    return { ...commandOf(operation, options), envelope: { shard, bucket: booleanOf(shard) } };
  },
  outcome(operation, value) {
    switch (operation.kind) {
      case 'put':
      case 'create':
        return writeOutcome(value as OutcomeOf<'commit-version'>);
      case 'remove': {
        const [item] = (value as OutcomeOf<'delete-versions'>).items;
        return item?.kind === 'deleted' ? { kind: 'gone' } : { kind: 'differs' };
      }
      case 'list': {
        const { objects, isTruncated } = value as ResultOf<'list-objects'>;
        const items = objects.map(({ key, summary }): [string, string] => [key, valueOfEtag(summary.etag)]);
        return { kind: 'page', items, isLast: !isTruncated };
      }
      default:
        return readOutcome(value as ResultOf<'get-version'>);
    }
  },
};
