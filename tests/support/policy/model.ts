// Policies judged in the plainest way there is: from the parsed JSON, every statement looked at, wildcards as regular
// expressions, values by what Node has. Slow, and nothing of it is shared with src/policy, which is compared with it.
import { BlockList, isIP } from 'node:net';

export type Json = string | number | boolean | readonly Json[] | { readonly [name: string]: Json };

export interface ModelStatement {
  readonly Sid?: string;
  readonly Effect: 'Allow' | 'Deny';
  readonly Principal?: string | { readonly [type: string]: string | readonly string[] };
  readonly NotPrincipal?: string | { readonly [type: string]: string | readonly string[] };
  readonly Action?: string | readonly string[];
  readonly NotAction?: string | readonly string[];
  readonly Resource?: string | readonly string[];
  readonly NotResource?: string | readonly string[];
  readonly Condition?: { readonly [operator: string]: { readonly [key: string]: Json } };
}

export interface ModelDocument {
  readonly Version: '2008-10-17' | '2012-10-17';
  readonly Statement: readonly ModelStatement[];
}

export interface ModelCaller {
  readonly kind: 'anonymous' | 'root' | 'user' | 'role-session';
  readonly accountId: string;
  readonly canonicalId: string;
  readonly arn: string;
  readonly roleArn: string;
}

export interface ModelQuestion {
  readonly caller: ModelCaller;
  readonly identity: readonly ModelDocument[];
  readonly boundary?: ModelDocument | undefined;
  readonly session?: readonly ModelDocument[] | undefined;
  readonly resourcePolicy?: ModelDocument | undefined;
  readonly isTrust: boolean;
  readonly action: string;
  readonly resource: string;
  readonly resourceAccount: string;
  readonly objectAccount?: string | undefined;
  readonly context: { readonly [key: string]: string | readonly string[] };
  readonly acl: 'none' | 'account' | 'everyone';
}

export type ModelAnswer =
  | 'allowed'
  | 'explicit-deny'
  | 'no identity'
  | 'no boundary'
  | 'no session'
  | 'no resource'
  | 'no trust';

const REPAIRS = ['s3:GetBucketPolicy', 's3:PutBucketPolicy', 's3:DeleteBucketPolicy'];

/** AWS "Policy evaluation logic", one sentence after the other. */
export function modelAnswer(question: ModelQuestion): ModelAnswer {
  const { caller, identity, boundary, session, resourcePolicy, isTrust, acl } = question;
  const isOwn = caller.kind !== 'anonymous' && caller.accountId === question.resourceAccount;
  const isRoot = caller.kind === 'root';
  const lacking = isTrust ? 'no trust' : 'no resource';

  // An explicit deny in any policy overrides every allow.
  const others = [...identity, ...(boundary ? [boundary] : []), ...(session ?? [])];
  if (others.some((document) => applying(document, 'Deny', question).length > 0)) return 'explicit-deny';
  const isDeniedByResource =
    resourcePolicy !== undefined && applying(resourcePolicy, 'Deny', question).length > 0;
  if (isDeniedByResource && !(isRoot && isOwn && REPAIRS.includes(question.action))) return 'explicit-deny';

  const isAllowedBy = (documents: readonly ModelDocument[]) =>
    documents.some((document) => applying(document, 'Allow', question).length > 0);
  const grants = new Set(
    resourcePolicy === undefined
      ? []
      : applying(resourcePolicy, 'Allow', question).flatMap((statement) => waysOf(statement, caller)),
  );
  /** What the caller's own policies say, and what limits them. */
  const ownSide = (isGrantedElsewhere: boolean): ModelAnswer => {
    if (isRoot) return 'allowed';
    if (!isGrantedElsewhere && !isAllowedBy(identity)) return 'no identity';
    if (boundary !== undefined && !isAllowedBy([boundary])) return 'no boundary';
    if (session !== undefined && !isAllowedBy(session)) return 'no session';
    return 'allowed';
  };

  if (question.objectAccount !== undefined && question.objectAccount !== question.resourceAccount) {
    const own = caller.kind === 'anonymous' ? 'allowed' : ownSide(false);
    if (own !== 'allowed') return own;
    return acl === 'none' ? 'no resource' : 'allowed';
  }
  if (caller.kind === 'anonymous') {
    return grants.has('everyone') || acl === 'everyone' ? 'allowed' : lacking;
  }
  if (!isOwn) {
    const own = ownSide(false);
    if (own !== 'allowed') return own;
    return grants.size > 0 || (!isTrust && acl !== 'none') ? 'allowed' : lacking;
  }
  if (isRoot && !isTrust) return 'allowed';
  if (grants.has('direct')) return 'allowed';
  if (isTrust && grants.size === 0) return lacking;
  return ownSide(grants.has('role') || grants.has('everyone') || acl === 'everyone');
}

