// holdfast account keys: the access keys of an account, and one in exchange for another. A new key of the root account
// goes into the root-credentials.json that this tool signs with, so that the tool goes on working without the old one.
import { open, rename } from 'node:fs/promises';
import { Refusal } from '../lib/refusal.ts';
import { type CliContext, type ConnectOptions, connect, findRootCredentials } from './connect.ts';
import { formatAnswer, formatTable } from './format.ts';
import { encodeSegment } from './sign-request.ts';

export interface KeyOptions extends ConnectOptions {
  new?: boolean;
  disable?: string;
  enable?: string;
  delete?: string;
}

/** As the operator API has it. */
interface AccessKey {
  accessKey: string;
  state: 'active' | 'disabled';
  createdAt: string;
}

interface NewAccessKey extends AccessKey {
  secretKey: string;
  isRoot: boolean;
}

/** One of the options; without any the account's keys are listed. */
export async function accountKeys(context: CliContext, account: string, options: KeyOptions): Promise<void> {
  const wishes = [options.new, options.disable, options.enable, options.delete];
  if (wishes.filter((wish) => wish !== undefined).length > 1)
    throw new Refusal('give one of --new, --disable, --enable and --delete');
  const path = `/accounts/${encodeSegment(account)}/keys`;
  if (options.new === true) return makeKey(context, path, options);
  const client = await connect(context, options);
  const pathOf = (accessKey: string) => `${path}/${encodeSegment(accessKey)}`;
  if (options.disable !== undefined)
    await client.call('PATCH', pathOf(options.disable), { state: 'disabled' });
  if (options.enable !== undefined) await client.call('PATCH', pathOf(options.enable), { state: 'active' });
  if (options.delete !== undefined) await client.call('DELETE', pathOf(options.delete));
  const { keys } = (await client.call('GET', path)) as { keys: AccessKey[] };
  const head = ['ACCESS KEY', 'STATE', 'CREATED'];
  const rows = keys.map(({ accessKey, state, createdAt }) => [accessKey, state, createdAt]);
  context.print(formatAnswer(options, keys, () => formatTable([head, ...rows])));
}

async function makeKey(context: CliContext, path: string, options: KeyOptions): Promise<void> {
  const client = await connect(context, options);
  const made = (await client.call('POST', path, {})) as NewAccessKey;
  const { accessKey, secretKey, isRoot, state, createdAt } = made;
  const rows = [
    ['access key', accessKey],
    ['secret key', secretKey],
  ];
  context.print(formatAnswer(options, { accessKey, secretKey, state, createdAt }, () => formatTable(rows)));
  const say = (line: string) => {
    if (options.json !== true) context.print(line);
  };
  say('\nThe secret key is not shown again. The other key goes on working until it is disabled or deleted.');
  if (!isRoot) return;
  const { file, isInEnvironment } = await findRootCredentials(context, options);
  if (file !== undefined) {
    await replaceFile(file, `${JSON.stringify({ accessKey, secretKey }, undefined, 2)}\n`);
    say(`They stand in ${file} now. Copy it to every other place that has it: to each gateway of a cluster.`);
  }
  if (file === undefined || isInEnvironment)
    say('Set HOLDFAST_ROOT_ACCESS_KEY and HOLDFAST_ROOT_SECRET_KEY to these, wherever they are set.');
}

/** Whole or as before, whatever happens meanwhile; for its owner alone. */
async function replaceFile(path: string, text: string): Promise<void> {
  const aside = `${path}.new`;
  try {
    {
      await using file = await open(aside, 'w', 0o600);
      await file.chmod(0o600);
      await file.writeFile(text);
      await file.sync();
    }
    await rename(aside, path);
  } catch (error) {
    throw new Refusal(
      `${path} cannot be written: ${(error as Error).message}\nThe new key works; write it there before you delete the other one.`,
    );
  }
}
