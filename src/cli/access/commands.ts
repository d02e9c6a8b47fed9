// The commands for users, groups, roles, policies, keys and MFA devices, for commands.ts. Their code is loaded when one is called.
import type { Command } from 'commander';
import type { CliContext } from '../connect.ts';
import { TEMPLATE_NAMES } from './policy-templates.ts';

/** Makes a command below a group, with the options of every command. */
type AddCommand = (usage: string, help: string) => Command;
type Group = (name: string, description: string) => AddCommand;

const FORCE = '--force';
const PATH = ['--path <path>', 'as /staff/; / when absent'] as const;
const TEMPLATE = `a policy made for --bucket: ${TEMPLATE_NAMES.join(', ')}`;
const BUCKET = ['--bucket <bucket>', 'the bucket of the template'] as const;

const repeated = (item: string, before: string[] = []) => [...before, item];

export function addAccessCommands(group: Group, context: CliContext): void {
  addUserCommands(group('user', 'users of the account'), context);
  addGroupCommands(group('group', 'groups of users'), context);
  addRoleCommands(group('role', 'roles, which users and other accounts assume'), context);
  const policy = group('policy', 'what users, groups and roles may do');
  addPolicyCommands(policy, context);
  addHeldPolicyCommands(policy, context);
  addKeyCommands(group('key', 'access keys of users, two for each at most'), context);
  addDeviceCommands(group('mfa', 'devices of users that make codes'), context);
}

function addUserCommands(command: AddCommand, context: CliContext): void {
  const load = () => import('./user-commands.ts');
  command(
    'create <name>',
    'make a user; with --policy a key too, and lines for restic, rclone and the AWS CLI',
  )
    .option(...PATH)
    .option('--policy <template>', TEMPLATE)
    .option(...BUCKET)
    .action(async (name, options) => (await load()).createUser(context, name, options));
  command('list', 'list the users')
    .option('--path-prefix <path>', 'only those whose path begins so')
    .action(async (options) => (await load()).listUsers(context, options));
  command('show <name>', 'show a user with keys, groups, policies and devices').action(
    async (name, options) => (await load()).showUser(context, name, options),
  );
  command('delete <name>', 'delete a user that has nothing any more')
    .option(FORCE, 'and its keys, policies, memberships, password and devices')
    .action(async (name, options) => (await load()).deleteUser(context, name, options));
}

function addGroupCommands(command: AddCommand, context: CliContext): void {
  const load = () => import('./group-commands.ts');
  command('create <name>', 'make a group')
    .option(...PATH)
    .action(async (name, options) => (await load()).createGroup(context, name, options));
  command('list', 'list the groups').action(async (options) => (await load()).listGroups(context, options));
  command('show <name>', 'show a group with its users and policies').action(async (name, options) =>
    (await load()).showGroup(context, name, options),
  );
  command('add <group> <user>', 'put a user into a group').action(async (group, user, options) =>
    (await load()).addToGroup(context, { group, user }, options),
  );
  command('remove <group> <user>', 'take a user out of a group').action(async (group, user, options) =>
    (await load()).removeFromGroup(context, { group, user }, options),
  );
  command('delete <name>', 'delete a group that is empty')
    .option(FORCE, 'and its policies and memberships')
    .action(async (name, options) => (await load()).deleteGroup(context, name, options));
}

function addRoleCommands(command: AddCommand, context: CliContext): void {
  const load = () => import('./role-commands.ts');
  command('create <name>', 'make a role')
    .requiredOption('--trust <who>', 'ARN or id of an account that may assume it; once for each', repeated)
    .option('--external-id <id>', 'who assumes it must name this id')
    .option('--mfa', 'who assumes it must have given a code')
    .option('--max-seconds <number>', 'the longest session; 3600 when absent')
    .option(...PATH)
    .action(async (name, options) => (await load()).createRole(context, name, options));
  command('list', 'list the roles').action(async (options) => (await load()).listRoles(context, options));
  command('show <name>', 'show a role with its policies and whom it trusts').action(async (name, options) =>
    (await load()).showRole(context, name, options),
  );
  command('assume <role>', 'print temporary keys for a shell: eval "$(holdfast role assume ROLE)"')
    .option('--session-name <name>', 'the name that logs and policies see', 'holdfast')
    .option('--seconds <number>', 'how long the keys work; 3600 when absent')
    .option('--external-id <id>', 'where the role asks for one')
    .option('--serial-number <arn>', 'of an MFA device, with --token-code')
    .option('--token-code <code>', 'of that device')
    .action(async (role, options) => (await load()).assumeRole(context, role, options));
  command('delete <name>', 'delete a role that has no policies any more')
    .option(FORCE, 'and its policies')
    .action(async (name, options) => (await load()).deleteRole(context, name, options));
}

function withSource(command: Command): Command {
  return command
    .option('--file <path>', 'the document; - for standard input')
    .option('--template <template>', TEMPLATE)
    .option(...BUCKET);
}

