// The commands that talk to a running server, for cmd/main.ts. Their code is loaded when one is called.
import type { Command } from 'commander';
import { addAccessCommands } from './access/commands.ts';
import type { CliContext, ConnectOptions, FileCliContext, TokenCliContext } from './connect.ts';
import { CONNECTION_HELP, IDENTITY_CONNECTION_HELP, S3_CONNECTION_HELP } from './connection-help.ts';

/** What works on a data folder itself; absent where there is none. */
export interface OfflineContext {
  /** Of a single node that does not run: gives the exit code. */
  rebuildChunks?(dataDir: string | undefined, how: { yes?: true }): Promise<number>;
}

export function addClientCommands(
  program: Command,
  context: TokenCliContext & FileCliContext & OfflineContext,
): void {
  addAccountCommands(program, context);
  addMailCommands(program, context);
  addAccessCommands((name, description) => {
    const group = program.command(name).description(description);
    return (usage, help) => withConnection(group.command(usage).description(help), IDENTITY_CONNECTION_HELP);
  }, context);
  addKeysCommands(program, context);
  const clock = program.command('clock').description('the time by which data grows old');
  withConnection(
    clock
      .command('accept')
      .description('after a jump of the clock: it is right, remove what is too old again')
      .option('--jump-ms <n>', 'the jump that was shown; without it, shows what there is to accept'),
  ).action(async (options: ConnectOptions & { jumpMs?: string }) => {
    process.exitCode = await (await import('./clock-command.ts')).acceptClock(context, options);
  });
  addFsckCommand(program, context);
  addObjectCommands(program, context);
  addJobsCommand(program, context);
  addComposedCommand(program, context);
  addEventsCommand(program, context);
  addBucketCommands(program, context);
  addLifecycleCommand(program, context);
  addQuotaCommand(program, context);
  addUsageCommand(program, context);
  addPriceCommand(program, context);
  addInvoiceCommand(program, context);
  withConnection(program.command('status').description('how the server is doing')).action(
    async (options: ConnectOptions) => {
      process.exitCode = await (await import('./status-command.ts')).showStatus(context, options);
    },
  );
}

function addJobsCommand(program: Command, context: CliContext): void {
  const description = 'what goes on by itself: renames of prefixes, deleted buckets that are being emptied';
  withConnection(program.command('jobs').description(description)).action(async (options: ConnectOptions) =>
    (await import('./jobs-command.ts')).showJobs(context, options),
  );
}

function addComposedCommand(program: Command, context: CliContext): void {
  const description = 'the data that compositions alone keep, by bucket';
  withConnection(program.command('composed').description(description)).action(
    async (options: ConnectOptions) => (await import('./composed-command.ts')).showComposed(context, options),
  );
}

function addEventsCommand(program: Command, context: CliContext): void {
  const load = () => import('./events-command.ts');
  const description = 'what happens to objects, in buckets whose events are recorded';
  const events = program.command('events').description(description);
  const command = (usage: string, help: string, options = {}) =>
    withConnection(events.command(usage, options).description(help));
  command('list', 'what has happened; meant where none of these is named', { isDefault: true })
    .option('--bucket <name>', 'in this bucket alone')
    .option('--follow', 'go on with what happens from now on')
    .option('--take', 'have the server forget what was printed')
    .action(async (options) => {
      const stopped = new AbortController();
      process.once('SIGINT', () => stopped.abort());
      await (await load()).showEvents(context, { ...options, signal: stopped.signal });
    });
  command('on <bucket>', 'record events of a bucket from now on').action(async (bucket, options) =>
    (await load()).bucketEvents(context, bucket, { ...options, isRecorded: true }),
  );
  command('off <bucket>', 'record them no more; those that are kept stay').action(async (bucket, options) =>
    (await load()).bucketEvents(context, bucket, { ...options, isRecorded: false }),
  );
  command('show <bucket>', 'see whether they are recorded').action(async (bucket, options) =>
    (await load()).bucketEvents(context, bucket, options),
  );
}

