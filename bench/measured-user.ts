// A user to measure as: with ten managed policies of ten statements, made by the IAM API of the endpoint that is measured, and
// taken away again. One statement of the hundred allows what the benchmark does; a decision looks at all that are about its
// action.
import { setTimeout as pause } from 'node:timers/promises';
import { must } from '../src/base/assert.ts';
import { callIam, type IamAnswer } from '../tests/support/servers/iam-api.ts';
import type { Target } from './load/spec.ts';
import type { MeasuredServer } from './measured-server.ts';

const POLICIES = 10;
const STATEMENTS = 10;
const DAYS_MS = 86_400_000;

/** As teams have them: some keys of a bucket, some from an address only, some until a day, and a denial here and there. */
function statementOf(policy: number, at: number): object {
  const bucket = `arn:aws:s3:::team-${policy}-${at}`;
  if (policy === POLICIES - 1 && at === STATEMENTS - 1)
    return { Effect: 'Allow', Action: 's3:*', Resource: ['arn:aws:s3:::bench-*', 'arn:aws:s3:::bench-*/*'] };
  const kinds = [
    { Effect: 'Allow', Action: ['s3:GetObject', 's3:ListBucket'], Resource: [bucket, `${bucket}/*`] },
    {
      Effect: 'Allow',
      Action: 's3:PutObject',
      Resource: `${bucket}/in/*`,
      Condition: { IpAddress: { 'aws:SourceIp': '10.0.0.0/8' } },
    },
    { Effect: 'Deny', Action: 's3:Delete*', Resource: `${bucket}/kept/*` },
    {
      Effect: 'Allow',
      Action: 's3:*',
      Resource: `${bucket}/\${aws:username}/*`,
      Condition: { DateLessThan: { 'aws:CurrentTime': new Date(Date.now() + DAYS_MS).toISOString() } },
    },
  ];
  return must(kinds[at % kinds.length], 'a kind for each');
}

let userCount = 0;

/** The server as that user sees it. The key of `server` must be allowed to make users and policies. */
export async function asUser(server: MeasuredServer): Promise<MeasuredServer> {
  const { target } = server;
  const endpoints = target.endpoint.split(',');
  const at = { ...target, endpoint: must(endpoints[0], 'an endpoint') };
  const call = async (action: string, parameters: Record<string, string> = {}): Promise<IamAnswer> => {
    const answer = await callIam(at, { Action: action, Version: '2010-05-08', ...parameters });
    if (answer.status !== 200)
      throw new Error(`${action}: ${answer.status} ${answer.code} ${answer.message}`);
    return answer;
  };
  const UserName = `bench-${process.pid}-${++userCount}`;
  await call('CreateUser', { UserName });
  const policies: string[] = [];
  for (let policy = 0; policy < POLICIES; policy++) {
    const Statement = Array.from({ length: STATEMENTS }, (_, index) => statementOf(policy, index));
    const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement });
    const made = await call('CreatePolicy', { PolicyName: `${UserName}-${policy}`, PolicyDocument });
    const PolicyArn = must(made.text('Arn'), 'a policy has an ARN');
    policies.push(PolicyArn);
    await call('AttachUserPolicy', { UserName, PolicyArn });
  }
  const key = await call('CreateAccessKey', { UserName });
  const accessKey = must(key.text('AccessKeyId'), 'a key has an id');
  const secretKey = must(key.text('SecretAccessKey'), 'a new key has a secret');
  const user = { ...target, accessKey, secretKey };
  for (const endpoint of endpoints) await awaitKey({ ...user, endpoint });
  return {
    ...server,
    target: user,
    async stop() {
      await call('DeleteAccessKey', { UserName, AccessKeyId: accessKey });
      for (const PolicyArn of policies) {
        await call('DetachUserPolicy', { UserName, PolicyArn });
        await call('DeletePolicy', { PolicyArn });
      }
      await call('DeleteUser', { UserName });
      await server.stop();
    },
  };
}

/** Until the gateway knows the key: it learns of changes within seconds. */
async function awaitKey(target: Target): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const identity = { Action: 'GetCallerIdentity', Version: '2011-06-15' };
    const { status } = await callIam(target, identity, { service: 'sts' });
    if (status === 200) return;
    await pause(100);
  }
  throw new Error(`${target.endpoint} does not know the user's key`);
}
