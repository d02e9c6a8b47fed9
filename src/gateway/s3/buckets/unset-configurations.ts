// Configurations that a bucket cannot have, yet or ever: asked for, they are answered as by a bucket where nothing is
// set, because backup software looks at all of them and takes a refusal for a fault. Who builds one of them takes its row
// out of here, and the rows that set it out of unsupported.ts, and writes a file of its own beside this one.
import { xmlText } from '../../../base/xml/write-xml.ts';
import { AppError, type ErrorCode } from '../../../types/errors.ts';
import { bucketArn, defineOperation, type OperationMatch } from '../operation.ts';
import { s3Document } from '../request/vendor.ts';
import { presentBucket } from './present-bucket.ts';

/** What AWS answers where nothing is set: a document, an error, or 204 to a request that takes settings away. */
type Nothing = { document: string } | { error: ErrorCode } | 'no-content';

function unset<const Name extends string>(row: {
  name: Name;
  method?: OperationMatch['method'];
  query: readonly string[];
  logName: string;
  action: string;
  nothing: Nothing;
}) {
  const { name, method = 'GET', query, logName, action, nothing } = row;
  const error = typeof nothing === 'object' && 'error' in nothing ? nothing.error : undefined;
  return defineOperation({
    name,
    match: { method, on: 'bucket', query },
    logName,
    body: 'none',
    errors: error === undefined ? [] : [error],
    neverSucceeds: error !== undefined,
    differences: 'The answer of a bucket where nothing is set: it cannot be set.',
    parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
    access: ({ resource }) => [[action, resource]],
    async run(context) {
      const bucket = await presentBucket(context);
      if (nothing === 'no-content') return { status: 204 };
      if ('error' in nothing) throw new AppError(nothing.error, { fields: { BucketName: bucket.name } });
      return { status: 200, body: { kind: 'xml', text: nothing.document } };
    },
  });
}

export const UNSET_BUCKET_CONFIGURATIONS = [
  unset({
    name: 'GetBucketWebsite',
    query: ['website'],
    logName: 'REST.GET.WEBSITE',
    action: 's3:GetBucketWebsite',
    nothing: { error: 'NoSuchWebsiteConfiguration' },
  }),
  unset({
    name: 'GetBucketReplication',
    query: ['replication'],
    logName: 'REST.GET.REPLICATION',
    action: 's3:GetReplicationConfiguration',
    nothing: { error: 'ReplicationConfigurationNotFoundError' },
  }),
  unset({
    name: 'DeleteBucketReplication',
    method: 'DELETE',
    query: ['replication'],
    logName: 'REST.DELETE.REPLICATION',
    action: 's3:PutReplicationConfiguration',
    nothing: 'no-content',
  }),
  unset({
    name: 'ListBucketInventoryConfigurations',
    query: ['inventory'],
    logName: 'REST.GET.INVENTORY',
    action: 's3:GetInventoryConfiguration',
    nothing: { document: s3Document('ListInventoryConfigurationsResult', xmlText('IsTruncated', false)) },
  }),
  unset({
    name: 'GetBucketInventoryConfiguration',
    query: ['inventory', 'id'],
    logName: 'REST.GET.INVENTORY',
    action: 's3:GetInventoryConfiguration',
    nothing: { error: 'NoSuchConfiguration' },
  }),
  unset({
    name: 'GetBucketLogging',
    query: ['logging'],
    logName: 'REST.GET.LOGGING_STATUS',
    action: 's3:GetBucketLogging',
    nothing: { document: s3Document('BucketLoggingStatus') },
  }),
  unset({
    name: 'GetBucketNotificationConfiguration',
    query: ['notification'],
    logName: 'REST.GET.NOTIFICATION',
    action: 's3:GetBucketNotification',
    nothing: { document: s3Document('NotificationConfiguration') },
  }),
] as const;
