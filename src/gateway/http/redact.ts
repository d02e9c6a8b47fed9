// What errors, log lines and records may repeat of a request, in one place: bounded, and without secrets, because programs
// write errors into their logs. Keys of customers, signatures, tokens, Authorization and passwords become "***", whether
// they stand in a header, a query, a canonical request or a URL that could not be read. The access key is no secret.
import { escapeXml } from '../../base/xml/write-xml.ts';
import type { ErrorFields } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';

const MASK = '***';
/** A name that has a secret behind it, up to what ends the value: the next parameter or line. */
const NAMED_SECRET =
  /(customer-key["']?[ \t]*|(?:^|[?&;,\s"'{])(?:x-amz-signature|signature|(?:x-amz-|x-std-)?security-token|(?:proxy-)?authorization|x-(?:amz|std)-mfa|(?:old|new)?password|(?:token|authentication)code[12]?|secret-?(?:access-?)?key)["']?[ \t]*)(?:=[^&\n\r]*|:[^\n\r]*)/gi;
/** Credentials of an Authorization header that stand by themselves. */
const BARE_CREDENTIALS = /\b(basic|bearer|aws [^\s:]{1,128}:)[ \t]*[\w+/=.~-]{4,}/gi;
/** One of these is in every secret's name: a text without them, which is nearly every one, is not looked at closer. */
const HINTS = [
  'key',
  'signature',
  'token',
  'authorization',
  'mfa',
  'password',
  'tokencode',
  'authenticationcode',
  'basic',
  'bearer',
  'aws ',
];
const SECRET_NAME =
  /customer-key$|signature$|security-token$|authorization$|mfa$|password$|(?:token|authentication)code[12]?$|secret-?(?:access-?)?key$/i;
const ESCAPE = /%([0-9a-f]{2})/gi;
/** Times that a text is decoded to look for a secret: clients encode twice by mistake. */
const DECODINGS_MAX = 3;
/** The part of a signature that is logged: enough to distinguish two, useless for anything else. */
const SIGNATURE_CHARACTERS = 8;

/** The text without secrets, cut to `charactersMax`. */
export function redact(text: string, charactersMax: number = LIMITS.loggedFieldCharactersMax): string {
  return cut(withoutSecrets(looked(text, charactersMax)), charactersMax);
}

/** What may be left of it once it is cut; secrets that are masked make it shorter. */
function looked(text: string, charactersMax: number): string {
  return text.slice(0, 4 * charactersMax);
}

/** The same of a text that may not be there. */
export function redactOptional(text: string | undefined): string | undefined {
  return text === undefined ? undefined : redact(text);
}

/** The same for an element of an error, whose bound holds once it is escaped. */
export function redactElement(text: string): string {
  const charactersMax = LIMITS.echoedFieldCharactersMax;
  return cutEscaped(withoutSecrets(looked(text, charactersMax)), charactersMax);
}

/** An error's message and fields as they may be repeated: each bounded, and all together as XML would have them. */
export function redactError(error: { message: string; fields: ErrorFields }): {
  message: string;
  fields: ErrorFields;
} {
  const message = redactElement(error.message);
  let left = LIMITS.echoedCharactersMax - escapeXml(message).length;
  const fields: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(error.fields)) {
    if (typeof value === 'number') {
      fields[name] = value;
      continue;
    }
    const text = cutEscaped(redactField(error.fields, name, value), left);
    left -= escapeXml(text).length;
    fields[name] = text;
  }
  return { message, fields };
}

function redactField(fields: ErrorFields, name: string, value: string): string {
  if (name === 'SignatureProvided') return `${value.slice(0, SIGNATURE_CHARACTERS)}${MASK}`;
  const named = name === 'ArgumentValue' ? String(fields.ArgumentName) : name;
  if (SECRET_NAME.test(named)) return MASK;
  return redactElement(value);
}

/** Whether what a header or field of this name says is never repeated. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

function withoutSecrets(text: string): string {
  const masked = mask(text);
  // A name may be written with escapes; then the decoded text stands for it.
  for (let plain = masked, left = DECODINGS_MAX; left > 0 && plain.includes('%'); left--) {
    plain = plain.replace(ESCAPE, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    const maskedPlain = mask(plain);
    if (maskedPlain !== plain) return maskedPlain;
  }
  return masked;
}

function mask(text: string): string {
  const lowerText = text.toLowerCase();
  if (!HINTS.some((hint) => lowerText.includes(hint))) return text;
  return text
    .replace(NAMED_SECRET, (secret: string, name: string) => name + secret.charAt(name.length) + MASK)
    .replace(BARE_CREDENTIALS, `$1 ${MASK}`);
}

function cut(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : `${text.slice(0, Math.max(0, charactersMax - 3))}...`;
}

/** Cut so that it has `charactersMax` once it is escaped. */
function cutEscaped(text: string, charactersMax: number): string {
  let shorter = text;
  for (let length = escapeXml(shorter).length; length > charactersMax; length = escapeXml(shorter).length) {
    // In proportion, and by three more: what is left may have more to escape than what goes.
    const left = Math.floor((shorter.length * charactersMax) / length) - 3;
    if (left <= 0) return '';
    shorter = cut(shorter, left);
  }
  return shorter;
}
