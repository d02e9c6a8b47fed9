// What is known of a request when it is decided whether it may go on (policy/authorize.ts): taken from it when a rule looks.

import type { RequestFacts } from '../../policy/authorize.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { ObjectKey, VersionId } from '../../types/names.ts';
import { requireDone } from '../../types/require-done.ts';
import type { Tag } from '../../types/tags.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ResolvedBucket } from './context.ts';
import { bucketArn, type OperationRequest } from './operation.ts';
import type { Target } from './request/target.ts';

export function createRequestFacts(
  deps: { clock: ClockPort },
  parts: { exchange: Exchange; headers: OperationRequest['headers']; target: Target },
): RequestFacts {
  const { exchange, headers, target } = parts;
  const query = target.query.parameters;
  let nowMs: number | undefined;
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
  };
}

/** The stored tags of an object; empty where the resource names none, or none is there. `versionId`: of that version. */
export async function readTags(
  metadata: MetadataPort,
  {
    bucket,
    resource,
    versionId,
  }: { bucket: ResolvedBucket; resource: string; versionId?: VersionId | undefined },
): Promise<readonly Tag[]> {
  const prefix = `${bucketArn(bucket.record.name)}/`;
  if (!resource.startsWith(prefix)) return [];
  const key = resource.slice(prefix.length) as ObjectKey;
  const { bucketId } = bucket.believed;
  const query = { bucketId, key, includeBody: false, ...(versionId && { versionId }) };
  const found = requireDone(await metadata.query({ shard: bucket.homeShard }, 'get-version', query));
  return found.kind === 'found' ? (found.version.tags ?? []) : [];
}