function withHolder(command: Command): Command {
  return command
    .option('--user <name>', 'of this user')
    .option('--group <name>', 'of this group')
    .option('--role <name>', 'of this role');
}

/** Managed policies, by ARN or name. */
function addPolicyCommands(command: AddCommand, context: CliContext): void {
  const load = () => import('./policy-commands.ts');
  withSource(command('create <name>', 'make a policy that many may have'))
    .option(...PATH)
    .option('--description <text>', 'what it is for')
    .action(async (name, options) => (await load()).createPolicy(context, name, options));
  command('list', 'list the policies of the account')
    .option('--all', 'and those that are ready-made')
    .action(async (options) => (await load()).listPolicies(context, options));
  withHolder(
    command('show <policy>', 'show a policy with its document; with --user and the like, an inline one'),
  )
    .option('--version <id>', 'as v2; the one that counts when absent')
    .action(async (policy, options) => (await load()).showPolicy(context, policy, options));
  withSource(command('update <policy>', 'give it a new document; the four before it are kept')).action(
    async (policy, options) => (await load()).updatePolicy(context, policy, options),
  );
  command('delete <policy>', 'delete a policy that nobody has')
    .option(FORCE, 'detach it first, and delete its versions')
    .action(async (policy, options) => (await load()).deletePolicy(context, policy, options));
  command('explain', 'tell whether something would be allowed, and which statement says so; exit code 1: no')
    .requiredOption('--as <arn>', 'of a user, group or role')
    .requiredOption('--action <action>', 'as s3:DeleteObject; once for each', repeated)
    .option('--resource <arn>', 'as arn:aws:s3:::BUCKET/KEY; once for each', repeated)
    .option('--context <key=value>', 'as aws:SourceIp=192.0.2.1; once for each', repeated)
    .action(async (options) => {
      const { explainPolicy } = await import('./explain-policy.ts');
      process.exitCode = await explainPolicy(context, options);
    });
}

/** What one user, group or role has. */
function addHeldPolicyCommands(command: AddCommand, context: CliContext): void {
  const load = () => import('./policy-commands.ts');
  withHolder(command('attach <policy>', 'give a policy to a user, group or role')).action(
    async (policy, options) => (await load()).attachPolicy(context, policy, options),
  );
  withHolder(command('detach <policy>', 'take it back')).action(async (policy, options) =>
    (await load()).detachPolicy(context, policy, options),
  );
  withHolder(
    withSource(command('put <name>', 'make or replace an inline policy of one user, group or role')),
  ).action(async (name, options) => (await load()).putPolicy(context, name, options));
  withHolder(command('remove <name>', 'remove an inline policy')).action(async (name, options) =>
    (await load()).removePolicy(context, name, options),
  );
}

function addKeyCommands(command: AddCommand, context: CliContext): void {
  const load = () => import('./key-commands.ts');
  const user = ['--user <name>', 'whose; when absent, whoever asks'] as const;
  const owner = ['--user <name>', 'whose; when absent, whose it is'] as const;
  command('create', 'make a key and show its secret')
    .option(...user)
    .action(async (options) => (await load()).createKey(context, options));
  command('list', 'list keys and when they were used')
    .option(...user)
    .action(async (options) => (await load()).listKeys(context, options));
  const changes = {
    disable: 'refuse what it signs, from now on and everywhere',
    enable: 'take what it signs again',
    delete: 'remove it for good',
  } as const;
  for (const change of ['disable', 'enable', 'delete'] as const)
    command(`${change} <key>`, changes[change])
      .option(...owner)
      .action(async (accessKey, options) =>
        (await load()).changeKey(context, { accessKey, change }, options),
      );
}

function addDeviceCommands(command: AddCommand, context: CliContext): void {
  const load = () => import('./mfa-commands.ts');
  const user = ['--user <name>', 'whose it is'] as const;
  command('create <name>', 'make a virtual device and show its seed')
    .option('--qr-file <path>', 'a new file for the seed as a PNG picture')
    .option(...PATH)
    .action(async (name, options) => (await load()).createDevice(context, name, options));
  command('enable <serial-number> <code> <next-code>', 'give a device to a user, by two codes in a row')
    .requiredOption(...user)
    .action(async (serialNumber, first, second, options) =>
      (await load()).enableDevice(context, { serialNumber, codes: [first, second] }, options),
    );
  command('list', 'list devices')
    .option('--user <name>', 'only those of this user')
    .action(async (options) => (await load()).listDevices(context, options));
  command('deactivate <serial-number>', 'take a device from its user')
    .requiredOption(...user)
    .action(async (serialNumber, options) => (await load()).deactivateDevice(context, serialNumber, options));
  command('delete <serial-number>', 'delete a device of nobody').action(async (serialNumber, options) =>
    (await load()).deleteDevice(context, serialNumber, options),
  );
}
