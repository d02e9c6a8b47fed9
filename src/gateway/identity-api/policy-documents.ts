// Policy documents as actions of IAM take them and give them back: the rule of the parameter, AWS's errors, and the encoding.
import { percentEncode, textToBytes } from '../../base/text/uri.ts';
import { type CompiledPolicy, compilePolicy, POLICY_SIZES } from '../../policy/documents/compile-policy.ts';
import { AppError } from '../../types/errors.ts';
import { text } from './parameter-rules.ts';

export const policyDocument = text({
  charactersMax: POLICY_SIZES.documentCharactersMax,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: AWS's pattern
  pattern: /^[\u0009\u000a\u000d\u0020-\u00ff]+$/,
  patternMessage: (at) =>
    `The specified value for ${at} is invalid. It must contain only printable ASCII characters.`,
});

/** Throws MalformedPolicyDocument with the place, LimitExceeded for what no entity may have. */
export function requireDocument(document: string, type: 'identity' | 'trust'): CompiledPolicy {
  const outcome = compilePolicy(document, { type });
  if (outcome.kind === 'compiled') return outcome.policy;
  const { kind, message, place } = outcome;
  if (kind === 'too-large') throw new AppError('LimitExceeded', { message });
  throw new AppError('MalformedPolicyDocument', { message: `${message} (${place})` });
}

/** As answers have documents (RFC 3986). */
export function encodeDocument(document: string): string {
  return percentEncode(textToBytes(document));
}
