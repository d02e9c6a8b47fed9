// What a decision costs: a request judged against policies of so many statements each, on one thread, with the conditions and
// resources that people write. Run: npx node bench/policy.ts [--seconds N]
import { parseArgs } from 'node:util';
import { compileStoredPolicy } from '../src/policy/documents/compile-policy.ts';
import { type AccessQuestion, evaluate, type NamedPolicy, NO_POLICIES } from '../src/policy/evaluate.ts';

const { values: flags } = parseArgs({ options: { seconds: { type: 'string', default: '2' } } });
const durationMs = Number(flags.seconds) * 1000;
const ACCOUNT = '111111111111';

/** None of them decides but the last one of the last policy: all are looked at. */
const STATEMENTS = [
  { Effect: 'Allow', Action: 's3:Get*', Resource: 'arn:aws:s3:::logs/*' },
  {
    Effect: 'Allow',
    Action: ['s3:PutObject', 's3:GetObject'],
    Resource: 'arn:aws:s3:::data/home/${aws:username}/*',
  },
  { Effect: 'Deny', Action: 's3:*', Resource: '*', Condition: { Bool: { 'aws:SecureTransport': 'false' } } },
  { Effect: 'Deny', Action: 's3:*', NotResource: ['arn:aws:s3:::data', 'arn:aws:s3:::data/*'] },
  {
    Effect: 'Deny',
    Action: 's3:*',
    Resource: '*',
    Condition: { NotIpAddress: { 'aws:SourceIp': ['192.0.2.0/24', '2001:db8::/32'] } },
  },
  { Effect: 'Allow', Action: 's3:GetObject', Resource: 'arn:aws:s3:::data/*/private/?' },
  {
    Effect: 'Allow',
    Action: 's3:ListBucket',
    Resource: '*',
    Condition: { StringLike: { 's3:prefix': 'a/*' } },
  },
  {
    Effect: 'Allow',
    Action: 's3:GetObject',
    Resource: 'arn:aws:s3:::data/*',
    Condition: { DateLessThan: { 'aws:CurrentTime': '2020-01-01T00:00:00Z' } },
  },
  {
    Effect: 'Deny',
    Action: 's3:GetObject',
    Resource: '*',
    Condition: { StringEquals: { 'aws:UserAgent': 'bad' } },
  },
  { Effect: 'Allow', Action: 's3:DeleteObject*', Resource: '*' },
];
const LAST = { Effect: 'Allow', Action: 's3:GetObject', Resource: 'arn:aws:s3:::data/photos/*' };

const CONTEXT: Readonly<Record<string, string>> = {
  'aws:username': 'ann',
  'aws:securetransport': 'true',
  'aws:sourceip': '192.0.2.77',
  'aws:useragent': 'aws-cli/2.31.0 md/awscrt#0.27.6 os/linux',
  'aws:currenttime': '2026-01-01T00:00:00Z',
};

function policy(statements: readonly object[]): NamedPolicy {
  const outcome = compileStoredPolicy(
    JSON.stringify({ Version: '2012-10-17', Statement: statements }),
    'identity',
  );
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  return { policy: outcome.policy, name: 'policy' };
}

const question: AccessQuestion = {
  caller: { kind: 'user', accountId: ACCOUNT, canonicalId: 'c', arn: `arn:aws:iam::${ACCOUNT}:user/ann` },
  policies: NO_POLICIES,
  action: 's3:GetObject',
  resource: 'arn:aws:s3:::data/photos/2026/one.jpg',
  resourceAccount: ACCOUNT,
  contextOf: (key) => CONTEXT[key],
};

/** Processor time of this thread: others of the machine do not count. */
function measure(name: string, asked: AccessQuestion): void {
  const isAllowed = evaluate(asked).isAllowed;
  let count = 0;
  const startedAt = performance.now();
  const started = process.threadCpuUsage();
  while (performance.now() - startedAt < durationMs) {
    for (let turn = 0; turn < 1000; turn++, count++) evaluate(asked);
  }
  const { user, system } = process.threadCpuUsage(started);
  const microseconds = ((user + system) / count).toFixed(2);
  console.log(`${name}: ${microseconds} us, ${isAllowed ? 'allowed' : 'refused'}`);
}

measure('no policy', question);
for (const count of [1, 10, 20]) {
  const identity = Array.from({ length: count }, (_, at) =>
    policy(at === count - 1 ? [...STATEMENTS.slice(1), LAST] : STATEMENTS),
  );
  measure(`${count} policies of ${STATEMENTS.length} statements`, { ...question, policies: { identity } });
}
