// The values of condition keys that are about the request (AWS "Actions, resources, and condition keys for Amazon S3"): taken
// from it when a policy looks.
import { ownValue } from '../../base/own-value.ts';
import { parseIsoDate } from '../../base/text/iso-dates.ts';
import { ANONYMOUS_USER_ID } from '../../policy/condition-keys.ts';
import type { ContextOf, ContextValue } from '../../policy/patterns.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Exchange } from '../http/exchange.ts';
import { headerText } from '../http/request-headers.ts';
import type { MfaCodes } from '../identity-api/mfa-codes.ts';
import type { Caller } from './caller.ts';
import type { OperationRequest } from './operation.ts';
import type { Target } from './request/target.ts';
import { checkSecondFactor, MFA_HEADER } from './second-factor.ts';
import { SeenObjects } from './seen-objects.ts';

/** Condition keys whose values are headers of other names. */
const HEADERS: Readonly<Record<string, string>> = {
  'aws:useragent': 'user-agent',
  'aws:referer': 'referer',
  's3:if-match': 'if-match',
  's3:if-none-match': 'if-none-match',
  's3:object-lock-mode': 'x-amz-object-lock-mode',
  's3:object-lock-legal-hold': 'x-amz-object-lock-legal-hold',
};

const PARAMETERS: Readonly<Record<string, string>> = {
  's3:prefix': 'prefix',
};

const SIGNATURE_VERSIONS = { SigV2: 'AWS', SigV4: 'AWS4-HMAC-SHA256' } as const;
const AUTH_TYPES = { AuthHeader: 'REST-HEADER', QueryString: 'REST-QUERY-STRING', Form: 'POST' } as const;

interface RequestParts {
  exchange: Exchange;
  headers: OperationRequest['headers'];
  target: Target;
  caller: Caller;
  /** By its signature; undefined: it has none. */
  signedAtMs: number | undefined;
  /** What x-amz-content-sha256 says, or stands for it where it is not sent; undefined: there is no signature. */
  payloadHash?: string | undefined;
}

/** What decisions look at of a request. Each fact is worked out when it is asked for first. */
export interface RequestFacts {
  /** Values of condition keys about the caller and the request. */
  readonly contextOf: ContextOf;
  readonly seen: SeenObjects;
  /** Whether it has a second factor (second-factor.ts); the same answer each time. */
  hasSecondFactor(): Promise<boolean>;
  /** Who asks has been looked up again: values about the caller are of this one from now on. */
  become(caller: Caller): void;
}

export function createRequestFacts(
  deps: { clock: ClockPort; mfaCodes: MfaCodes },
  parts: RequestParts,
): RequestFacts {
  const { headers } = parts;
  let { caller } = parts;
  let contextOf: ContextOf | undefined;
  let secondFactor: Promise<boolean> | undefined;
  return {
    // The root of an account without bucket policies is never asked about.
    contextOf(key) {
      contextOf ??= makeContextOf(deps, { ...parts, caller });
      return contextOf(key);
    },
    seen: new SeenObjects(),
    hasSecondFactor() {
      secondFactor ??= checkSecondFactor(deps.mfaCodes, caller, headers[MFA_HEADER]);
      return secondFactor;
    },
    become(now) {
      caller = now;
      contextOf = undefined;
    },
  };
}

function makeContextOf(deps: { clock: ClockPort }, parts: RequestParts): ContextOf {
  const { exchange, headers, target, caller, signedAtMs, payloadHash } = parts;
  const { parameters } = target.query;
  let atMs: number | undefined;
  const nowMs = () => {
    atMs ??= deps.clock.wallMs();
    return atMs;
  };
  const rows: Readonly<Record<string, () => ContextValue | undefined>> = {
    'aws:currenttime': () => new Date(nowMs()).toISOString(),
    'aws:epochtime': () => String(Math.floor(nowMs() / 1000)),
    'aws:sourceip': () => exchange.client.remoteAddress,
    'aws:securetransport': () => String(exchange.client.scheme === 'https'),
    's3:authtype': () => (caller.kind === 'account' ? AUTH_TYPES[caller.authType] : undefined),
    's3:signatureversion': () =>
      caller.kind === 'account' ? SIGNATURE_VERSIONS[caller.signatureVersion] : undefined,
    // SigV2 says until when a link is good, not when it was made: AWS has 0 for all that is signed by it.
    's3:signatureage': () => {
      if (caller.kind === 'account' && caller.signatureVersion === 'SigV2') return '0';
      return signedAtMs === undefined ? undefined : String(Math.max(0, nowMs() - signedAtMs));
    },
    's3:object-lock-retain-until-date': () => isoDate(headers['x-amz-object-lock-retain-until-date']),
    // To a listing an empty one is none.
    's3:delimiter': () => parameters.get('delimiter') || undefined,
    's3:max-keys': () => countOf(parameters.get('max-keys')),
    's3:x-amz-content-sha256': () => payloadHash,
    's3:tlsversion': () => exchange.client.tls?.version.replace(/^TLSv/, ''),
  };
  const ofCaller =
    caller.kind === 'account'
      ? caller.principal.valuesAt(nowMs())
      : (key: string) => ownValue(ANONYMOUS, key);

  function readValue(key: string): ContextValue | undefined {
    const row = ownValue(rows, key);
    if (row !== undefined) return row();
    const header = ownValue(HEADERS, key);
    if (header !== undefined) return headerText(headers[header]);
    const parameter = ownValue(PARAMETERS, key);
    if (parameter !== undefined) return parameters.get(parameter);
    if (key.startsWith('s3:x-amz-')) return headerText(headers[key.slice('s3:'.length)]);
    return ofCaller(key);
  }

  // Thousands of conditions may look at the same long header.
  const values = new Map<string, ContextValue | undefined>();
  return (key) => {
    if (!values.has(key)) values.set(key, readValue(key));
    return values.get(key);
  };
}

/** The same: zeros before a number are none of its digits, and an empty one is none, as for the operation. */
function countOf(text = ''): string | undefined {
  if (text === '') return undefined;
  return /^[+-]?\d+$/.test(text) ? String(Number(text)) : text;
}

/** In one form, whatever form the request has it in: comparisons know fewer of them. */
function isoDate(text = ''): string | undefined {
  const timeMs = parseIsoDate(text);
  return timeMs === undefined ? undefined : new Date(timeMs).toISOString();
}

const ANONYMOUS: Readonly<Record<string, string>> = {
  'aws:principaltype': 'Anonymous',
  'aws:userid': ANONYMOUS_USER_ID,
};
