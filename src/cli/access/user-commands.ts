// holdfast user create, list, show, delete. A user that is made with a template of a policy gets a key at once, and the person
// the lines that put it to use.
import { Refusal } from '../../base/refusal.ts';
import { textOf, type XmlElement } from '../../base/xml/parse-xml.ts';
import {
  type CliContext,
  type ConnectOptions,
  connectIdentity,
  type IdentityConnection,
} from '../connect.ts';
import { readDocument, S3Refusal } from '../s3-client.ts';
import { field, jsonOf, printDone, printFacts, printList, requireElement } from './answers.ts';
import { clientLines, formatClientLines } from './client-lines.ts';
import { describePolicies, type Holder, heldPolicies, stripPolicies } from './holders.ts';
import { parseTemplate } from './policy-source.ts';
import { policyOfTemplate, TEMPLATES, type TemplateName } from './policy-templates.ts';
import { type QueryClient, QueryRefusal } from './query-client.ts';

export interface CreateUserOptions extends ConnectOptions {
  path?: string;
  /** Name of a template. */
  policy?: string;
  bucket?: string;
}

export async function createUser(
  context: CliContext,
  name: string,
  options: CreateUserOptions,
): Promise<void> {
  const { path, policy, bucket } = options;
  if (policy === undefined && bucket !== undefined) throw new Refusal('--bucket goes with --policy');
  const wanted = policy === undefined ? undefined : parseTemplate(policy, bucket);
  const connection = await connectIdentity(context, options);
  const made = await connection.query.iam('CreateUser', { UserName: name, Path: path });
  const user = requireElement(made, 'User');
  if (wanted === undefined) {
    printFacts({ context, options }, jsonOf(user) as object, factsOf(user));
    return;
  }
  let key: XmlElement;
  try {
    key = await giveKey(connection.query, { name, ...wanted });
  } catch (error) {
    // Nobody wants half of it, and the same command could not be given again.
    await undo(connection.query, { name, template: wanted.template });
    throw error;
  }
  await printKey({ context, options }, connection, { user, key, ...wanted });
}

async function giveKey(
  query: QueryClient,
  { name, template, bucket }: { name: string; template: TemplateName; bucket: string },
): Promise<XmlElement> {
  await query.iam('PutUserPolicy', {
    UserName: name,
    PolicyName: template,
    PolicyDocument: policyOfTemplate(template, bucket),
  });
  return requireElement(await query.iam('CreateAccessKey', { UserName: name }), 'AccessKey');
}

/** What it cannot undo stays, and `user delete --force` removes it: the error of the first step is what matters. */
async function undo(
  query: QueryClient,
  { name, template }: { name: string; template: TemplateName },
): Promise<void> {
  const of = { UserName: name };
  await query.iam('DeleteUserPolicy', { ...of, PolicyName: template }).catch(() => undefined);
  await query.iam('DeleteUser', of).catch(() => undefined);
}

async function printKey(
  { context, options }: { context: CliContext; options: ConnectOptions },
  connection: IdentityConnection,
  made: { user: XmlElement; key: XmlElement; template: TemplateName; bucket: string },
): Promise<void> {
  const { user, key, template, bucket } = made;
  const name = field(user, 'UserName');
  const accessKey = field(key, 'AccessKeyId');
  const secretKey = field(key, 'SecretAccessKey');
  const { endpoint, certificateFile } = connection;
  const { keepsLocks } = TEMPLATES[template];
  const lines = clientLines({ endpoint, certificateFile, bucket, name, accessKey, secretKey, keepsLocks });
  const warnings = await warningsOf(connection, { template, bucket });
  const answer = {
    User: jsonOf(user),
    AccessKey: jsonOf(key),
    PolicyName: template,
    Bucket: bucket,
    ClientLines: lines,
    Warnings: warnings,
  };
  printFacts({ context, options }, answer, [
    ['user', field(user, 'Arn')],
    ['policy', `${template}, of bucket ${bucket}: ${TEMPLATES[template].summary}`],
    ['access key', accessKey],
    ['secret key', secretKey],
  ]);
  if (options.json === true) return;
  context.print('\nThe secret key is not shown again.');
  for (const warning of warnings) context.print(`WARNING ${warning}`);
  context.print(`\n${formatClientLines(lines, { name, bucket })}`);
}