/** What only the operator sees and does of a bucket. */
function addBucketCommands(program: Command, context: CliContext): void {
  const load = () => import('./bucket-command.ts');
  const bucket = program.command('bucket').description('compliance settings of buckets, as the operator');
  withConnection(
    bucket.command('compliance <bucket>').description('see them, and when their lock was ended'),
  ).action(async (name, options) => (await load()).showCompliance(context, name, options));
  withConnection(
    bucket.command('unlock-compliance <bucket>').description('end their lock, which is recorded'),
  )
    .requiredOption('--reason <text>', 'for the record, up to 500 characters')
    .action(async (name, options) => (await load()).unlockCompliance(context, name, options));
}

function addLifecycleCommand(program: Command, context: CliContext): void {
  const load = () => import('./lifecycle-command.ts');
  const lifecycle = program.command('lifecycle').description('what goes by the lifecycle rules of a bucket');
  const command = (usage: string, help: string) => withConnection(lifecycle.command(usage).description(help));
  command(
    'status <bucket>',
    'what has gone, how far the pass under way has come, and when the next one is due',
  ).action(async (bucket, options) => (await load()).lifecycleStatus(context, bucket, options));
  command('preview <bucket>', 'what rules would do to what is there now, without doing it')
    .option('--file <path>', 'these rules, in XML or as the AWS CLI takes them; absent: those of the bucket')
    .option('--at <time>', 'what would be due then, as 2030-01-31; absent: now')
    .action(async (bucket, options) => (await load()).previewLifecycle(context, bucket, options));
}

/** Exits with 0 when all agrees, 1 when something was found, 2 when it could not be said. */
function addFsckCommand(program: Command, context: CliContext & OfflineContext): void {
  const description = 'compare all that is stored with all that leads to it, while the server runs';
  withConnection(program.command('fsck').description(description))
    .option('--read-data', 'read every chunk and every small body, too')
    .option('--full-speed', 'take no rests: several times sooner, and clients wait longer meanwhile')
    .option('--rebuild-chunks', 'of a single node that does not run: rows of chunks anew, from extents alone')
    .option('--yes', 'with --rebuild-chunks: do it; otherwise it is only shown')
    .action(async (options) => {
      if (options.rebuildChunks === true && context.rebuildChunks !== undefined) {
        process.exitCode = await context.rebuildChunks(options.dataDir, { yes: options.yes });
        return;
      }
      const stopped = new AbortController();
      process.once('SIGINT', () => stopped.abort());
      const { runFsck } = await import('./fsck-command.ts');
      process.exitCode = await runFsck(context, { ...options, signal: stopped.signal });
    });
}

/** What goes beyond S3, for people: by the keys of AWS_ACCESS_KEY_ID, else the operator's. */
function addObjectCommands(program: Command, context: TokenCliContext): void {
  const command = (usage: string, help: string) =>
    withConnection(program.command(usage).description(help), S3_CONNECTION_HELP);
  const token = ['--token <token>', 'send it again under the same token, and it is done once'] as const;

  command('mv <source> <destination>', 'rename an object, a prefix or a bucket: bucket/key, or bucket')
    .option('--prefix', 'both are beginnings of keys')
    .option('--overwrite', 'replace what has the new key')
    .option(...token)
    .action(async (source, destination, options) => {
      const { move } = await import('./move-command.ts');
      process.exitCode = await move(context, { source, destination }, options);
    });
  command(
    'compose <target> <component...>',
    'make an object of others: bucket/key, or bucket/key?versionId=...',
  )
    .option(
      '--meta <name=value>',
      'metadata of its own, once for each; default: that of the first component',
      (pair: string, before: string[] = []) => [...before, pair],
    )
    .option(...token)
    .action(async (target, components, options) => {
      const { compose } = await import('./compose-command.ts');
      await compose(context, { target, components }, options);
    });
  command('append <object> [file]', 'add a file, or standard input, to the end of an object')
    .option('--offset <bytes>', 'only if the object has this size')
    .option('--if-match <etag>', 'only if the object has this ETag')
    .option(...token)
    .action(async (object, file = '-', options) => {
      const { append } = await import('./append-command.ts');
      await append(context, { object, file }, options);
    });
  command('rb <bucket>', 'delete a bucket')
    .option('--force', 'and all that is in it, unless some of it must be kept')
    .option('--no-wait', 'with --force: end once the bucket is gone, while its data is still being freed')
    .action(async (bucket, options) => {
      const stopped = new AbortController();
      process.once('SIGINT', () => stopped.abort());
      const { removeBucket } = await import('./remove-bucket-command.ts');
      await removeBucket(context, bucket, { ...options, signal: stopped.signal });
    });
}

