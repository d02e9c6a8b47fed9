// Words of the tree of accounts that records, rules and the account management API share.
export const CONTACT_FIELDS = [
  'address1',
  'address2',
  'country',
  'city',
  'state',
  'zip',
  'mainPhone',
  'billingPhone',
  'contactEmail',
  'billingEmail',
  'businessNumber',
  'taxId',
  'fiscalNumber',
  'vatNumber',
  'website',
] as const;
export type ContactField = (typeof CONTACT_FIELDS)[number];
/** Absent: null on the wire. */
export type Contact = Partial<Record<ContactField, string>>;
export type PartnerLevel = 'governance' | 'control' | 'channel';
export type PartnerStatus = 'active' | 'deactivated' | 'deleted';
export type CustomerState = 'trial' | 'paid' | 'suspended' | 'deleted';
export type QuotaType = 'soft' | 'hard';
export type PartnerRole = 'Admin' | 'Staff' | 'Staff Lite' | 'Viewer';
export const MEMBER_ROLES = [
  'Root',
  'Administrator',
  'Full Access',
  'Full Access Limited',
  'Download Only',
  'Read Only',
] as const;
export type MemberRole = (typeof MEMBER_ROLES)[number];
export type MemberStatus = 'active' | 'deactivated' | 'deleted';
/** A change of contact fields: null takes the field away. */
export type ContactChanges = Partial<Record<ContactField, string | null>>;
