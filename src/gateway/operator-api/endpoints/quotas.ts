// Quotas of accounts and buckets, for `holdfast quota`.
import type { FastifyInstance } from 'fastify';
import {
  checkQuota,
  normaliseQuota,
  readAccountQuota,
  setAccountQuota,
} from '../../../metadata/quotas/operate-quotas.ts';
import type { MetadataPort } from '../../../ports/metadata/port.ts';
import type { HeldAmount, Quota } from '../../../types/quota.ts';
import { requireDone } from '../../../types/require-done.ts';
import { inputOf, numberOf, objectOf, optional } from '../../http/json-schemas.ts';
import { BUCKET_PARAMETER, findBucket, noSuchBucket, type OfBucket } from '../find-bucket.ts';
import type { OperatorContext } from '../operator-context.ts';
import { ACCOUNT_PARAMETER } from './accounts.ts';

interface Bounds {
  hardBytes?: number;
  hardObjects?: number;
  softBytes?: number;
  softObjects?: number;
}

type ShownQuota = Bounds & { heldBytes: number; heldObjects: number };

interface OfAccount {
  Params: { account: string };
}

const BOUNDS = {
  hardBytes: optional(numberOf('Bytes of versions: what would go beyond is refused with QuotaExceeded.')),
  hardObjects: optional(numberOf('Versions of objects, likewise.')),
  softBytes: optional(numberOf('Bytes of versions: what goes beyond is reported.')),
  softObjects: optional(numberOf('Versions of objects, likewise.')),
};
const INPUT = inputOf<Bounds>(BOUNDS);
const SHOWN = {
  200: {
    description: 'The bounds, and what is held.',
    ...objectOf<ShownQuota>({
      ...BOUNDS,
      heldBytes: numberOf('Bytes of versions, and of parts of open uploads.'),
      heldObjects: numberOf(),
    }),
  },
};
const TAGS = ['quotas'];
const ABOUT = 'Absent bounds are taken away.';

function quotaOf({ hardBytes, hardObjects, softBytes, softObjects }: Bounds): Quota {
  const bounds = (bytes: number | undefined, objects: number | undefined) => ({
    ...(bytes !== undefined && { bytes }),
    ...(objects !== undefined && { objects }),
  });
  return { hard: bounds(hardBytes, hardObjects), soft: bounds(softBytes, softObjects) };
}

function shownOf({ hard, soft }: Quota, { bytes, objects }: HeldAmount): ShownQuota {
  const bounds = Object.entries({ hard, soft }).flatMap(([kind, of]) => [
    ...(of?.bytes === undefined ? [] : [[`${kind}Bytes`, of.bytes]]),
    ...(of?.objects === undefined ? [] : [[`${kind}Objects`, of.objects]]),
  ]);
  return { ...Object.fromEntries(bounds), heldBytes: bytes, heldObjects: objects };
}

export async function quotas(app: FastifyInstance, { context }: { context: OperatorContext }): Promise<void> {
  const { metadata } = context;
  const readAccount = async (reference: string) => {
    const { accountId } = (await context.accounts.find(reference)).account;
    const { quota, held } = await readAccountQuota(metadata, accountId);
    return shownOf(quota, held);
  };
  app.get<OfAccount>(
    '/accounts/:account/quota',
    {
      schema: {
        operationId: 'GetAccountQuota',
        summary: 'See the quota of an account, and what it holds',
        tags: TAGS,
        params: ACCOUNT_PARAMETER,
        response: SHOWN,
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    ({ params }) => readAccount(params.account),
  );
  app.put<OfAccount & { Body: Bounds }>(
    '/accounts/:account/quota',
    {
      schema: {
        operationId: 'SetAccountQuota',
        summary: 'Bound what an account holds',
        description: ABOUT,
        tags: TAGS,
        params: ACCOUNT_PARAMETER,
        body: INPUT,
        response: SHOWN,
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    async ({ params, body }) => {
      const { accountId } = (await context.accounts.find(params.account)).account;
      await setAccountQuota(metadata, { accountId, source: 'operator', quota: quotaOf(body) });
      return readAccount(params.account);
    },
  );
  addBuckets(app, metadata);
}

function addBuckets(app: FastifyInstance, metadata: MetadataPort): void {
  app.get<OfBucket>(
    '/buckets/:bucket/quota',
    {
      schema: {
        operationId: 'GetBucketQuota',
        summary: 'See the quota of a bucket, and what it holds',
        tags: TAGS,
        params: BUCKET_PARAMETER,
        response: SHOWN,
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    ({ params }) => readBucket(metadata, params.bucket),
  );
  app.put<OfBucket & { Body: Bounds }>(
    '/buckets/:bucket/quota',
    {
      schema: {
        operationId: 'SetBucketQuota',
        summary: 'Bound what a bucket holds',
        description: ABOUT,
        tags: TAGS,
        params: BUCKET_PARAMETER,
        body: INPUT,
        response: SHOWN,
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable'] },
    },
    async ({ params, body }) => {
      const quota = quotaOf(body);
      checkQuota(quota);
      const { homeShard, record } = await findBucket(metadata, params.bucket);
      const reply = await metadata.execute({ shard: homeShard }, 'set-bucket-config', {
        bucketId: record.bucketId,
        kind: 'quota',
        document: normaliseQuota(quota),
      });
      if (requireDone(reply).kind !== 'changed') throw noSuchBucket();
      return readBucket(metadata, params.bucket);
    },
  );
}

async function readBucket(metadata: MetadataPort, name: string): Promise<ShownQuota> {
  const { homeShard, record, configs } = await findBucket(metadata, name);
  const { bucketId } = record;
  const reply = await metadata.query({ shard: homeShard }, 'get-held-by-bucket', { bucketId });
  return shownOf(configs.quota ?? {}, requireDone(reply).held);
}
