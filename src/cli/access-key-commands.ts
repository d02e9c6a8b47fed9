// holdfast account keys: the access keys of an account, and one in exchange for another. A new key of the root account
// goes into the root-credentials.json that this tool signs with, so that the tool goes on working without the old one.
import { Refusal } from '../base/refusal.ts';
import { type ConnectOptions, connect, type FileCliContext, findRootCredentials } from './connect.ts';
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
export async function accountKeys(
  context: FileCliContext,
  account: string,
  options: KeyOptions,
): Promise<void> {
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

async function makeKey(context: FileCliContext, path: string, options: KeyOptions): Promise<void> {
  const client = await connect(context, options);
  const made = (await client.call('POST', path, {})) as NewAccessKey;
  const { accessKey, secretKey, isRoot, state, createdAt } = made;
  const rows = [
    ['access key', accessKey],
    ['secret key', secretKey],
  ];
  context.print(formatAnswer(options, { accessKey, secretKey, state, createdAt }, () => formatTable(rows)));
  const printNote = (line: string) => {
    if (options.json !== true) context.print(line);
  };
  printNote(
    '\nThe secret key is not shown again. The other key goes on working until it is disabled or deleted.',
  );
  if (!isRoot) return;
  const { file, isInEnvironment } = await findRootCredentials(context, options);
  if (file !== undefined) {
    const text = `${JSON.stringify({ accessKey, secretKey }, undefined, 2)}\n`;
    await context.writeFile(file, text).catch((error: Error) => {
      throw new Refusal(
        `${file} cannot be written: ${error.message}\nThe new key works; write it there before you delete the other one.`,
      );
    });
    printNote(
      `They stand in ${file} now. Copy it to every other place that has it: to each gateway of a cluster.`,
    );
  }
  if (file === undefined || isInEnvironment)
    printNote('Set HOLDFAST_ROOT_ACCESS_KEY and HOLDFAST_ROOT_SECRET_KEY to these, wherever they are set.');
}
