// PutObjectLockConfiguration: switches a versioned bucket's object lock on, for good, and says what new versions get by default
// (service 2.4). Clearing that default is the one request whose answer has a body (service 4.1, extensions 5).
import { bucketArn, defineOperation } from '../operation.ts';
import { objectLockDocument, parseObjectLockBody } from '../xml/object-lock-xml.ts';
import { presentConfig } from './present-bucket.ts';
import { setBucketDocument } from './set-bucket-document.ts';

export const putObjectLockConfiguration = defineOperation({
  name: 'PutObjectLockConfiguration',
  match: { method: 'PUT', on: 'bucket', query: ['object-lock'] },
  logName: 'REST.PUT.OBJECT_LOCK_CONFIGURATION',
  body: 'xml',
  decidesInRun: true,
  errors: ['BadDigest', 'InvalidArgument', 'InvalidBucketState', 'InvalidRetentionPeriod', 'MalformedXML'],
  differences:
    'Days or Years of 0 or less are InvalidRetentionPeriod, not InvalidArgument. Without a Rule, or with the elements of one and nothing in them, it clears the default: the answer has the latter document, as GetObjectLockConfiguration has from then on. No digest of the body is demanded.',
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:PutBucketObjectLockConfiguration', resource]],
  parseDocument: parseObjectLockBody,
  async run(context, _input, rule) {
    if (rule.kind === 'rule') {
      const document = { defaultRetention: rule.retention };
      await setBucketDocument(context, { kind: 'objectLock', document });
      return { status: 200 };
    }
    const before = await presentConfig(context, 'objectLock');
    // Without a rule it is also how the lock of a bucket is switched on, which clears nothing.
    const hadRule = before?.defaultRetention !== undefined || before?.isCleared === true;
    const isCleared = rule.kind === 'cleared' || hadRule;
    const document = isCleared ? { isCleared: true as const } : {};
    await setBucketDocument(context, { kind: 'objectLock', document });
    if (!isCleared) return { status: 200 };
    return { status: 200, body: { kind: 'xml', text: objectLockDocument(document) } };
  },
});
