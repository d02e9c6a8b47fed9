// The document of an access control list, AccessControlPolicy: written for answers, and read from requests.
import type { Steps } from '../../../base/async/steps.ts';
import { childOf, childrenOf, textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import { xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import {
  ACL_GROUP_URIS,
  ACL_PERMISSIONS,
  type Acl,
  type Grantee,
  grantsOf,
  isGroup,
} from '../../../types/acl.ts';
import { AppError } from '../../../types/errors.ts';
import type { OperationContext } from '../context.ts';
import {
  type GivenAcl,
  groupOf,
  type NamedGrant,
  type NamedGrantee,
  requireFew,
} from '../request/acl-headers.ts';
import { s3Document } from '../request/vendor.ts';
import { identityXml } from './list-xml.ts';
import { readXmlBody, requiredText } from './xml-body.ts';

const ROOT = 'AccessControlPolicy';
/** SDKs distinguish kinds of grantees by this attribute. */
const XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type';

export async function aclXml(context: OperationContext, acl: Acl): Promise<string> {
  const identities = new Map<Grantee, string>();
  const identityOf = async (grantee: Grantee): Promise<string> => {
    const known = identities.get(grantee);
    if (known !== undefined || isGroup(grantee))
      return known ?? xmlText('URI', ACL_GROUP_URIS[grantee as never]);
    const identity = await identityXml(context, grantee);
    identities.set(grantee, identity);
    return identity;
  };
  const owner = await identityOf(acl.owner);
  let grants = '';
  for (const { grantee, permission } of grantsOf(acl)) {
    const type = isGroup(grantee) ? 'Group' : 'CanonicalUser';
    const element = `<Grantee ${XSI}="${type}">${await identityOf(grantee)}</Grantee>`;
    grants += xmlElement('Grant', element, xmlText('Permission', permission));
  }
  return s3Document(ROOT, xmlElement('Owner', owner), xmlElement('AccessControlList', grants));
}

/**
 * What PutBucketAcl and PutObjectAcl set: by the header, or by the body. MalformedACLError; UnexpectedContent for both,
 * MissingSecurityHeader for neither.
 */
export function* takeAcl(xmlBody: Uint8Array, header: GivenAcl | undefined): Steps<GivenAcl> {
  if (xmlBody.length === 0) {
    if (header !== undefined) return header;
    throw new AppError('MissingSecurityHeader', { fields: { MissingHeaderName: 'x-amz-acl' } });
  }
  if (header !== undefined) throw new AppError('UnexpectedContent');
  try {
    const given = yield* readXmlBody(xmlBody, ROOT, parseAcl);
    requireFew(given.grants);
    return given;
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'MalformedXML') throw error;
    throw new AppError('MalformedACLError', { cause: error });
  }
}

function parseAcl(root: XmlElement): Extract<GivenAcl, { kind: 'grants' }> {
  const owner = childOf(root, 'Owner');
  const list = childOf(root, 'AccessControlList');
  if (owner === undefined || list === undefined) throw new XmlError('an Owner and an AccessControlList');
  const grants = childrenOf(list, 'Grant');
  if (grants.length !== list.children.length) throw new XmlError('grants alone');
  return { kind: 'grants', owner: requiredText(owner, 'ID'), grants: grants.map(parseGrant) };
}

function parseGrant(element: XmlElement): NamedGrant {
  const grantee = childOf(element, 'Grantee');
  const text = requiredText(element, 'Permission');
  const permission = ACL_PERMISSIONS.find((each) => each === text);
  if (grantee === undefined || permission === undefined)
    throw new XmlError('a Grantee and a known Permission');
  return { grantee: parseGrantee(grantee), permission };
}

function parseGrantee(element: XmlElement): NamedGrantee {
  switch (element.attributes.get('type')) {
    case 'CanonicalUser':
      return { kind: 'id', name: requiredText(element, 'ID') };
    case 'AmazonCustomerByEmail':
      return { kind: 'email', name: requiredText(element, 'EmailAddress') };
    case 'Group':
      return groupOf(requiredText(element, 'URI'));
    default:
      throw new XmlError(`a grantee of type ${textOf(element, 'type')}`);
  }
}
