// The document of an access control list. There is one list yet, the one that `private` means: its owner may do all, and
// nobody else anything.
import { xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import type { AccountId } from '../../../types/names.ts';
import type { OperationContext } from '../context.ts';
import { s3Document } from '../request/vendor.ts';
import { identityXml } from './list-xml.ts';

/** SDKs distinguish kinds of grantees by this attribute. */
const GRANTEE = '<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser">';

/** AWS AccessControlPolicy: the owner, whose grant is the only one. */
export async function privateAclXml(context: OperationContext, owner: AccountId): Promise<string> {
  const identity = await identityXml(context, owner);
  const grantee = `${GRANTEE}${identity}</Grantee>`;
  return s3Document(
    'AccessControlPolicy',
    xmlElement('Owner', identity),
    xmlElement('AccessControlList', xmlElement('Grant', grantee, xmlText('Permission', 'FULL_CONTROL'))),
  );
}
