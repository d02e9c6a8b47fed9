// HEAD of an object: what GET would say, without the bytes. Its errors have no body either.
import { defineOperation } from '../operation.ts';
import { parseRead, prepareRead, READ_PARAMETERS, readAccess } from './prepare-read.ts';

export const headObject = defineOperation({
  name: 'HeadObject',
  match: { method: 'HEAD', on: 'object' },
  logName: 'REST.HEAD.OBJECT',
  body: 'none',
  parameters: READ_PARAMETERS,
  errors: [
    'InvalidArgument',
    'InvalidEncryptionAlgorithmError',
    'InvalidPart',
    'InvalidRange',
    'InvalidRequest',
    'NoSuchKey',
    'NoSuchVersion',
    'NotModified',
    'PreconditionFailed',
  ],
  differences: 'As GetObject.',
  parse: parseRead,
  access: readAccess,
  async run(context, input) {
    const { status, headers, range } = await prepareRead(context, input, { includeBody: false });
    headers['Content-Length'] = range.sizeBytes;
    return { status, headers };
  },
});
