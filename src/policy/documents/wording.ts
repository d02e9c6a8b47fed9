// What is wrong with a policy document, in AWS's words. IAM and S3 say it differently: IAM answers MalformedPolicyDocument, S3
// MalformedPolicy. The place is ours: neither says more than these words.

/** `boundary` and `session` are documents of identities by their form. */
export type DocumentType = 'identity' | 'boundary' | 'session' | 'trust' | 'resource';

/** Thrown inside of this room alone; compile-policy.ts turns it into an outcome. */
export class DocumentFault extends Error {
  override name = 'DocumentFault';
  /** As `Statement[2].Condition.IpAddress`, or line and column. */
  readonly place: string;
  /** The part of the document that S3 names in the Detail of its error. */
  readonly detail: string | undefined;
  readonly isTooLarge: boolean;

  constructor(
    message: string,
    {
      place,
      detail,
      isTooLarge = false,
    }: { place: string; detail?: string | undefined; isTooLarge?: boolean },
  ) {
    super(message);
    this.place = place;
    this.detail = detail;
    this.isTooLarge = isTooLarge;
  }
}

/** Faults of the form that both have. */
export type FormFault =
  | 'json'
  | 'syntax'
  | 'unknown'
  | 'version'
  | 'no-statement'
  | 'empty-statement'
  | 'no-effect'
  | 'effect'
  | 'operator'
  | 'principal-form'
  | 'sid-twice';

const IAM_SYNTAX = 'Syntax errors in policy.';
const S3_SYNTAX = 'Invalid policy syntax.';
const SID_TWICE = 'Statement IDs (SID) in a single policy must be unique.';

const IAM_WORDS: Readonly<Record<FormFault, string>> = {
  json: IAM_SYNTAX,
  syntax: IAM_SYNTAX,
  unknown: IAM_SYNTAX,
  version: IAM_SYNTAX,
  'no-statement': IAM_SYNTAX,
  'empty-statement': IAM_SYNTAX,
  'no-effect': IAM_SYNTAX,
  effect: IAM_SYNTAX,
  operator: IAM_SYNTAX,
  'principal-form': 'Invalid principal in policy: DETAIL',
  'sid-twice': SID_TWICE,
};

const S3_WORDS: Readonly<Record<FormFault, string>> = {
  json: 'This policy contains invalid Json',
  syntax: S3_SYNTAX,
  unknown: 'Unknown field DETAIL',
  version: 'The policy must contain a valid version string',
  'no-statement': 'Missing required field Statement',
  'empty-statement': 'Could not parse the policy: Statement is empty!',
  'no-effect': 'Missing required field Effect',
  effect: 'Invalid effect: DETAIL',
  operator: 'Invalid Condition type : DETAIL',
  'principal-form': 'Invalid principal in policy',
  'sid-twice': SID_TWICE,
};

/** What messages repeat of a document, in characters. */
const DETAIL_CHARACTERS_MAX = 256;

export function formFault(
  type: DocumentType,
  fault: FormFault,
  { place, detail }: { place: string; detail?: string },
): DocumentFault {
  const shown = shorten(detail ?? '');
  const words = (type === 'resource' ? S3_WORDS : IAM_WORDS)[fault];
  return new DocumentFault(
    words.replace('DETAIL', () => shown),
    { place, detail: detail && shown },
  );
}

export function shorten(text: string): string {
  return text.length > DETAIL_CHARACTERS_MAX ? `${text.slice(0, DETAIL_CHARACTERS_MAX)}...` : text;
}
