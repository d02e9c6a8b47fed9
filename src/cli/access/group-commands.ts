// holdfast group create, list, show, add, remove, delete.
import { type CliContext, type ConnectOptions, connectIdentity } from '../connect.ts';
import { field, jsonOf, printDone, printFacts, printList, requireElement } from './answers.ts';
import { describePolicies, heldPolicies, stripPolicies } from './holders.ts';

export interface CreateGroupOptions extends ConnectOptions {
  path?: string;
}

export async function createGroup(
  context: CliContext,
  name: string,
  options: CreateGroupOptions,
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const made = await query.iam('CreateGroup', { GroupName: name, Path: options.path });
  const group = requireElement(made, 'Group');
  printFacts({ context, options }, jsonOf(group) as object, [
    ['name', field(group, 'GroupName')],
    ['id', field(group, 'GroupId')],
    ['ARN', field(group, 'Arn')],
    ['created', field(group, 'CreateDate')],
  ]);
}

export async function listGroups(context: CliContext, options: ConnectOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  printList({ context, options }, await query.list('ListGroups', 'Groups'), {
    NAME: 'GroupName',
    PATH: 'Path',
    CREATED: 'CreateDate',
    ARN: 'Arn',
  });
}

export async function showGroup(context: CliContext, name: string, options: ConnectOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const of = { GroupName: name };
  const group = requireElement(await query.iam('GetGroup', of), 'Group');
  const users = await query.list('GetGroup', 'Users', of);
  const policies = await heldPolicies(query, { kind: 'Group', name });
  const answer = {
    Group: jsonOf(group),
    Users: users.map(jsonOf),
    AttachedPolicies: policies.attached.map((each) => ({ PolicyName: each.name, PolicyArn: each.arn })),
    PolicyNames: policies.inline,
  };
  printFacts({ context, options }, answer, [
    ['name', field(group, 'GroupName')],
    ['id', field(group, 'GroupId')],
    ['ARN', field(group, 'Arn')],
    ['users', users.map((user) => field(user, 'UserName')).join(', ') || '-'],
    ['policies', describePolicies(policies) || '-'],
  ]);
}

export interface Membership {
  readonly group: string;
  readonly user: string;
}

export async function addToGroup(
  context: CliContext,
  { group, user }: Membership,
  options: ConnectOptions,
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  await query.iam('AddUserToGroup', { GroupName: group, UserName: user });
  printDone({ context, options }, `User ${user} is in group ${group}.`);
}

export async function removeFromGroup(
  context: CliContext,
  { group, user }: Membership,
  options: ConnectOptions,
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  await query.iam('RemoveUserFromGroup', { GroupName: group, UserName: user });
  printDone({ context, options }, `User ${user} is not in group ${group}.`);
}

export interface DeleteGroupOptions extends ConnectOptions {
  force?: boolean;
}

export async function deleteGroup(
  context: CliContext,
  name: string,
  options: DeleteGroupOptions,
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const of = { GroupName: name };
  if (options.force === true) {
    for (const user of await query.list('GetGroup', 'Users', of))
      await query.iam('RemoveUserFromGroup', { ...of, UserName: field(user, 'UserName') });
    await stripPolicies(query, { kind: 'Group', name });
  }
  await query.iam('DeleteGroup', of);
  printDone({ context, options }, `Group ${name} is deleted.`);
}
