// Who has signed a form: its policy is what is signed, by SigV4 or SigV2 (AWS "Authenticating requests in browser-based uploads
// using POST"). What the policy says is s3/forms/post-policy.ts; until when it is good, too.
import { createHmac } from 'node:crypto';
import type { AppError } from '../../types/errors.ts';
import { type FormFields, missingField } from '../s3/forms/form-fields.ts';
import { invalidArgument } from '../s3/request/arguments.ts';
import {
  type Authentication,
  type AuthenticationDependencies,
  admitCaller,
  identityOf,
  judgeSignature,
  SIGV2_REGION,
} from './authenticate.ts';
import type { Identity } from './identities.ts';
import { isSameText, signatureMismatch } from './signature-mismatch.ts';
import { parseTimestamp } from './signing-dates.ts';
import { refuseSigV2 } from './sigv2-fields.ts';
import { parseCredential, requireScopeDate } from './sigv4-fields.ts';

interface SignedForm {
  readonly version: 'SigV2' | 'SigV4';
  readonly accessKey: string;
  readonly region: string;
  readonly signature: string;
  /** By the form's word; SigV2 has none. */
  readonly signedAtMs?: number;
  /** The policy's signature by who has this secret. */
  expected(identity: Identity): string;
}

const ALGORITHM = 'AWS4-HMAC-SHA256';
/** As AWS names them where they are missing. */
const SIGV4_FIELDS = ['X-Amz-Algorithm', 'X-Amz-Credential', 'X-Amz-Date', 'X-Amz-Signature'];
const SIGV2_FIELDS = ['AWSAccessKeyId', 'Signature'];
/** Texts that hold one are not repeated, however they are encoded. */
const SECRET = /customer-key|security-token/i;

/** Whether the form names a signer. */
export function isSignedForm(fields: FormFields): boolean {
  return hasSome(fields, SIGV4_FIELDS) || hasSome(fields, SIGV2_FIELDS);
}

/**
 * Nobody, where the form has no field of a signature. InvalidArgument where one is missing or malformed, InvalidAccessKeyId,
 * SignatureDoesNotMatch, AccountProblem, InvalidToken, ExpiredToken; InvalidRequest where SigV2 is switched off.
 */
export async function authenticateForm(
  deps: AuthenticationDependencies,
  fields: FormFields,
): Promise<Authentication> {
  const signed = readSignature(deps, fields);
  if (signed === undefined) return { caller: { kind: 'anonymous' } };
  const { accessKey, signature, version, signedAtMs } = signed;
  const token = fields.get('x-amz-security-token')?.value;
  const identity = await identityOf(deps, { accessKey, token, nowMs: deps.clock.wallMs() });
  judgeSignature(deps, accessKey, () => {
    if (!isSameText(signed.expected(identity), signature)) throw mismatch(signed, textOf(fields, 'policy'));
  });
  const caller = admitCaller(deps, identity, {
    signature: { signatureVersion: version, authType: 'Form' },
    use: { region: signed.region, service: 's3' },
  });
  return signedAtMs === undefined ? { caller } : { caller, signedAtMs };
}

function readSignature({ rules }: AuthenticationDependencies, fields: FormFields): SignedForm | undefined {
  const [isV4, isV2] = [hasSome(fields, SIGV4_FIELDS), hasSome(fields, SIGV2_FIELDS)];
  if (!isV4 && !isV2) return undefined;
  if (isV4 && isV2) {
    const message = 'Only one auth mechanism allowed; a form is signed by SigV4 or by SigV2.';
    throw invalidArgument({ name: 'AWSAccessKeyId', value: '', message });
  }
  if (isV2 && !rules.takesSigV2) throw refuseSigV2();
  for (const name of isV4 ? SIGV4_FIELDS : SIGV2_FIELDS) {
    if (!fields.has(name.toLowerCase())) throw missingField(name);
  }
  if (!fields.has('policy')) throw missingField('policy');
  return isV4 ? readV4(fields, rules.service) : readV2(fields);
}

function readV4(fields: FormFields, service: string): SignedForm {
  const algorithm = textOf(fields, 'x-amz-algorithm');
  if (algorithm !== ALGORITHM) {
    const message = `X-Amz-Algorithm only supports "${ALGORITHM}"`;
    throw invalidArgument({ name: 'X-Amz-Algorithm', value: algorithm, message });
  }
  const credential = textOf(fields, 'x-amz-credential');
  const refuse = (message: string) =>
    invalidArgument({ name: 'X-Amz-Credential', value: credential, message });
  const { accessKey, scope } = parseCredential(credential, service, refuse);
  const timestamp = textOf(fields, 'x-amz-date');
  const signedAtMs = parseTimestamp(timestamp);
  if (signedAtMs === undefined) {
    const message = 'X-Amz-Date must be formated via ISO8601 Long format';
    throw invalidArgument({ name: 'X-Amz-Date', value: timestamp, message });
  }
  requireScopeDate(scope, timestamp, refuse);
  const policy = textOf(fields, 'policy');
  return {
    version: 'SigV4',
    signedAtMs,
    accessKey,
    region: scope.region,
    signature: textOf(fields, 'x-amz-signature'),
    expected: (identity) =>
      createHmac('sha256', identity.signingKey(scope)).update(policy, 'latin1').digest('hex'),
  };
}

function readV2(fields: FormFields): SignedForm {
  const policy = textOf(fields, 'policy');
  return {
    version: 'SigV2',
    accessKey: textOf(fields, 'awsaccesskeyid'),
    region: SIGV2_REGION,
    signature: textOf(fields, 'signature'),
    expected: ({ secret }) => createHmac('sha1', secret).update(policy, 'latin1').digest('base64'),
  };
}

function hasSome(fields: FormFields, names: readonly string[]): boolean {
  return names.some((name) => fields.has(name.toLowerCase()));
}

function textOf(fields: FormFields, name: string): string {
  return fields.get(name)?.value ?? '';
}

/** The policy is what was signed; it is repeated where no secret is in it. */
function mismatch(signed: SignedForm, policy: string): AppError {
  const isSecret = SECRET.test(Buffer.from(policy, 'base64').toString('latin1'));
  return signatureMismatch(signed, { stringToSign: isSecret ? '***' : policy });
}
