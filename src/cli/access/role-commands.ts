// holdfast role create, list, show, assume, delete.
import { Refusal } from '../../base/refusal.ts';
import type { XmlElement } from '../../base/xml/parse-xml.ts';
import { type CliContext, type ConnectOptions, connectIdentity } from '../connect.ts';
import { formatAnswer } from '../format.ts';
import { documentOf, field, jsonOf, printDone, printFacts, printList, requireElement } from './answers.ts';
import { describePolicies, heldPolicies, stripPolicies } from './holders.ts';

export interface CreateRoleOptions extends ConnectOptions {
  path?: string;
  /** ARNs of users and roles, or ids of accounts. */
  trust: string[];
  externalId?: string;
  mfa?: boolean;
  maxSeconds?: string;
}

export async function createRole(
  context: CliContext,
  name: string,
  options: CreateRoleOptions,
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const made = await query.iam('CreateRole', {
    RoleName: name,
    Path: options.path,
    AssumeRolePolicyDocument: trustPolicy(options),
    MaxSessionDuration: options.maxSeconds,
  });
  const role = requireElement(made, 'Role');
  printFacts({ context, options }, jsonOf(role) as object, factsOf(role));
}

function trustPolicy({ trust, externalId, mfa }: CreateRoleOptions): string {
  for (const each of trust) {
    if (/^\d{12}$/.test(each) || each.startsWith('arn:')) continue;
    throw new Refusal(`--trust takes an ARN or the id of an account, not "${each}"`);
  }
  const Condition = {
    ...(externalId !== undefined && { StringEquals: { 'sts:ExternalId': externalId } }),
    ...(mfa === true && { Bool: { 'aws:MultiFactorAuthPresent': 'true' } }),
  };
  const statement = {
    Effect: 'Allow',
    Principal: { AWS: trust },
    Action: 'sts:AssumeRole',
    ...(Object.keys(Condition).length > 0 && { Condition }),
  };
  return JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
}

export async function listRoles(context: CliContext, options: ConnectOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  printList({ context, options }, await query.list('ListRoles', 'Roles'), {
    NAME: 'RoleName',
    PATH: 'Path',
    CREATED: 'CreateDate',
    ARN: 'Arn',
  });
}

export async function showRole(context: CliContext, name: string, options: ConnectOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const role = requireElement(await query.iam('GetRole', { RoleName: name }), 'Role');
  const policies = await heldPolicies(query, { kind: 'Role', name });
  const answer = {
    Role: jsonOf(role),
    AttachedPolicies: policies.attached.map((each) => ({ PolicyName: each.name, PolicyArn: each.arn })),
    PolicyNames: policies.inline,
  };
  printFacts({ context, options }, answer, [
    ...factsOf(role),
    ['policies', describePolicies(policies) || '-'],
    ['trust policy', documentOf(field(role, 'AssumeRolePolicyDocument'))],
  ]);
}

export interface AssumeOptions extends ConnectOptions {
  sessionName: string;
  seconds?: string;
  externalId?: string;
  serialNumber?: string;
  tokenCode?: string;
}

/** `role`: its ARN, or its name where the keys may see it. Prints lines for a shell to evaluate. */
export async function assumeRole(context: CliContext, role: string, options: AssumeOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const arn = role.startsWith('arn:')
    ? role
    : field(requireElement(await query.iam('GetRole', { RoleName: role }), 'Role'), 'Arn');
  const assumed = await query.sts('AssumeRole', {
    RoleArn: arn,
    RoleSessionName: options.sessionName,
    DurationSeconds: options.seconds,
    ExternalId: options.externalId,
    SerialNumber: options.serialNumber,
    TokenCode: options.tokenCode,
  });
  const credentials = requireElement(assumed, 'Credentials');
  const lines = [
    `export AWS_ACCESS_KEY_ID=${field(credentials, 'AccessKeyId')}`,
    `export AWS_SECRET_ACCESS_KEY=${field(credentials, 'SecretAccessKey')}`,
    `export AWS_SESSION_TOKEN=${field(credentials, 'SessionToken')}`,
    `# until ${field(credentials, 'Expiration')}`,
  ];
  context.print(formatAnswer(options, jsonOf(assumed) as object, () => lines.join('\n')));
}

export interface DeleteRoleOptions extends ConnectOptions {
  force?: boolean;
}

export async function deleteRole(
  context: CliContext,
  name: string,
  options: DeleteRoleOptions,
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  if (options.force === true) await stripPolicies(query, { kind: 'Role', name });
  await query.iam('DeleteRole', { RoleName: name });
  printDone({ context, options }, `Role ${name} is deleted.`);
}

function factsOf(role: XmlElement): [string, string][] {
  return [
    ['name', field(role, 'RoleName')],
    ['id', field(role, 'RoleId')],
    ['ARN', field(role, 'Arn')],
    ['created', field(role, 'CreateDate')],
    ['longest session', `${field(role, 'MaxSessionDuration')} s`],
  ];
}
