// The parameters of a request of the query protocol as they were sent, in the query or in a form: names and values, decoded.
// What they mean is for parameter-rules.ts.
import { bytesToText, queryDecode } from '../../base/text/uri.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';

/** By name, as `Tags.member.1.Key`. */
export type SentParameters = ReadonlyMap<string, string>;

/** Of texts that stand for bytes, one character each. Throws ValidationError. */
export function readParameters(texts: readonly string[]): SentParameters {
  const sent = new Map<string, string>();
  // One more than may be: the rest is not looked at.
  const pairs = texts.flatMap((text) => text.split('&', LIMITS.queryParametersMax + 1));
  if (pairs.length > LIMITS.queryParametersMax)
    throw refused(`A request has at most ${LIMITS.queryParametersMax} parameters.`);
  for (const pair of pairs) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = textOf(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : textOf(pair.slice(equals + 1));
    if (name === undefined || value === undefined)
      throw refused('The parameters are not form encoded in UTF-8.');
    // Two programs on the way might read two different ones.
    if (sent.has(name)) throw refused(`The parameter ${name} may be sent once only.`);
    sent.set(name, value);
  }
  return sent;
}

function textOf(encoded: string): string | undefined {
  const bytes = queryDecode(encoded);
  return bytes === undefined ? undefined : bytesToText(bytes);
}

function refused(message: string): AppError {
  return new AppError('ValidationError', { message });
}
