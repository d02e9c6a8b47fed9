// Random policies and questions about them, of few words, so that they meet often. The same for the same seed.

import { createSeededRandom } from '../run/simulated.ts';
import type { ModelCaller, ModelDocument, ModelQuestion, ModelStatement } from './model.ts';

const ACCOUNTS = ['111111111111', '222222222222'] as const;
const CANONICAL = { [ACCOUNTS[0]]: 'a'.repeat(64), [ACCOUNTS[1]]: 'b'.repeat(64) };

const ACTIONS = ['s3:GetObject', 's3:PutObject', 's3:ListBucket', 's3:PutBucketPolicy', 'iam:GetUser'];
const ACTION_PATTERNS = [
  ...['s3:GetObject', 's3:getobject', 'S3:Put*', 's3:*', '*', 's3:*Object', 's3:?etObject', 's3:*Bucket*'],
  ...['iam:*', 's3:GetBucketPolicy', 's3:PutObject', 's3:ListBucket'],
];
const RESOURCES = [
  ...['arn:aws:s3:::b', 'arn:aws:s3:::b/k', 'arn:aws:s3:::b/home/ann/x', 'arn:aws:s3:::b/home/bob/y'],
  ...['arn:aws:s3:::b/a*b', 'arn:aws:s3:::b/😀', 'arn:aws:s3:::c/k', 'arn:aws:iam::111111111111:user/ann'],
];
const RESOURCE_PATTERNS = [
  ...['*', 'arn:aws:s3:::b', 'arn:aws:s3:::b/*', 'arn:aws:s3:::*', 'arn:aws:s3:::b/?', 'arn:aws:s3:::b*'],
  ...['arn:aws:s3:::b/home/${aws:username}/*', "arn:aws:s3:::b/home/${ aws:UserName , 'bob'}/*"],
  ...['arn:aws:s3:::b/a${*}b', 'arn:aws:s3:::?/*e/*', 'arn:aws:s3:::b/*/${aws:PrincipalTag/Team}/*'],
  ...['arn:aws:iam::*:user/${aws:username}', 'arn:aws:s3:::c/k', 'arn:aws:s3:::b/home/*/?', 'arn:*b*m*/x'],
];
const NAMES = ['ann', 'bob'];
const IPS = ['192.0.2.7', '10.1.2.3', '2001:db8::1'];
const TIMES = ['2026-01-01T00:00:00Z', '2026-06-01T12:30:00Z'];

/** Key, values that requests have, operators with values that policies ask for. */
const KEYS: readonly {
  key: string;
  values: readonly string[];
  asks: readonly (readonly [operator: string, values: readonly string[]])[];
}[] = [
  {
    key: 'aws:username',
    values: NAMES,
    asks: [
      ['String#Equals', ['ann', 'Bob', '${aws:PrincipalTag/Team}']],
      ['String#EqualsIgnoreCase', ['ANN', 'BOB', "${aws:userid, 'ann'}"]],
      ['String#Like', ['a*', '?ob', '*', '${aws:PrincipalTag/Team}*']],
    ],
  },
  {
    key: 'aws:PrincipalTag/Team',
    values: ['ann', 'red', 'a*'],
    asks: [
      ['String#Equals', ['red', 'a${*}', '${aws:username}']],
      ['String#Like', ['r?d', 'a*', 'a${*}']],
    ],
  },
  {
    key: 's3:max-keys',
    values: ['10', '100', 'many', '007'],
    asks: [
      ['Numeric#Equals', ['10', '7.0', '100.00']],
      ['NumericLessThan', ['100', '-1']],
      ['NumericLessThanEquals', ['10', '99.5']],
      ['NumericGreaterThan', ['10', '7']],
      ['NumericGreaterThanEquals', ['100', '+7']],
    ],
  },
  {
    key: 'aws:CurrentTime',
    values: TIMES,
    asks: [
      ['Date#Equals', ['2026-01-01T00:00:00Z', '2026-01-01', '1767225600']],
      ['DateLessThan', ['2026-06-01T12:30:00Z', '2026-06-01T13:30:00+02:00']],
      ['DateLessThanEquals', ['2026-06-01T12:30:00.000Z', '1']],
      ['DateGreaterThan', ['2026-01-01T00:00:00Z']],
      ['DateGreaterThanEquals', ['2026-06-01']],
    ],
  },
  { key: 'aws:SecureTransport', values: ['true', 'false'], asks: [['Bool', ['true', 'FALSE']]] },
  { key: 'x:blob', values: ['QUJD', 'AA=='], asks: [['BinaryEquals', ['QUJD', 'AA==']]] },
  {
    key: 'aws:SourceIp',
    values: IPS,
    asks: [['#IpAddress', ['192.0.2.0/24', '10.0.0.0/7', '2001:db8::/33', '10.1.2.3', '0.0.0.0/0']]],
  },
  {
    key: 'aws:PrincipalArn',
    values: ['arn:aws:iam::111111111111:user/ann', 'arn:aws:iam::222222222222:role/r:x', 'no arn'],
    asks: [
      ['Arn#Like', ['arn:aws:iam::*:user/*', 'arn:*:role/*', '*', 'arn:aws:iam::1*1:user/${aws:username}']],
      ['Arn#Equals', ['arn:aws:iam::222222222222:role/r:?', 'arn:aws:*::2?????????22:*']],
    ],
  },
  {
    key: 's3:RequestObjectTagKeys',
    values: ['red', 'blue', 'ann'],
    asks: [
      ['String#Equals', ['red', 'blue', '${aws:username}']],
      ['String#Like', ['*e*', 'r??']],
    ],
  },
];

