// PutBucketAcl: the bucket's access control list, by a canned name, by grants in headers, or by a document.
import { bucketArn, defineOperation } from '../operation.ts';
import { ACL_HEADERS, parseAclHeaders } from '../request/acl-headers.ts';
import { resolveAcl } from '../sharing/resolve-acl.ts';
import { takeAcl } from '../xml/acl-xml.ts';
import { setBucketDocument } from './set-bucket-document.ts';

export const putBucketAcl = defineOperation({
  name: 'PutBucketAcl',
  match: { method: 'PUT', on: 'bucket', query: ['acl'] },
  logName: 'REST.PUT.ACL',
  body: 'xml',
  options: ACL_HEADERS,
  errors: [
    'InvalidArgument',
    'InvalidRequest',
    'MalformedACLError',
    'MissingSecurityHeader',
    'UnexpectedContent',
    'UnresolvableGrantByEmailAddress',
  ],
  differences:
    'A list that grants to everybody is AccessDenied for accounts that may not be public ([access.md](access.md)).',
  parse: ({ bucket, headers }) => ({ resource: bucketArn(bucket), header: parseAclHeaders(headers) }),
  access: ({ resource }) => [['s3:PutBucketAcl', resource]],
  parseDocument: (xmlBody, { header }) => takeAcl(xmlBody, header),
  async run(context, _input, given) {
    const { owner } = context.bucket().record;
    const grants = await resolveAcl(context, given, { owner });
    await setBucketDocument(context, { kind: 'acl', document: grants === undefined ? null : { grants } });
    return { status: 200 };
  },
});
