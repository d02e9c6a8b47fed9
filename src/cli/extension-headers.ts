// Headers that people give to the commands beyond S3, checked before anything is sent.
import { Refusal } from '../base/refusal.ts';
import { textToBytes } from '../base/text/uri.ts';
import { LIMITS } from '../types/limits.ts';

const PRINTABLE = /^[\x20-\x7e]*[\x21-\x7e][\x20-\x7e]*$/;
/** What HTTP takes in the name of a header. */
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/** Throws {@link Refusal} for what no server would take. */
export function tokenHeader(token: string | undefined): Record<string, string> {
  if (token === undefined) return {};
  const charactersMax = LIMITS.idempotencyTokenCharactersMax;
  if (!PRINTABLE.test(token) || token.length > charactersMax)
    throw new Refusal(`--token takes 1 to ${charactersMax} printable characters of ASCII`);
  return { 'x-svc-idempotency-token': token };
}

/** Of `name=value`, each: values travel as UTF-8, as S3 clients send them. */
export function metadataHeaders(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf('=');
      const name = pair.slice(0, Math.max(equals, 0));
      if (!NAME.test(name))
        throw new Refusal(
          `--meta takes name=value, and a name of letters, digits and dashes, not ${JSON.stringify(pair)}`,
        );
      return [`x-amz-meta-${name.toLowerCase()}`, textToBytes(pair.slice(equals + 1))];
    }),
  );
}