/** What keeps the template from holding what it promises. */
async function warningsOf(
  { s3 }: IdentityConnection,
  { template, bucket }: { template: TemplateName; bucket: string },
): Promise<string[]> {
  let status: string | undefined;
  try {
    const answer = await s3.open({ method: 'GET', bucket, query: { versioning: '' } });
    status = textOf(readDocument(await answer.text()), 'Status');
  } catch (error) {
    if (!(error instanceof S3Refusal)) throw error;
    if (error.status === 404) return [`there is no bucket ${bucket}: make it, and turn its versioning on`];
    return [`whether ${bucket} keeps versions cannot be seen with these keys: ${error.message}`];
  }
  if (!TEMPLATES[template].needsVersions || status === 'Enabled') return [];
  return [
    `${bucket} keeps no versions: what is uploaded under a key that is in use replaces what was there, and that is gone. ` +
      `Turn its versioning on: aws s3api put-bucket-versioning --bucket ${bucket} --versioning-configuration Status=Enabled`,
  ];
}

export interface ListUsersOptions extends ConnectOptions {
  pathPrefix?: string;
}

export async function listUsers(context: CliContext, options: ListUsersOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const users = await query.list('ListUsers', 'Users', { PathPrefix: options.pathPrefix });
  printList({ context, options }, users, {
    NAME: 'UserName',
    PATH: 'Path',
    CREATED: 'CreateDate',
    ARN: 'Arn',
  });
}

export async function showUser(context: CliContext, name: string, options: ConnectOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const user = requireElement(await query.iam('GetUser', { UserName: name }), 'User');
  const of = { UserName: name };
  const keys = await query.list('ListAccessKeys', 'AccessKeyMetadata', of);
  const groups = await query.list('ListGroupsForUser', 'Groups', of);
  const devices = await query.list('ListMFADevices', 'MFADevices', of);
  const policies = await heldPolicies(query, holderNamed(name));
  const answer = {
    User: jsonOf(user),
    AccessKeys: keys.map(jsonOf),
    Groups: groups.map(jsonOf),
    MFADevices: devices.map(jsonOf),
    AttachedPolicies: policies.attached.map((each) => ({ PolicyName: each.name, PolicyArn: each.arn })),
    PolicyNames: policies.inline,
  };
  const list = (members: readonly XmlElement[], text: (member: XmlElement) => string) =>
    members.map(text).join(', ') || '-';
  printFacts({ context, options }, answer, [
    ...factsOf(user),
    ['groups', list(groups, (group) => field(group, 'GroupName'))],
    ['policies', describePolicies(policies) || '-'],
    ['access keys', list(keys, (key) => `${field(key, 'AccessKeyId')} (${field(key, 'Status')})`)],
    ['MFA devices', list(devices, (device) => field(device, 'SerialNumber'))],
  ]);
}

export interface DeleteOptions extends ConnectOptions {
  force?: boolean;
}

export async function deleteUser(context: CliContext, name: string, options: DeleteOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  if (options.force === true) await deleteWithAll(query, name);
  else await query.iam('DeleteUser', { UserName: name });
  printDone({ context, options }, `User ${name} is deleted.`);
}

/** With keys, policies, memberships, password and devices. Keys first: from then on the user does nothing any more. */
async function deleteWithAll(query: QueryClient, name: string): Promise<void> {
  const of = { UserName: name };
  for (const key of await query.list('ListAccessKeys', 'AccessKeyMetadata', of))
    await query.iam('DeleteAccessKey', { ...of, AccessKeyId: field(key, 'AccessKeyId') });
  await query.iam('DeleteLoginProfile', of).catch(ignoreMissing);
  for (const device of await query.list('ListMFADevices', 'MFADevices', of)) {
    const SerialNumber = field(device, 'SerialNumber');
    await query.iam('DeactivateMFADevice', { ...of, SerialNumber });
    await query.iam('DeleteVirtualMFADevice', { SerialNumber });
  }
  await stripPolicies(query, holderNamed(name));
  for (const group of await query.list('ListGroupsForUser', 'Groups', of))
    await query.iam('RemoveUserFromGroup', { ...of, GroupName: field(group, 'GroupName') });
  await query.iam('DeleteUser', of);
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof QueryRefusal) || error.code !== 'NoSuchEntity') throw error;
}

function holderNamed(name: string): Holder {
  return { kind: 'User', name };
}

function factsOf(user: XmlElement): [string, string][] {
  return [
    ['name', field(user, 'UserName')],
    ['id', field(user, 'UserId')],
    ['ARN', field(user, 'Arn')],
    ['created', field(user, 'CreateDate')],
  ];
}
