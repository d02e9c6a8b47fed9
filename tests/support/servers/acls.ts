// Access control lists as tests write them down: one line for each grant, and the documents and headers that say the same.
import { childOf, childrenOf, textOf } from '../../../src/base/xml/parse-xml.ts';
import { ACL_GROUP_URIS, type AclGroup } from '../../../src/types/acl.ts';
import type { RawAnswer } from './raw-s3.ts';
import { expectStatus, xmlOf } from './s3-api.ts';

/** The grants of an answer, in order: `GRANTEE PERMISSION`, where a grantee is a canonical id or the name of a group. */
export function grantsIn(answer: RawAnswer): string[] {
  expectStatus(answer, 200);
  const list = childOf(xmlOf(answer), 'AccessControlList');
  return childrenOf(list as NonNullable<typeof list>, 'Grant').map((grant) => {
    const grantee = childOf(grant, 'Grantee');
    const uri = grantee && textOf(grantee, 'URI');
    const name = uri === undefined ? grantee && textOf(grantee, 'ID') : uri.split('/').at(-1);
    return `${name} ${textOf(grant, 'Permission')}`;
  });
}

const XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"';

export function granteeXml(name: string): string {
  if (name in ACL_GROUP_URIS)
    return `<Grantee ${XSI} xsi:type="Group"><URI>${ACL_GROUP_URIS[name as AclGroup]}</URI></Grantee>`;
  if (name.includes('@'))
    return `<Grantee ${XSI} xsi:type="AmazonCustomerByEmail"><EmailAddress>${name}</EmailAddress></Grantee>`;
  return `<Grantee ${XSI} xsi:type="CanonicalUser"><ID>${name}</ID></Grantee>`;
}

/** The document that grants this, written as `grantsIn` reads it; grantees may be e-mail addresses. */
export function aclDocument(owner: string, grants: readonly string[]): Buffer {
  const elements = grants.map((grant) => {
    const [name = '', permission = ''] = grant.split(' ');
    return `<Grant>${granteeXml(name)}<Permission>${permission}</Permission></Grant>`;
  });
  return Buffer.from(
    `<AccessControlPolicy xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Owner><ID>${owner}</ID></Owner>` +
      `<AccessControlList>${elements.join('')}</AccessControlList></AccessControlPolicy>`,
  );
}