const list = <T>(value: T | readonly T[] | undefined): readonly T[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value as T];

/** The statements with this effect that apply to the question. */
export function applying(
  document: ModelDocument,
  effect: 'Allow' | 'Deny',
  question: ModelQuestion,
): readonly ModelStatement[] {
  return document.Statement.filter((statement) => {
    if (statement.Effect !== effect) return false;
    const { Action, NotAction, Resource, NotResource, Principal, NotPrincipal, Condition = {} } = statement;
    const isAction = (pattern: string) =>
      wildcards(pattern.toLowerCase()).test(question.action.toLowerCase());
    if (Action !== undefined && !list(Action).some(isAction)) return false;
    if (NotAction !== undefined && list(NotAction).some(isAction)) return false;
    const resources = list(Resource ?? NotResource).map((pattern) =>
      expand(pattern, document.Version, question.context),
    );
    const isResource = resources.some(
      (pattern) => pattern !== undefined && wildcards(pattern).test(question.resource),
    );
    if (Resource !== undefined && !isResource) return false;
    if (NotResource !== undefined && isResource) return false;
    if (NotResource !== undefined && effect === 'Allow' && resources.includes(undefined)) return false;
    if (Principal !== undefined && waysOf(statement, question.caller).length === 0) return false;
    if (NotPrincipal !== undefined && (effect === 'Allow' || isExempt(NotPrincipal, question))) return false;
    return Object.entries(Condition).every(([operator, keys]) =>
      Object.entries(keys).every(([key, values]) =>
        holds(operator, question.context[lowered(key)], list(values).map(String), {
          version: document.Version,
          effect,
          context: question.context,
        }),
      ),
    );
  });
}

type Way = 'direct' | 'role' | 'everyone' | 'account';

function namesIn(element: NonNullable<ModelStatement['Principal']>): string[] {
  if (typeof element === 'string') return [element];
  return Object.values(element).flatMap((names) => list(names));
}

const accountNames = ({ accountId, canonicalId }: ModelCaller) => [
  accountId,
  `arn:aws:iam::${accountId}:root`,
  canonicalId,
];

function waysOf({ Principal }: ModelStatement, caller: ModelCaller): Way[] {
  const names = Principal === undefined ? [] : namesIn(Principal);
  const ways: Way[] = [];
  if (names.includes('*')) ways.push('everyone');
  if (caller.kind === 'anonymous') return ways;
  if (caller.kind !== 'root' && names.includes(caller.arn)) ways.push('direct');
  if (caller.kind === 'role-session' && names.includes(caller.roleArn)) ways.push('role');
  if (accountNames(caller).some((name) => names.includes(name))) ways.push('account');
  return ways;
}

/** Account, role and caller must all be named; who has a boundary is never exempt. */
function isExempt(element: NonNullable<ModelStatement['Principal']>, question: ModelQuestion): boolean {
  const names = namesIn(element);
  const { caller, boundary } = question;
  if (names.includes('*')) return true;
  if (caller.kind === 'anonymous' || boundary !== undefined) return false;
  if (!accountNames(caller).some((name) => names.includes(name))) return false;
  if (caller.kind === 'root') return true;
  if (caller.kind === 'role-session' && !names.includes(caller.roleArn)) return false;
  return names.includes(caller.arn);
}

/** Marks for what stands for itself, so that no wildcard is made of it. */
const LITERAL: Readonly<Record<string, string>> = { '*': '\ue000', '?': '\ue001', $: '\ue002' };
const literal = (text: string) => text.replace(/[*?$]/g, (found) => LITERAL[found] ?? found);
const unmarked = (text: string) =>
  text.replaceAll('\ue000', '*').replaceAll('\ue001', '?').replaceAll('\ue002', '$');

const lowered = (key: string) => key.replace(/^[^/]*/, (name) => name.toLowerCase());

/** With the values of variables; undefined: one of them has none. */
function expand(
  text: string,
  version: ModelDocument['Version'],
  context: ModelQuestion['context'],
): string | undefined {
  if (version === '2008-10-17') return text;
  let isWithout = false;
  const expanded = text.replace(/\$\{([^}]*)\}/g, (_, body: string) => {
    if (LITERAL[body] !== undefined) return LITERAL[body];
    const [, name = '', fallback] = /^([^,]*)(?:,\s*'(.*)'\s*)?$/.exec(body) ?? [];
    const value = context[lowered(name.trim())];
    const put = typeof value === 'string' ? value : fallback;
    if (put === undefined) isWithout = true;
    return literal(put ?? '');
  });
  return isWithout ? undefined : expanded;
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

