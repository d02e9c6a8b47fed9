// PutBucketVersioning: enabled or suspended, never off again. MfaDelete is read in both spellings (extensions 5);
// it can be set to Disabled only, because no account has a second factor that could enable it.
import { textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import { AppError } from '../../../types/errors.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { readXmlBody } from '../xml/xml-body.ts';
import { presentBucket } from './present-bucket.ts';

interface VersioningBody {
  versioning: 'enabled' | 'suspended' | undefined;
  mfaDelete: 'enabled' | 'disabled' | undefined;
}

export const putBucketVersioning = defineOperation({
  name: 'PutBucketVersioning',
  match: { method: 'PUT', on: 'bucket', query: ['versioning'] },
  logName: 'REST.PUT.VERSIONING',
  body: 'xml',
  errors: ['IllegalVersioningConfigurationException', 'MalformedXML', 'MissingRequestBodyError'],
  differences:
    'MfaDelete may be spelt MFADelete. Enabling it is AccessDenied: accounts have no second factor.',
  parse: ({ bucket }) => ({ resource: bucketArn(bucket) }),
  access: ({ resource }) => [['s3:PutBucketVersioning', resource]],
  parseDocument(xmlBody) {
    if (xmlBody.length === 0) throw new AppError('MissingRequestBodyError');
    return readXmlBody(xmlBody, 'VersioningConfiguration', parseBody);
  },
  async run(context, _input, { versioning, mfaDelete }) {
    if (versioning === undefined && mfaDelete === undefined) {
      throw new AppError('IllegalVersioningConfigurationException', {
        message: 'The Versioning element must be specified',
      });
    }
    if (mfaDelete === 'enabled') {
      const isEnabled = (versioning ?? (await presentBucket(context)).versioning) === 'enabled';
      throw new AppError(isEnabled ? 'AccessDenied' : 'IllegalVersioningConfigurationException');
    }
    const { homeShard, believed } = context.bucket();
    const { value } = await context.metadata.execute(
      { shard: homeShard, bucket: believed },
      'set-bucket-config',
      {
        bucketId: believed.bucketId,
        kind: 'versioning',
        document: { ...(versioning && { status: versioning }), ...(mfaDelete && { mfaDelete }) },
      },
    );
    if (value.kind === 'no-such-bucket') {
      throw new AppError('NoSuchBucket', { fields: { BucketName: believed.name } });
    }
    return { status: 200 };
  },
});

function parseBody(root: XmlElement): VersioningBody {
  const mfaDelete = textOf(root, 'MfaDelete');
  const otherSpelling = textOf(root, 'MFADelete');
  if (mfaDelete !== undefined && otherSpelling !== undefined) throw new XmlError('MfaDelete twice');
  return {
    versioning: choose(textOf(root, 'Status'), { Enabled: 'enabled', Suspended: 'suspended' }),
    mfaDelete: choose(mfaDelete ?? otherSpelling, { Enabled: 'enabled', Disabled: 'disabled' }),
  };
}

function choose<Value>(text: string | undefined, values: Record<string, Value>): Value | undefined {
  if (text === undefined) return undefined;
  const value = new Map(Object.entries(values)).get(text);
  if (value === undefined) throw new XmlError(`an unknown value: ${text}`);
  return value;
}
