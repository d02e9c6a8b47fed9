// Deleting an account takes all that it has left with it, also where a crash cut it short. And which account is meant.
import { expect, test } from 'vitest';
import { kek, openMetadata } from '../../tests/support/metadata/metadata-shards.ts';
import { createSeededRandom } from '../../tests/support/run/simulated.ts';
import { createKeyring } from '../platform/memory/memory-keyring.ts';
import type { AccountId } from '../types/names.ts';
import { createAccounts } from './accounts.ts';

test('a deletion that was cut short goes on when the account is deleted again, by its id', async () => {
  const world = await openMetadata();
  const { shards: metadata } = world;
  const accounts = createAccounts({ metadata, keyring: createKeyring(), random: createSeededRandom(1) });
  const { account } = await accounts.create({ name: 'ann', email: 'ann@example.com' });
  const { accountId } = account;
  const user = { kind: 'index', to: 'user/u' } as const;
  const rows = Array.from({ length: 120 }, (_, at) => ({ key: `id/${at}`, record: user }));
  const keys = [{ kind: 'add' as const, key: { accessKey: 'AKu', sealedSecret: kek, userId: 'AIDAU' } }];
  await world.execute('change-identities', { accountId, ifRevision: 0, rows, keys, isSeen: false });
  // The server ends here.
  await world.execute('delete-account', { accountId });
  const left = async () => {
    const ranges = [{ prefix: '', limit: 200 }];
    return (await world.query('read-identities', { accountId, ranges })).ranges[0]?.length;
  };
  expect(await left()).toBe(120);
  await accounts.remove(accountId);
  expect(await left()).toBe(0);
  await expect(accounts.remove(accountId)).rejects.toMatchObject({ code: 'NoSuchEntity' });
  const other = '000000000099' as AccountId;
  await expect(accounts.remove(other)).rejects.toMatchObject({ code: 'NoSuchEntity' });
});

test('an account that is called as another one is named by is not taken for it', async () => {
  const { shards: metadata } = await openMetadata();
  const accounts = createAccounts({ metadata, keyring: createKeyring(), random: createSeededRandom(2) });
  const { account: ann } = await accounts.create({ name: 'Ann', email: 'ann@example.com' });
  const words = [ann.accountId, ann.email, 'ANN@Example.com'];
  for (const [at, name] of words.entries()) await accounts.create({ name, email: `other-${at}@example.com` });
  for (const word of [...words, ann.canonicalId, 'Ann'])
    expect((await accounts.find(word)).account.accountId, word).toBe(ann.accountId);
  expect((await accounts.find('other-1@example.com')).account.name).toBe(ann.email);
  // Nor once the number is nobody's any more: an operator may still say it.
  await accounts.remove(ann.accountId);
  await expect(accounts.find(ann.accountId)).rejects.toMatchObject({ code: 'NoSuchEntity' });
  await expect(accounts.remove(ann.accountId)).rejects.toMatchObject({ code: 'NoSuchEntity' });
});