function addPriceCommand(program: Command, context: CliContext): void {
  const load = () => import('./invoice-command.ts');
  const price = program.command('price').description('what is charged, and from which day on');
  const command = (usage: string, help: string) => withConnection(price.command(usage).description(help));
  command('list', 'the price lists, by the day from which they hold').action(async (options) =>
    (await load()).listPrices(context, options),
  );
  command('set', 'set the prices from a day on; those of months with invoices never change')
    .requiredOption('--from <date>', 'the first day, UTC: 2026-07-01')
    .requiredOption('--currency <code>', 'of ISO 4217: USD')
    .requiredOption('--storage <price>', 'of active storage, per TB and month')
    .option('--deleted <price>', 'of what is deleted inside the minimum duration; default: as --storage')
    .option('--minimum-tb <TB>', 'active storage that is charged at least; default: 1')
    .option('--minimum <price>', 'of what is missing of it, per TB and month; default: as --storage')
    .option('--api-calls <price>', 'per 1000; default: 0')
    .option('--ingress <price>', 'per GB; default: 0')
    .option('--egress <price>', 'per GB; default: 0')
    .action(async (options) => (await load()).setPrices(context, options));
}

function addInvoiceCommand(program: Command, context: CliContext): void {
  const load = () => import('./invoice-command.ts');
  const invoice = program.command('invoice').description('what sub-accounts owe for a month');
  const command = (usage: string, help: string) => withConnection(invoice.command(usage).description(help));
  command('list', 'closed invoices, the newest first')
    .option('--month <month>', 'of one month: 2026-07')
    .option('--control <id>', 'of the sub-accounts of one control account')
    .option('--sub <id>', 'of one sub-account')
    .option('--page <number>', 'from 1 on')
    .option('--size <number>', 'invoices of a page, 100 by default')
    .option('--csv', 'all of them as CSV')
    .option('--out <path>', 'into this file, with --csv')
    .action(async (options) => (await load()).listInvoices(context, options));
  command('show <number>', 'one invoice')
    .option('--control', 'the number is that of a control invoice: all invoices of its account and month')
    .option('--csv', 'as CSV')
    .option('--pdf', 'as PDF, into a file')
    .option('--out <path>', 'this file')
    .action(async (number, options) => (await load()).showInvoice(context, number, options));
  command('preview <month>', 'what a month comes to by now: 2026-07')
    .option('--control <id>', 'of the sub-accounts of one control account')
    .option('--sub <id>', 'of one sub-account, with all items')
    .option('--page <number>', 'from 1 on')
    .option('--size <number>', 'sub-accounts of a page, 100 by default')
    .action(async (month, options) => (await load()).previewInvoices(context, month, options));
  command('close <month>', 'write the invoices of a month that is over, for good').action(
    async (month, options) => (await load()).closeInvoices(context, month, options),
  );
}

function addQuotaCommand(program: Command, context: CliContext): void {
  const load = () => import('./quota-command.ts');
  const quota = program.command('quota').description('how much an account or a bucket may hold');
  const command = (usage: string, help: string) => withConnection(quota.command(usage).description(help));
  command('show <of> <name>', 'account or bucket, and which: its bounds, and what it holds').action(
    async (of, name, options) => (await load()).showQuota(context, { of, name }, options),
  );
  command('set <of> <name>', 'account or bucket, and which: these bounds, and no others')
    .option('--hard-bytes <size>', 'what would go beyond is refused: a number, or 5TiB')
    .option('--hard-objects <number>', 'likewise, versions of objects')
    .option('--soft-bytes <size>', 'what goes beyond is reported')
    .option('--soft-objects <number>', 'likewise, versions of objects')
    .action(async (of, name, options) => (await load()).setQuota(context, { of, name }, options));
}

