// What a request is judged by: what its row asks for, of the bucket as it is, and again when that turns out to have changed.

import { beforeEach, describe, expect, test } from 'vitest';
import { must } from '../../base/assert.ts';
import { createFairTurns } from '../../base/async/fair-turns.ts';
import { finishAtOnce } from '../../base/async/steps.ts';
import type { AccessPair } from '../../policy/authorize.ts';
import { NO_POLICIES } from '../../policy/evaluate.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { AccountId, BucketId, BucketName } from '../../types/names.ts';
import type { AccountRecord, BucketRecord } from '../../types/records/rows.ts';
import type { Exchange } from '../http/exchange.ts';
import type { AccessRecord } from './access-record.ts';
import type { Caller } from './caller.ts';
import type { ResolvedBucket } from './context.ts';
import { defineOperation } from './operation.ts';
import { authorise, type Identity, runOperation, type S3Dependencies } from './pipeline-steps.ts';
import type { RequestFacts } from './request-facts.ts';
import { SeenObjects } from './seen-objects.ts';

const OWNER = '000000000001' as AccountId;

function bucketOf(versioning: BucketRecord['versioning'], owner = OWNER): ResolvedBucket {
  const [bucketId, name] = ['b000000000000001' as BucketId, 'bucket' as BucketName];
  const record: BucketRecord = {
    bucketId,
    name,
    nameEpoch: 1,
    owner,
    state: 'open',
    createdAtMs: 0,
    cfgVersion: 1,
    versioning,
  };
  return { record, configs: {}, homeShard: 0, believed: { bucketId, name, cfgVersion: 1 } };
}

/** Where no versions are kept it needs a right that only accounts have; and so it does for each key that the document names. */
const row = defineOperation({
  name: 'PutObject',
  match: { method: 'PUT', on: 'object' },
  logName: '',
  body: 'xml',
  errors: [],
  parse: () => ({}),
  access: (_input, bucket): readonly AccessPair[] =>
    bucket?.versioning === 'enabled' ? [] : [['s3:DeleteObject', 'arn:aws:s3:::bucket/key']],
  // biome-ignore lint/correctness/useYield: it is short
  *parseDocument(xmlBody) {
    return xmlBody.toString().split(' ').filter(Boolean);
  },
  documentAccess: (_input, keys) =>
    keys.map((key): AccessPair => ['s3:GetObject', `arn:aws:s3:::bucket/${key}`]),
  async run(context) {
    const { believed, homeShard } = context.bucket();
    const target = { shard: homeShard, bucket: believed };
    await context.metadata.query(target, 'get-bucket', { bucketId: believed.bucketId });
    askedCount++;
    return { status: 200 };
  },
});

const ANONYMOUS: Caller = { kind: 'anonymous' };
const OWNING: Caller = {
  kind: 'account',
  account: { accountId: OWNER } as AccountRecord,
  principal: {
    caller: { kind: 'root', accountId: OWNER, canonicalId: 'c', arn: `arn:aws:iam::${OWNER}:root` },
    policies: () => NO_POLICIES,
    id: 'root',
    valuesAt: () => () => undefined,
  },
  accessKey: 'k',
  signatureVersion: 'SigV4',
  authType: 'AuthHeader',
};

/** As the shard has it; undefined: as it was found. */
let present: ResolvedBucket | undefined;
let askedCount = 0;
beforeEach(() => {
  [present, askedCount] = [undefined, 0];
});

const metadata: Pick<MetadataPort, 'query'> = {
  async query({ bucket }) {
    const isStale = bucket !== undefined && present !== undefined && bucket !== present.believed;
    if (isStale) return { kind: 'stale-bucket', bucket: present?.record ?? null, timeMs: 0 } as never;
    return { kind: 'done', value: { kind: 'no-such-key' }, timeMs: 0 } as never;
  },
};
const deps = {
  identities: { account: async () => null },
  metadata,
  buckets: { read: async () => present },
  // Other tests may have compared much in this process.
  turns: createFairTurns(),
} as unknown as S3Dependencies;

/** From step 7 on, with a bucket that is only known from before. `text`: of the document. */
async function serve(caller: Caller, bucket: ResolvedBucket, text = ''): Promise<string> {
  const identity = { caller, form: { kind: 'plain' } } as Identity;
  const found = { bucket, isCached: true };
  const record = {} as AccessRecord;
  const asked = { facts: { contextOf: () => undefined, seen: new SeenObjects() } as unknown as RequestFacts };
  const parts = { row, input: {} as never, headers: {}, identity, found, record, ...asked };
  try {
    const granted = await authorise(deps, parts);
    const rest = { exchange: { inTime: (work: unknown) => work } as Exchange, isVirtualHost: false };
    const document = finishAtOnce(
      must(row.parseDocument, 'it takes one')(Buffer.from(text), parts.input),
    ) as never;
    const { status } = await runOperation(deps, { ...parts, ...rest, granted, document });
    return String(status);
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

describe('requirements on a bucket', () => {
  test.each([
    ['that keeps versions', bucketOf('enabled'), ANONYMOUS, '200'],
    ['that keeps none', bucketOf('suspended'), ANONYMOUS, 'AccessDenied'],
    ['that keeps none, by its owner', bucketOf('suspended'), OWNING, '200'],
  ])('%s', async (_, bucket, caller, outcome) => {
    present = bucket;
    expect(await serve(caller, bucket)).toBe(outcome);
    expect(askedCount).toBe(outcome === '200' ? 1 : 0);
  });

  test('hold for the present bucket, where the cached one would refuse', async () => {
    present = bucketOf('enabled');
    expect(await serve(ANONYMOUS, bucketOf('suspended'))).toBe('200');
  });

  test('hold for the present bucket, where the cached one would allow (R45)', async () => {
    present = bucketOf('suspended');
    expect(await serve(ANONYMOUS, bucketOf('enabled'))).toBe('AccessDenied');
    expect(askedCount).toBe(0);
    expect(await serve(OWNING, bucketOf('enabled'))).toBe('200');
  });
});

describe('requirements from a document', () => {
  const bucket = bucketOf('enabled');
  const others = bucketOf('enabled', '000000000002' as AccountId);

  test.each([
    ['nothing', ANONYMOUS, '', '200'],
    ['a key', ANONYMOUS, 'a', 'AccessDenied'],
    ['keys, by their owner', OWNING, 'a b', '200'],
  ])('is judged before it is done: %s', async (_, caller, text, outcome) => {
    present = bucket;
    expect(await serve(caller, bucket, text)).toBe(outcome);
    expect(askedCount).toBe(outcome === '200' ? 1 : 0);
  });

  test('hold for the present bucket, where the cached one would refuse', async () => {
    present = bucket;
    expect(await serve(OWNING, others, 'a')).toBe('200');
  });

  test('hold again when the shard reports a changed bucket (R45)', async () => {
    present = others;
    expect(await serve(OWNING, bucket)).toBe('200');
    expect(await serve(OWNING, bucket, 'a b')).toBe('AccessDenied');
  });
});
