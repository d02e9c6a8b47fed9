// GET of an object, whole, a range or a part. The story goes on in objects/read-object.ts.
import { defineOperation } from '../operation.ts';
import { parseRead, prepareRead, READ_PARAMETERS, readAccess } from './prepare-read.ts';

export const getObject = defineOperation({
  name: 'GetObject',
  match: { method: 'GET', on: 'object' },
  logName: 'REST.GET.OBJECT',
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
  differences:
    'A part number beyond the last part is 400 InvalidPart. Request headers that begin with "response-" are echoed without that prefix, but those that are the server\'s to say ([security.md](security.md#requests)). User metadata comes back as the bytes that were sent. What a browser might run as a page (all but some types of media, text and archives) has a Content-Security-Policy at hosts that name no bucket, which keeps it apart from other pages of that host. Another key of the customer than the object\'s is 400 InvalidRequest.',
  parse: parseRead,
  access: readAccess,
  async run(context, input) {
    const { status, headers, found, range } = await prepareRead(context, input, { includeBody: true });
    const body = await context.objects.openObject({
      calls: context.metadata,
      bucket: context.bucket(),
      key: input.key,
      found,
      customerKey: input.customerKey?.secret,
      range,
      signal: context.signal(),
    });
    return { status, headers: { ...headers, ...context.pageGuard(headers['Content-Type']) }, body };
  },
});