function addUsageCommand(program: Command, context: CliContext): void {
  const load = () => import('./usage-command.ts');
  const usage = program
    .command('usage [account]')
    .description(
      'what an account stores and asks for, by day; without one, all accounts on the last closed day',
    );
  withConnection(usage)
    .option('--bucket <name>', 'of this bucket alone')
    .option('--from <day>', 'the first day, as 2026-11-05')
    .option('--to <day>', 'the last day')
    .option('--page <number>', 'of all accounts: from 1 on')
    .option('--size <number>', 'accounts of a page, 100 by default')
    .action(async (account, options) => (await load()).showUsage(context, account, options));
  withConnection(usage.command('recount'))
    .description('compare what is metered with all versions that are stored')
    .option('--bucket <name>', 'this bucket alone')
    .option('--repair', 'add what is missing')
    .action(async (_options, command) => (await load()).recountUsage(context, command.optsWithGlobals()));
}

function addAccountCommands(program: Command, context: FileCliContext): void {
  const load = () => import('./account-commands.ts');
  const account = program.command('account').description('create and manage accounts');
  const command = (usage: string, help: string) => withConnection(account.command(usage).description(help));
  const reference = '<account>';

  command('create', 'create an account and show its keys')
    .requiredOption('--name <name>', 'shown as the owner of its buckets and objects')
    .requiredOption('--email <address>', 'must be its own')
    .option('--access-key <key>', 'made up when absent')
    .option('--secret-key <key>', 'together with --access-key; visible to every user of this machine')
    .option('--canonical-id <hex>', '64 hex digits; made up when absent')
    .option('--state <state>', 'trial, paid or suspended; paid when absent')
    .action(async (options) => (await load()).createAccount(context, options));
  command('list', 'list the accounts').action(async (options) =>
    (await load()).listAccounts(context, options),
  );
  command(`show ${reference}`, 'show one account, by id, name, e-mail or canonical id').action(
    async (account, options) => (await load()).showAccount(context, account, options),
  );
  command(`suspend ${reference}`, 'refuse its requests, and keep its data').action(async (account, options) =>
    (await load()).suspendAccount(context, account, options),
  );
  command(`delete ${reference}`, 'delete an account that owns no bucket').action(async (account, options) =>
    (await load()).deleteAccount(context, account, options),
  );
  command(`keys ${reference}`, 'list its access keys, or change one of them: two at most')
    .option('--new', 'make one and show its secret; the other goes on working')
    .option('--disable <key>', 'refuse what it signs, from now on and everywhere')
    .option('--enable <key>', 'take what it signs again')
    .option('--delete <key>', 'remove it for good')
    .action(async (account, options) =>
      (await import('./access-key-commands.ts')).accountKeys(context, account, options),
    );
  command(`reset-mfa ${reference}`, 'deactivate the MFA devices of its root, which are lost').action(
    async (account, options) => (await load()).resetMfa(context, account, options),
  );
  command(`set ${reference}`, 'change its state or limits')
    .option('--max-buckets <number>', 'how many buckets it may own')
    .option('--public <yes|no>', 'whether its policies and access control lists may share with everybody')
    .option('--unpaid <yes|no>', 'whether its uploads are refused; reads and deletes are served')
    .option('--state <state>', 'trial, paid or suspended')
    .action(async (account, options) => (await load()).setAccount(context, account, options));
  addControlCommands(account, context);
  addSubAccountCommands(account, context);
  addMemberCommands(account, context);
}

