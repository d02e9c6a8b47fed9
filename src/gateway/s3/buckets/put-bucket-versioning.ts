// PutBucketVersioning: enabled or suspended, never off again. MfaDelete is read in both spellings (extensions 5). Only the
// account's root with a second factor sets it, and while it is on, changes the state (service 3, extensions 3.1).
import { textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import { AppError } from '../../../types/errors.ts';
import type { OperationContext } from '../context.ts';
import { bucketArn, defineOperation } from '../operation.ts';
import { mayHaveFactorFor, secondFactorMissing } from '../second-factor.ts';
import { readXmlBody } from '../xml/xml-body.ts';
import { presentBucket, presentConfig } from './present-bucket.ts';
import { setBucketDocument } from './set-bucket-document.ts';

interface VersioningBody {
  versioning: 'enabled' | 'suspended' | undefined;
  mfaDelete: 'enabled' | 'disabled' | undefined;
}

export const putBucketVersioning = defineOperation({
  name: 'PutBucketVersioning',
  match: { method: 'PUT', on: 'bucket', query: ['versioning'] },
  logName: 'REST.PUT.VERSIONING',
  body: 'xml',
  decidesInRun: true,
  errors: [
    'IllegalVersioningConfigurationException',
    'InvalidBucketState',
    'MalformedXML',
    'MissingRequestBodyError',
  ],
  differences: 'MfaDelete may be spelt MFADelete.',
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
    await checkMfaDelete(context, { versioning, mfaDelete });
    await setBucketDocument(context, {
      kind: 'versioning',
      document: { ...(versioning && { status: versioning }), ...(mfaDelete && { mfaDelete }) },
    });
    return { status: 200 };
  },
});

/** Throws AccessDenied, IllegalVersioningConfigurationException. */
async function checkMfaDelete(context: OperationContext, { versioning, mfaDelete }: VersioningBody) {
  const isOn = (await presentConfig(context, 'versioning'))?.mfaDelete === 'enabled';
  if (mfaDelete === 'enabled' || isOn) {
    const { caller } = context;
    // Roots of other accounts are roots, too, and have devices of their own.
    const isOwn = mayHaveFactorFor(context.bucket(), caller);
    const isRoot = caller.kind === 'account' && caller.principal.caller.kind === 'root';
    if (!isOwn || !isRoot) {
      const message = 'Only the root of the account changes the versioning of a bucket with MFA delete.';
      throw new AppError('AccessDenied', { message });
    }
  }
  if (mfaDelete === 'enabled') {
    const state = versioning ?? (await presentBucket(context)).versioning;
    if (state !== 'enabled') throw new AppError('IllegalVersioningConfigurationException');
  }
  if ((mfaDelete === 'enabled' || isOn) && !(await context.hasSecondFactor())) throw secondFactorMissing();
}

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
