// What IAM asks of documents of identities: versions, actions and resources, in the order and the words in which it answers.
import type { DocumentForm, PlacedText, StatementForm } from './read-document.ts';
import { DocumentFault, type DocumentType, formFault, shorten } from './wording.ts';

/** Behind the form and the conditions. Throws DocumentFault. */
export function checkIdentityDocument(form: DocumentForm, type: DocumentType): void {
  const { statements } = form;
  for (const { principals } of statements) {
    if (principals !== undefined)
      throw new DocumentFault('Policy document should not specify a principal.', { place: principals.place });
  }
  const resourceFault = findResourceFault(statements);
  checkSids(statements, type);
  for (const { place, actions } of statements) {
    if (actions === undefined || actions.texts.length === 0)
      throw new DocumentFault('Policy statement must contain actions.', { place });
  }
  // A statement without resources is reported after an action that is none, as IAM does.
  const isWithoutResources = ({ resources }: StatementForm) =>
    resources === undefined || resources.texts.length === 0;
  const lacking = statements.find(isWithoutResources);
  if (lacking !== undefined) {
    checkActions(statements);
    throw new DocumentFault('Policy statement must contain resources.', { place: lacking.place });
  }
  if (resourceFault !== undefined) throw resourceFault;
  checkActions(statements);
}

/** Identity and boundary documents must be of 2012; sessions and trust may say nothing, as AWS takes them. */
export function checkVersion({ version }: DocumentForm, type: DocumentType): void {
  if (type !== 'identity' && type !== 'boundary') return;
  if (version !== '2012-10-17')
    throw new DocumentFault('Policy document must be version 2012-10-17 or greater.', { place: 'Version' });
}

/** Letters and digits only; an empty one is none. */
export function checkSids(statements: readonly StatementForm[], type: DocumentType): void {
  const seen = new Set<string>();
  for (const { sid, place } of statements) {
    if (!sid) continue;
    const at = `${place}.Sid`;
    if (!/^[0-9A-Za-z]+$/.test(sid)) {
      const message =
        'Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular expression [0-9A-Za-z]*';
      throw new DocumentFault(message, { place: at });
    }
    if (seen.has(sid)) throw formFault(type, 'sid-twice', { place: at });
    seen.add(sid);
  }
}

export function legacyFault(place: string): DocumentFault {
  return new DocumentFault('The policy failed legacy parsing', { place });
}

const VENDOR = /^[a-zA-Z0-9.-]*$/;

function checkActions(statements: readonly StatementForm[]): void {
  for (const { actions } of statements) {
    for (const { text, place } of actions?.texts ?? []) {
      const [vendor = '', ...rest] = text.split(':');
      if (rest.length === 0 && vendor !== '*') {
        const message = 'Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.';
        throw new DocumentFault(message, { place });
      }
      if (rest.length > 1)
        throw new DocumentFault('Actions/Condition can contain only one colon.', { place });
      if (vendor !== '*' && !VENDOR.test(vendor))
        throw new DocumentFault(`Vendor ${shorten(vendor)} is not valid`, { place });
    }
  }
}

/** The first that a resource of the document has; throws the faults that IAM reports before all others. */
function findResourceFault(statements: readonly StatementForm[]): DocumentFault | undefined {
  for (const { resources } of statements) {
    for (const resource of resources?.texts ?? []) {
      const message = resourceFaultOf(resource);
      if (message !== undefined) return new DocumentFault(message, { place: resource.place });
      checkLegacyForm(resource);
    }
  }
  return undefined;
}

function checkLegacyForm({ text, place }: PlacedText): void {
  if (text === '*') return;
  const parts = text.split(':');
  if ((parts.length < 6 && text.includes('::')) || parts[2] === '') throw legacyFault(place);
}

const IAM_PATHS = [
  'user/',
  'federated-user/',
  'role/',
  'group/',
  'instance-profile/',
  'mfa/',
  'server-certificate/',
  'policy/',
  'sms-mfa/',
  'saml-provider/',
  'oidc-provider/',
  'report/',
  'access-report/',
];

function resourceFaultOf({ text }: PlacedText): string | undefined {
  if (text === '*') return undefined;
  const shown = shorten(text);
  const parts = text.split(':');
  const [first, partition, service, region] = parts;
  if (partition === undefined) return `Resource ${shown} must be in ARN format or "*".`;
  if (partition !== 'aws') {
    const [vendor, place, account] = [2, 3, 4].map((at) => parts[at] ?? '*');
    const rest = parts.length > 5 ? parts.slice(5).join(':') : '*';
    const arn = shorten(`arn:${partition}:${vendor}:${place}:${account}:${rest}`);
    return `Partition "${shorten(partition)}" is not valid for resource "${arn}".`;
  }
  if (first !== 'arn') return `Resource ${shown} must be in ARN format or "*".`;
  if (service === undefined) return 'Resource vendor must be fully qualified and cannot contain regexes.';
  if (service === 's3' && region) return `Resource ${shown} can not contain region information.`;
  if (service !== 'iam') return undefined;
  if (region) return `IAM resource ${shown} cannot contain region information.`;
  const path = parts.slice(5).join(':');
  if (parts.length < 6 || path === '*' || IAM_PATHS.some((start) => path.startsWith(start))) return undefined;
  return `IAM resource path must either be "*" or start with ${IAM_PATHS.join(', ')}.`;
}
