// DELETE of an object, or of one version of it. What a delete means in each state of versioning is decided in the
// shard (metadata/versions/delete-versions.ts).
import { must } from '../../../base/assert.ts';
import type { AccessPair, PairOptions } from '../../../policy/authorize.ts';
import type { DeleteItem } from '../../../ports/metadata/versions.ts';
import { deletesByMarker } from '../../../types/versioning.ts';
import type { OperationContext } from '../context.ts';
import { defineOperation, objectArn } from '../operation.ts';
import { parseVersionId } from '../request/arguments.ts';
import { asksBypass, BYPASS_HEADER, mayBypass } from '../request/object-lock.ts';
import {
  conditionAccess,
  DELETE_CONDITION_HEADERS,
  parseDeleteConditions,
} from '../request/write-conditions.ts';
import { writerOf } from '../sharing/resolve-acl.ts';
import { requireDeleted } from './delete-outcome.ts';

/** What a deletion needs. A delete marker takes nothing away. `values`: where its conditions are not the request's headers. */
export function deleteAccess(
  resource: string,
  { versionId, conditions }: Pick<DeleteItem, 'versionId' | 'conditions'>,
  values?: PairOptions['values'],
): readonly AccessPair[] {
  const own = values && { values };
  const pair: AccessPair =
    versionId === undefined
      ? ['s3:DeleteObject', resource, undefined, own ?? {}]
      : ['s3:DeleteObjectVersion', resource, undefined, { versionId, removesVersion: true, ...own }];
  return [pair, ...conditionAccess(resource, conditions, versionId)];
}

/** Whether a deletion that asks for it bypasses retention in GOVERNANCE mode. A delete marker needs no bypass. */
export async function mayBypassOf(
  context: OperationContext,
  resource: string,
  { versionId }: Pick<DeleteItem, 'versionId'>,
): Promise<boolean> {
  return versionId !== undefined && (await mayBypass(context, resource));
}

export const deleteObject = defineOperation({
  name: 'DeleteObject',
  match: { method: 'DELETE', on: 'object' },
  logName: 'REST.DELETE.OBJECT',
  body: 'none',
  parameters: ['versionId'],
  conditions: DELETE_CONDITION_HEADERS,
  options: [BYPASS_HEADER],
  decidesInRun: true,
  errors: ['InvalidArgument', 'PreconditionFailed'],
  differences:
    '`x-amz-bypass-governance-retention` is taken in any bucket, and is passed over where the caller lacks s3:BypassGovernanceRetention.',
  parse: ({ bucket, key, query, headers }) => {
    const versionId = parseVersionId(query.get('versionId'));
    const conditions = parseDeleteConditions(headers);
    const item: DeleteItem = {
      key,
      ...(versionId !== undefined && { versionId }),
      ...(conditions && { conditions }),
    };
    return { item, resource: objectArn({ bucket, key }), asksBypass: asksBypass(headers) };
  },
  access: ({ item, resource }) => deleteAccess(resource, item),
  async run(context, { item, resource, asksBypass }) {
    const bypasses = asksBypass && (await mayBypassOf(context, resource, item));
    const { homeShard, believed, record } = context.bucket();
    const { value } = await context.metadata.execute(
      { shard: homeShard, bucket: believed },
      'delete-versions',
      {
        bucketId: believed.bucketId,
        owner: writerOf(context),
        items: [bypasses ? { ...item, bypassesGovernance: true } : item],
        mayMark: deletesByMarker(record.versioning),
      },
    );
    const deleted = requireDeleted(must(value.items[0], 'an outcome for each item'));
    context.record.removedBytes = deleted.removedBytes ?? 0;
    return {
      status: 204,
      headers: {
        'x-amz-version-id': deleted.versionId,
        'x-amz-delete-marker': deleted.isDeleteMarker ? 'true' : undefined,
      },
    };
  },
});
