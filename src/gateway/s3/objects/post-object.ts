// POST of an object by a form, as browsers send it: PUT in another dress. What makes headers of its fields is in forms/.
import { must } from '../../../base/assert.ts';
import { percentEncode, textToBytes } from '../../../base/text/uri.ts';
import { XML_DECLARATION, xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import { redirectTo } from '../forms/success-action.ts';
import { defineOperation } from '../operation.ts';
import { TOKEN_HEADER } from '../request/idempotency-token.ts';
import { WRITE_CONDITION_HEADERS } from '../request/write-conditions.ts';
import { parseUpload, putObject, upload, uploadAccess } from './put-object.ts';

export const postObject = defineOperation({
  name: 'PostObject',
  match: { method: 'POST', on: 'bucket' },
  logName: 'REST.POST.OBJECT',
  body: 'form',
  conditions: WRITE_CONDITION_HEADERS,
  options: (putObject.options ?? []).filter((name) => name !== TOKEN_HEADER),
  errors: [
    'BadDigest',
    'EntityTooLarge',
    'EntityTooSmall',
    'InvalidArgument',
    'InvalidEncryptionAlgorithmError',
    'InvalidPolicyDocument',
    'InvalidTag',
    'MalformedACLError',
    'MalformedPOSTRequest',
    'MalformedXML',
    'MaxPostPreDataLengthExceeded',
    'MetadataTooLarge',
    'NoSuchKey',
    'PreconditionFailed',
    'QuotaExceeded',
    'UnresolvableGrantByEmailAddress',
  ],
  differences:
    'Operators of a policy (`eq`, `starts-with`, `content-length-range`) are case-sensitive. `x-amz-checksum-*` needs no condition. A field may be in a form once only. `if-none-match` and `if-match` work as fields, too. With `Transfer-Encoding: chunked` the form may come without a length. See [access.md](access.md#forms).',
  parse: (request) => ({
    ...parseUpload(request),
    bucket: request.bucket,
    action: must(request.successAction, 'the pipeline has read the form'),
  }),
  access: (input) => uploadAccess(input),
  async run(context, input) {
    const { bucket, key, action } = input;
    const headers = await upload(context, { ...input, event: 's3:ObjectCreated:Post' });
    const etag = String(headers.ETag);
    if (action.redirect !== undefined) {
      const Location = redirectTo(action.redirect, { bucket, key, etag });
      return { status: 303, headers: { ...headers, Location } };
    }
    // The one place where AWS encodes the slashes of a key.
    const Location = `${context.bucketUrl()}/${percentEncode(textToBytes(key))}`;
    const answer = { status: action.status, headers: { ...headers, Location } };
    if (action.status !== 201) return answer;
    const text = xmlElement(
      'PostResponse',
      xmlText('Location', Location),
      xmlText('Bucket', bucket),
      xmlText('Key', key),
      xmlText('ETag', etag),
    );
    return { ...answer, body: { kind: 'xml', text: XML_DECLARATION + text } };
  },
});