function wildcards(pattern: string): RegExp {
  const source = pattern
    .split(/([*?])/)
    .map((part) => (part === '*' ? '[\\s\\S]*' : part === '?' ? '[\\s\\S]' : escaped(unmarked(part))))
    .join('');
  return new RegExp(`^${source}$`, 'u');
}

interface ConditionContext {
  readonly version: ModelDocument['Version'];
  readonly effect: 'Allow' | 'Deny';
  readonly context: ModelQuestion['context'];
}

function holds(
  operator: string,
  value: string | readonly string[] | undefined,
  wanted: readonly string[],
  within: ConditionContext,
): boolean {
  const [qualifier, rest] = operator.includes(':') ? operator.split(':') : [undefined, operator];
  const isIfExists = rest?.endsWith('IfExists') ?? false;
  const name = (rest ?? '').replace(/IfExists$/, '');
  const values = list(value);
  if (name === 'Null')
    return wanted.some((text) => (text.toLowerCase() === 'true') === (values.length === 0));
  const isNegated = name.includes('Not');
  if (values.length === 0) {
    if (isIfExists) return true;
    if (qualifier === undefined) return isNegated;
    return qualifier === 'ForAllValues';
  }
  const fits = (text: string) => {
    const answers = wanted.map((one) => compare(name.replace('Not', ''), text, one, within));
    if (answers.includes('unknown')) return within.effect === 'Deny';
    if (answers.includes(true)) return !isNegated;
    return isNegated && !(within.effect === 'Allow' && answers.includes(undefined));
  };
  if (qualifier === 'ForAllValues') return values.every(fits);
  if (qualifier === 'ForAnyValue') return values.some(fits);
  return isNegated ? values.every(fits) : values.some(fits);
}

/** undefined: a variable without a value. `unknown`: the request has no number, or no date. */
function compare(
  name: string,
  text: string,
  wanted: string,
  { version, context }: ConditionContext,
): boolean | 'unknown' | undefined {
  if (/^(?:Numeric|Date)/.test(name)) {
    const read = name.startsWith('Date') ? readDate : readNumber;
    const [one, other] = [read(text), read(wanted)];
    if (Number.isNaN(one)) return 'unknown';
    if (name.endsWith('LessThan')) return one < other;
    if (name.endsWith('LessThanEquals')) return one <= other;
    if (name.endsWith('GreaterThan')) return one > other;
    return name.endsWith('GreaterThanEquals') ? one >= other : one === other;
  }
  if (name === 'Bool') return text.toLowerCase() === wanted.toLowerCase();
  if (name === 'BinaryEquals') return Buffer.from(text, 'base64').equals(Buffer.from(wanted, 'base64'));
  if (name === 'IpAddress') return isInside(text, wanted);
  if (name.startsWith('Arn')) return isArnLike(text, wanted, { version, context });
  const expanded = expand(wanted, version, context);
  if (expanded === undefined) return undefined;
  if (name === 'StringLike') return wildcards(expanded).test(text);
  const plain = unmarked(expanded);
  return name === 'StringEquals' ? text === plain : text.toLowerCase() === plain.toLowerCase();
}

const readNumber = (text: string) => (text === '' ? Number.NaN : Number(text));
const readDate = (text: string) => (/^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text));

function isInside(text: string, range: string): boolean {
  const [address = '', bits] = range.split('/');
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  const block = new BlockList();
  block.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family);
  return isIP(text) === isIP(address) && block.check(text, family);
}

function isArnLike(
  text: string,
  wanted: string,
  { version, context }: Pick<ConditionContext, 'version' | 'context'>,
): boolean | undefined {
  const texts = /^(arn):([^:]*):([^:]*):([^:]*):([^:]*):([\s\S]*)$/.exec(text)?.slice(1);
  if (texts === undefined) return false;
  if (wanted === '*') return true;
  const parts = /^([^:]*):([^:]*):([^:]*):([^:]*):([^:]*):([\s\S]*)$/.exec(
    wanted.replace(/\$\{[^}]*\}/g, (variable) => variable.replaceAll(':', '\ue003')),
  );
  if (parts === null) return false;
  for (const [at, part] of parts.slice(1).entries()) {
    const expanded = expand(part.replaceAll('\ue003', ':'), version, context);
    if (expanded === undefined) return undefined;
    if (!wildcards(expanded).test(texts[at] ?? '')) return false;
  }
  return true;
}
