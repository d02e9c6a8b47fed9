// What is known of a request when it is decided whether it may go on (policy/authorize.ts): taken from it when a rule looks.

import type { RequestFacts } from '../../policy/authorize.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata.ts';
import { settleReply } from '../../types/settle-reply.ts';
import type { Tag } from '../../types/tags.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResolvedBucket } from './context.ts';
import type { OperationRequest } from './operation.ts';
import { parseVersionId } from './request/arguments.ts';
import type { Target } from './request/target.ts';

export function createRequestFacts(
  deps: { metadata: MetadataPort; clock: ClockPort },
  parts: {
    exchange: Exchange;
    headers: OperationRequest['headers'];
    target: Target;
    bucket: ResolvedBucket | undefined;
  },
): RequestFacts {
  const { exchange, headers, target, bucket } = parts;
  const query = target.query.parameters;
  let nowMs: number | undefined;
  let tags: Promise<readonly Tag[]> | undefined;
  return {
    get remoteAddress() {
      return exchange.client.remoteAddress;
    },
    get isTls() {
      return exchange.client.scheme === 'https';
    },
    get nowMs() {
      nowMs ??= deps.clock.wallMs();
      return nowMs;
    },
    header: (name) => headers[name],
    parameter: (name) => query.get(name),
    objectTags() {
      tags ??= readTags(deps.metadata, { bucket, key: target.key, versionId: query.get('versionId') });
      return tags;
    },
  };
}

async function readTags(
  metadata: MetadataPort,
  {
    bucket,
    key,
    versionId: text,
  }: { bucket: ResolvedBucket | undefined; key: string; versionId: string | undefined },
): Promise<readonly Tag[]> {
  if (bucket === undefined || key === '') return [];
  const { bucketId } = bucket.claim;
  const versionId = parseVersionId(text);
  const query = { bucketId, key: key as never, includeBody: false, ...(versionId && { versionId }) };
  const found = settleReply(await metadata.query({ shard: bucket.homeShard }, 'get-version', query));
  return found.kind === 'found' ? (found.version.tags ?? []) : [];
}
