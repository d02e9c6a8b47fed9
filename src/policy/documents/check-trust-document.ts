// What IAM asks of a role's trust policy: who may assume the role, and nothing about resources.
import type { DocumentForm, StatementForm } from './read-document.ts';
import { DocumentFault } from './wording.ts';

/** What a trust policy may be about, in lower case. */
const TRUST_ACTIONS = [
  'sts:assumerole',
  'sts:assumerolewithsaml',
  'sts:assumerolewithwebidentity',
  'sts:tagsession',
  'sts:setsourceidentity',
];

/** Behind the form and the conditions. Throws DocumentFault. */
export function checkTrustDocument({ statements }: DocumentForm): void {
  for (const statement of statements) checkStatement(statement);
}

function checkStatement({ place, principals, actions, resources }: StatementForm): void {
  if (resources !== undefined) {
    const message = resources.isNot
      ? 'AssumeRole policy must not contain resources.'
      : 'Has prohibited field Resource';
    throw new DocumentFault(message, { place: resources.place });
  }
  if (principals === undefined) throw new DocumentFault('Missing required field Principal', { place });
  if (principals.isNot)
    throw new DocumentFault('Has prohibited field NotPrincipal', { place: principals.place });
  if (principals.names.length === 0)
    throw new DocumentFault('Missing required field Principal cannot be empty!', { place: principals.place });
  if (actions === undefined || actions.texts.length === 0)
    throw new DocumentFault('Policy statement must contain actions.', { place });
  const strange = actions.isNot ? actions : actions.texts.find(({ text }) => !isTrustAction(text));
  if (strange !== undefined) {
    const message = 'AssumeRole policy may only specify STS AssumeRole actions.';
    throw new DocumentFault(message, { place: strange.place });
  }
}

function isTrustAction(text: string): boolean {
  const action = text.toLowerCase();
  if (!action.endsWith('*')) return TRUST_ACTIONS.includes(action);
  const start = action.slice(0, -1);
  return start.startsWith('sts:') && TRUST_ACTIONS.some((name) => name.startsWith(start));
}