/** Partners, who have sub-accounts, and who logs in for them at /api/v1. */
function addControlCommands(account: Command, context: CliContext): void {
  const load = () => import('./control-commands.ts');
  const control = account.command('control').description('control accounts and others above sub-accounts');
  const command = (usage: string, help: string) => withConnection(control.command(usage).description(help));
  command('create', 'make a control, governance or channel account')
    .requiredOption('--name <name>', '3 to 100 characters')
    .requiredOption('--email <address>', 'must be its own')
    .option('--level <level>', 'control, governance or channel', 'control')
    .option('--parent <id>', 'the account above it')
    .action(async (options) => (await load()).createPartner(context, options));
  command('list', 'list them, by id').action(async (options) =>
    (await load()).listPartners(context, options),
  );
  command('set <id>', 'change one')
    .option('--name <name>', 'its new name')
    .option('--email <address>', 'its new address')
    .option('--status <status>', 'active or deactivated: then nobody can log in for it')
    .action(async (id, options) => (await load()).changePartner(context, id, options));
  command('users <id>', 'list who logs in for one').action(async (id, options) =>
    (await load()).listPartnerUsers(context, id, options),
  );
  command('add-user <id>', 'make somebody who logs in for one')
    .requiredOption('--email <address>', 'the user of HTTP Basic authentication; must be its own')
    .requiredOption('--first-name <name>', 'first name')
    .requiredOption('--last-name <name>', 'last name')
    .option('--role <role>', 'Admin, Staff, Staff Lite or Viewer', 'Admin')
    .option('--plus', 'of a governance account: may act on sub-accounts, too')
    .action(async (id, options) => (await load()).createPartnerUser(context, id, options));
  command('set-user <user>', 'let a user log in, or not')
    .requiredOption('--status <status>', 'active or deactivated')
    .action(async (user, options) => (await load()).setPartnerUser(context, user, options));
  command('add-key <user>', 'make an API key of a user, and show it once')
    .requiredOption('--name <name>', 'what it is for')
    .action(async (user, options) => (await load()).createPartnerKey(context, user, options));
  command('delete-key <user> <key>', 'delete an API key, by its first characters').action(
    async (user, key, options) => (await load()).deletePartnerKey(context, { user, key }, options),
  );
}

/** Customers: accounts that a control account is charged for. */
function addSubAccountCommands(account: Command, context: CliContext): void {
  const load = () => import('./sub-account-commands.ts');
  const sub = account.command('sub').description('sub-accounts: customers of control accounts');
  const command = (usage: string, help: string) => withConnection(sub.command(usage).description(help));
  const withTerms = (one: Command) =>
    one
      .option('--password <text>', 'of its console; visible to every user of this machine')
      .option('--trial-days <days>', 'length of the trial, from its creation on')
      .option('--trial-quota <TB>', 'what it may store while on trial')
      .option('--storage <TB>', 'purchased storage')
      .option('--channel <id>', 'the channel account it belongs to');
  withTerms(command('create', 'make one, and show its keys'))
    .requiredOption('--control <id>', 'the control account that is charged for it')
    .requiredOption('--name <name>', '3 to 100 characters')
    .requiredOption('--email <address>', 'must be its own')
    .option('--welcome', 'write to it how to set a password, which is then not needed')
    .option('--paid', 'no trial')
    .option('--hard', 'refuse what goes beyond the purchased storage')
    .action(async (options) => (await load()).createSubAccount(context, options));
  command('list', 'list them, by id')
    .option('--control <id>', 'of one control account')
    .option('--name <part>', 'with this in their names')
    .option('--status <state>', 'trial, paid, suspended or deleted')
    .option('--deleted', 'deleted ones, too')
    .action(async (options) => (await load()).listSubAccounts(context, options));
  command('show <id>', 'show one; of a deleted one also what is not removed yet')
    .option('--keys', 'with its access key and secret key')
    .action(async (id, options) => (await load()).showSubAccount(context, id, options));
  withTerms(command('set <id>', 'change one'))
    .option('--name <name>', 'its new name')
    .option('--email <address>', 'its new address')
    .option('--paid', 'end its trial')
    .option('--quota <kind>', 'hard or soft')
    .option('--reset-password', 'write to it how to set a new password')
    .option('--unpaid <yes|no>', 'whether its uploads are refused; reads and deletes are served')
    .action(async (id, options) => (await load()).setSubAccount(context, id, options));
  for (const [as, help] of [
    ['suspend', 'refuse its requests, and keep its data'],
    ['restore', 'take its requests again'],
    ['reset-keys', 'make a new pair of keys, and show it; the old ones are refused'],
    ['reset-mfa', 'deactivate the MFA devices of its root, which are lost'],
  ] as const)
    command(`${as} <id>`, help).action(async (id, options) =>
      (await load()).changeSubAccount(context, { id, as }, options),
    );
  command('delete <id>', 'delete one for good: its keys are refused at once')
    .option('--with-buckets', 'with its buckets and all in them that is not protected')
    .action(async (id, options) => (await load()).deleteSubAccount(context, id, options));
  command('import <file>', 'make those of a CSV file that are not there yet')
    .option('--control <id>', 'the control account of rows that name none')
    .option('--dry-run', 'say what would be done')
    .action(async (file, options) =>
      (await import('./import-sub-accounts.ts')).importSubAccounts(context, file, options),
    );
}