const MANY = 's3:RequestObjectTagKeys';

export interface PolicyWorld {
  readonly question: ModelQuestion;
}

/** Worlds without end. */
export function* policyWorlds(seed: number): Generator<ModelQuestion, never> {
  const dice = new Dice(seed);
  for (;;) yield question(dice);
}

class Dice {
  readonly #random;
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;

  constructor(seed: number) {
    this.#random = createSeededRandom(seed);
  }

  /** From 0, below `count`, which is 256 at most. */
  below(count: number): number {
    if (this.#at >= this.#bytes.length) {
      this.#bytes = this.#random.bytes(4096);
      this.#at = 0;
    }
    return (this.#bytes[this.#at++] ?? 0) % count;
  }

  isOneIn(count: number): boolean {
    return this.below(count) === 0;
  }

  one<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  some<T>(choices: readonly T[], countMax: number): T[] {
    return Array.from({ length: 1 + this.below(countMax) }, () => this.one(choices));
  }

  oneOrSome<T>(choices: readonly T[], countMax: number): T | T[] {
    return this.isOneIn(3) ? this.one(choices) : this.some(choices, countMax);
  }
}

function callerOf(dice: Dice): ModelCaller {
  const accountId = dice.one(ACCOUNTS);
  const canonicalId = CANONICAL[accountId];
  const kind = dice.one([
    'anonymous',
    'root',
    'user',
    'user',
    'user',
    'role-session',
    'role-session',
  ] as const);
  const arns = {
    anonymous: '',
    root: `arn:aws:iam::${accountId}:root`,
    user: `arn:aws:iam::${accountId}:user/${dice.one(NAMES)}`,
    'role-session': `arn:aws:sts::${accountId}:assumed-role/r/s1`,
  };
  return { kind, accountId, canonicalId, arn: arns[kind], roleArn: `arn:aws:iam::${accountId}:role/r` };
}

function principalOf(
  dice: Dice,
  kind: 'resource' | 'trust' | 'identity',
): NonNullable<ModelStatement['Principal']> {
  if (dice.isOneIn(4)) return '*';
  const accountId = dice.one(ACCOUNTS);
  if (kind === 'resource' && dice.isOneIn(6)) return { CanonicalUser: CANONICAL[accountId] };
  const names = [accountId, `arn:aws:iam::${accountId}:root`, '*', `arn:aws:iam::${accountId}:role/r`];
  names.push(`arn:aws:sts::${accountId}:assumed-role/r/s1`);
  names.push(...NAMES.map((name) => `arn:aws:iam::${accountId}:user/${name}`));
  return { AWS: dice.oneOrSome(names, 4) };
}

function conditionOf(dice: Dice, isTrust: boolean): NonNullable<ModelStatement['Condition']> {
  const condition: Record<string, Record<string, string | string[]>> = {};
  for (let count = 1 + dice.below(2); count > 0; count--) {
    const { key, asks } = dice.one(KEYS);
    if (dice.isOneIn(8)) {
      condition.Null = { ...condition.Null, [key]: dice.one(['true', 'false']) };
      continue;
    }
    const [operator, values] = dice.one(asks);
    const qualifier = key === MANY || dice.isOneIn(8) ? dice.one(['ForAllValues:', 'ForAnyValue:', '']) : '';
    const name = qualifier + operator.replace('#', dice.isOneIn(3) ? 'Not' : '');
    const full = name + (dice.isOneIn(4) ? 'IfExists' : '');
    const spelled = isTrust || dice.isOneIn(2) ? key : key.replace(/^[^/]*/, (text) => text.toUpperCase());
    condition[full] = { ...condition[full], [spelled]: dice.oneOrSome(values, 2) };
  }
  return condition;
}

function statementOf(dice: Dice, kind: 'identity' | 'resource' | 'trust'): ModelStatement {
  const actions =
    kind === 'trust' ? ['sts:AssumeRole', 'sts:*', 'sts:TagSession'] : dice.some(ACTION_PATTERNS, 3);
  const resources = dice.oneOrSome(RESOURCE_PATTERNS, 3);
  const Effect = dice.one(['Allow', 'Allow', 'Allow', 'Deny'] as const);
  const principal = principalOf(dice, kind);
  return {
    Effect,
    ...(dice.isOneIn(5) && kind !== 'trust'
      ? { NotAction: dice.some(ACTION_PATTERNS, 2) }
      : { Action: dice.oneOrSome(actions, 2) }),
    ...(kind !== 'trust' && (dice.isOneIn(5) ? { NotResource: resources } : { Resource: resources })),
    ...(kind !== 'identity' &&
      (kind === 'resource' && Effect === 'Deny' && dice.isOneIn(3)
        ? { NotPrincipal: principal }
        : { Principal: principal })),
    ...(dice.isOneIn(2) && { Condition: conditionOf(dice, kind === 'trust') }),
  };
}

function documentOf(dice: Dice, kind: 'identity' | 'resource' | 'trust'): ModelDocument {
  const Version = dice.isOneIn(6) ? '2008-10-17' : '2012-10-17';
  return {
    Version,
    Statement: Array.from({ length: 1 + dice.below(3) }, () => statementOf(dice, kind)),
  };
}

function contextOf(dice: Dice): ModelQuestion['context'] {
  const context: Record<string, string | string[]> = {};
  for (const { key, values } of KEYS) {
    if (dice.isOneIn(4)) continue;
    const name = key.replace(/^[^/]*/, (text) => text.toLowerCase());
    context[name] = key === MANY ? dice.some(values, 3) : dice.one(values);
  }
  return context;
}

function question(dice: Dice): ModelQuestion {
  const isTrust = dice.isOneIn(6);
  const caller = callerOf(dice);
  const isIdentified = caller.kind === 'user' || caller.kind === 'role-session';
  const documents = (count: number) => Array.from({ length: count }, () => documentOf(dice, 'identity'));
  return {
    caller,
    isTrust,
    identity: isIdentified ? documents(dice.below(4)) : [],
    boundary: isIdentified && dice.isOneIn(4) ? documentOf(dice, 'identity') : undefined,
    session: caller.kind === 'role-session' && dice.isOneIn(3) ? documents(1 + dice.below(2)) : undefined,
    resourcePolicy: dice.isOneIn(3) ? undefined : documentOf(dice, isTrust ? 'trust' : 'resource'),
    action: isTrust ? 'sts:AssumeRole' : dice.one(ACTIONS),
    resource: isTrust ? `arn:aws:iam::${ACCOUNTS[0]}:role/r` : dice.one(RESOURCES),
    resourceAccount: dice.one(ACCOUNTS),
    objectAccount: !isTrust && dice.isOneIn(6) ? dice.one(ACCOUNTS) : undefined,
    context: contextOf(dice),
    acl: isTrust ? 'none' : dice.one(['none', 'none', 'account', 'everyone'] as const),
  };
}
