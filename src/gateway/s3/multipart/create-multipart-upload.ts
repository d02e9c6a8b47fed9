// Begins a multipart upload: keeps the headers that the object will have, and how it is to be summed.
import { escapeXml } from '../../../base/xml/write-xml.ts';
import { defineOperation, objectArn } from '../operation.ts';
import { ACL_HEADERS, aclAccess, parseAclHeaders } from '../request/acl-headers.ts';
import { parseUploadChecksum } from '../request/checksum-headers.ts';
import { customerKeyAnswer, parseCustomerKey } from '../request/customer-key.ts';
import { abortHeaders } from '../request/lifecycle-headers.ts';
import { parseObjectHeaders } from '../request/object-headers.ts';
import { admitLock, LOCK_HEADERS, lockAccess, parseLockHeaders } from '../request/object-lock.ts';
import { parseTaggingHeader, taggingAccess } from '../request/tagging.ts';
import { s3Document } from '../request/vendor.ts';
import { admitWriter, resolveAcl } from '../sharing/resolve-acl.ts';

export const createMultipartUpload = defineOperation({
  name: 'CreateMultipartUpload',
  match: { method: 'POST', on: 'object', query: ['uploads'] },
  logName: 'REST.POST.UPLOADS',
  body: 'none',
  beginsStoring: true,
  options: [...ACL_HEADERS, ...LOCK_HEADERS],
  errors: [
    'InvalidArgument',
    'InvalidEncryptionAlgorithmError',
    'InvalidRequest',
    'InvalidTag',
    'MalformedACLError',
    'MetadataTooLarge',
    'UnresolvableGrantByEmailAddress',
  ],
  parse: (request) => {
    const { bucket, key, headers } = request;
    return {
      bucket,
      key,
      resource: objectArn({ bucket, key }),
      headers: parseObjectHeaders(headers),
      tags: parseTaggingHeader(headers),
      acl: parseAclHeaders(headers),
      lock: parseLockHeaders(headers),
      checksum: parseUploadChecksum(headers),
      customerKey: parseCustomerKey(request),
    };
  },
  access: ({ resource, tags, acl, lock }) => [
    ['s3:PutObject', resource, undefined, { givenTags: tags }],
    ...taggingAccess(resource, tags),
    ...aclAccess(resource, acl),
    ...lockAccess(resource, lock),
  ],
  async run(context, { bucket, key, headers, tags, checksum, customerKey, ...input }) {
    const lock = await admitLock(context, input.lock);
    const owner = await admitWriter(context);
    const bucketOwner = context.bucket().record.owner;
    const upload = await context.objects.createUpload({
      calls: context.metadata,
      bucket: context.bucket(),
      key,
      owner,
      initiator: owner,
      headers,
      ...(tags && { tags }),
      acl: await resolveAcl(context, input.acl, { owner, bucketOwner }),
      lock,
      customerKey: customerKey?.secret,
      ...(checksum && { checksum }),
    });
    const text = s3Document(
      'InitiateMultipartUploadResult',
      `<Bucket>${bucket}</Bucket><Key>${escapeXml(key)}</Key><UploadId>${upload.uploadId}</UploadId>`,
    );
    return {
      status: 200,
      headers: {
        'x-amz-checksum-algorithm': checksum?.algorithm,
        'x-amz-checksum-type': checksum?.type,
        ...customerKeyAnswer(customerKey),
        ...abortHeaders(context, upload),
      },
      body: { kind: 'xml', text },
    };
  },
});