/** People of sub-accounts. */
function addMemberCommands(account: Command, context: CliContext): void {
  const load = () => import('./member-commands.ts');
  const member = account.command('member').description('members: the people of sub-accounts');
  const command = (usage: string, help: string) => withConnection(member.command(usage).description(help));
  const role = 'Root, Administrator, Full Access, Full Access Limited, Download Only or Read Only';
  command('create', 'make one')
    .requiredOption('--sub <id>', 'its sub-account')
    .requiredOption('--email <address>', 'where it is written to')
    .requiredOption('--first-name <name>', 'first name')
    .requiredOption('--last-name <name>', 'last name')
    .requiredOption('--role <role>', role)
    .requiredOption('--password <text>', 'of its console; visible to every user of this machine')
    .option('--username <name>', 'its e-mail address when absent')
    .option('--must-reset', 'it has to set another password first')
    .action(async (options) => (await load()).createMember(context, options));
  command('list', 'list them, by id')
    .option('--sub <id>', 'of one sub-account')
    .action(async (options) => (await load()).listMembers(context, options));
  command('set <id>', 'change one')
    .option('--first-name <name>', 'first name')
    .option('--last-name <name>', 'last name')
    .option('--role <role>', role)
    .option('--password <text>', 'a new one')
    .option('--status <status>', 'active or deactivated')
    .option('--reset-mfa', 'take its MFA device away, which is lost')
    .action(async (id, options) => (await load()).setMember(context, id, options));
  command('delete <id>', 'delete one').action(async (id, options) =>
    (await load()).deleteMember(context, id, options),
  );
}

function addMailCommands(program: Command, context: CliContext): void {
  const load = () => import('./mail-command.ts');
  const mail = program.command('mail').description('mails to customers');
  const command = (usage: string, help: string) => withConnection(mail.command(usage).description(help));
  command('list', 'list the last ones, the newest first').action(async (options) =>
    (await load()).listMails(context, options),
  );
  command('show <id>', 'write one anew, to hand it on: its link replaces the one before').action(
    async (id, options) => (await load()).showMail(context, id, options),
  );
  command('send <id>', 'send one, again if need be').action(async (id, options) =>
    (await load()).sendMail(context, id, options),
  );
}

function addKeysCommands(program: Command, context: CliContext): void {
  const load = () => import('./keys-commands.ts');
  const keys = program.command('keys').description('the master keys that protect all other keys');
  withConnection(keys.command('status').description('which there are, and how a rotation stands')).action(
    async (options: ConnectOptions) => (await load()).showKeys(context, options),
  );
  const rotation = 'bring all keys under a new master key; of a cluster: one of `holdfast cluster add-key`';
  withConnection(keys.command('rotate').description(rotation))
    .option('--wait', 'end when nothing needs the older keys any more')
    .action(async (options) => (await load()).rotateKeys(context, options));
  const removal = 'of a cluster: take an older key that nothing needs out of the files of all gateways';
  withConnection(keys.command('remove <key>').description(removal)).action(
    async (key: string, options: ConnectOptions) => (await load()).removeKey(context, key, options),
  );
}

/** The options of every command here. */
function withConnection(command: Command, help = CONNECTION_HELP): Command {
  return command
    .option('--endpoint <url>', 'address of the server')
    .option('--data-dir <path>', 'data folder of the server, for its address and credentials')
    .option('--json', 'print JSON')
    .addHelpText('after', `\n${help}`)
    .showHelpAfterError();
}
