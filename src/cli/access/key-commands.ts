// holdfast key create, list, disable, enable, delete: access keys of users, and of the caller itself where no user is named.
import { type CliContext, type ConnectOptions, connectIdentity } from '../connect.ts';
import { field, jsonOf, printDone, printFacts, printList, requireElement } from './answers.ts';
import type { QueryClient } from './query-client.ts';

export interface KeyOptions extends ConnectOptions {
  user?: string;
}

export async function createKey(context: CliContext, options: KeyOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const key = requireElement(await query.iam('CreateAccessKey', { UserName: options.user }), 'AccessKey');
  printFacts({ context, options }, jsonOf(key) as object, [
    ['user', field(key, 'UserName')],
    ['access key', field(key, 'AccessKeyId')],
    ['secret key', field(key, 'SecretAccessKey')],
  ]);
  if (options.json !== true) context.print('\nThe secret key is not shown again.');
}

export async function listKeys(context: CliContext, options: KeyOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const keys = await query.list('ListAccessKeys', 'AccessKeyMetadata', { UserName: options.user });
  const uses = new Map<string, string>();
  for (const key of keys) {
    const accessKey = field(key, 'AccessKeyId');
    uses.set(accessKey, await lastUseOf(query, accessKey));
  }
  printList({ context, options }, keys, {
    'ACCESS KEY': 'AccessKeyId',
    USER: 'UserName',
    STATUS: 'Status',
    CREATED: 'CreateDate',
    'LAST USED': (key) => uses.get(field(key, 'AccessKeyId')) ?? '',
  });
}

/** When and for which service; nothing where it was not used. */
async function lastUseOf(query: QueryClient, accessKey: string): Promise<string> {
  const answer = await query.iam('GetAccessKeyLastUsed', { AccessKeyId: accessKey });
  const use = requireElement(answer, 'AccessKeyLastUsed');
  const date = field(use, 'LastUsedDate');
  return date === '' ? '' : `${date} (${field(use, 'ServiceName')})`;
}

export type KeyChange = 'disable' | 'enable' | 'delete';

const DONE: Readonly<Record<KeyChange, string>> = {
  disable: 'is disabled: nothing that it signs is taken any more',
  enable: 'is enabled',
  delete: 'is deleted',
};

/** The user may be left out: the key tells whose it is. */
export async function changeKey(
  context: CliContext,
  { accessKey, change }: { accessKey: string; change: KeyChange },
  options: KeyOptions,
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const of = { UserName: options.user ?? (await ownerOf(query, accessKey)), AccessKeyId: accessKey };
  if (change === 'delete') await query.iam('DeleteAccessKey', of);
  else await query.iam('UpdateAccessKey', { ...of, Status: change === 'enable' ? 'Active' : 'Inactive' });
  printDone({ context, options }, `Key ${accessKey} ${DONE[change]}.`);
}

/** undefined: it is of the root account. */
async function ownerOf(query: QueryClient, accessKey: string): Promise<string | undefined> {
  const answer = await query.iam('GetAccessKeyLastUsed', { AccessKeyId: accessKey });
  return field(answer, 'UserName') || undefined;
}
