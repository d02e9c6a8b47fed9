// GetBucketVersioning: an empty document until versioning was ever set; MfaDelete likewise only once it was.
import { xmlText } from '../../../base/xml/write-xml.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { s3Document } from '../request/vendor.ts';
import { presentConfig } from './present-bucket.ts';

const MFA_DELETE = { enabled: 'Enabled', disabled: 'Disabled' } as const;
const STATUS = { enabled: 'Enabled', suspended: 'Suspended' } as const;

export const getBucketVersioning = defineOperation({
  name: 'GetBucketVersioning',
  match: { method: 'GET', on: 'bucket', query: ['versioning'] },
  logName: 'REST.GET.VERSIONING',
  body: 'none',
  errors: [],
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:GetBucketVersioning', resource]],
  async run(context) {
    const { status, mfaDelete } = (await presentConfig(context, 'versioning')) ?? {};
    const text = s3Document(
      'VersioningConfiguration',
      xmlText('Status', status && STATUS[status]),
      xmlText('MfaDelete', mfaDelete && MFA_DELETE[mfaDelete]),
    );
    return { status: 200, body: { kind: 'xml', text } };
  },
});
