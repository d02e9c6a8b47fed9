// holdfast cluster add-key and remove-key: the file with the master keys of a cluster, which its operator copies to the gateways
// (docs/security.md, "Master keys of a cluster").
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { Refusal } from '../../src/base/refusal.ts';
import type { Keys } from '../../src/cli/keys-commands.ts';
import { withSecretsRead } from '../read-config.ts';
import type { ClusterCommandContext } from './command-context.ts';

export function addKeyCommands(cluster: Command, context: ClusterCommandContext): void {
  cluster
    .command('add-key <dir>')
    .description(
      "put a new master key, which nothing uses yet, into a folder of keys; copy it to all gateways'",
    )
    .showHelpAfterError()
    .action(async (folder: string) => {
      const { addMasterKey, MASTER_KEYS_FILE } = await import('../../src/platform/keyring/file-keyring.ts');
      const path = join(resolve(folder), MASTER_KEYS_FILE);
      context.print(`${path} has the new master key ${await addMasterKey(path)}.`);
      context.print('Copy the file to the folders of all gateways, which read it within seconds.');
      context.print('Then bring all keys under it: holdfast keys rotate');
      process.exit(0);
    });
  cluster
    .command('remove-key <dir> <key>')
    .description(
      'take a master key that `holdfast keys remove` has ended out of a folder of keys that no gateway may write',
    )
    .option('--endpoint <url>', 'address of a gateway, which is asked whether the cluster needs the key')
    .option('--unasked', 'ask no gateway: what is under a key that is needed is lost with its last copy')
    .showHelpAfterError()
    .action(async (folder: string, keyId: string, options: { endpoint?: string; unasked?: true }) => {
      const { removeMasterKey, MASTER_KEYS_FILE } = await import(
        '../../src/platform/keyring/file-keyring.ts'
      );
      if (options.unasked !== true) await refuseNeeded(context, keyId, { ...options, dataDir: folder });
      const path = join(resolve(folder), MASTER_KEYS_FILE);
      await removeMasterKey(path, keyId);
      context.print(`${path} has the master key ${keyId} no more.`);
      process.exit(0);
    });
}

async function refuseNeeded(
  { print, nowMs }: ClusterCommandContext,
  keyId: string,
  options: { endpoint?: string; dataDir: string },
): Promise<void> {
  const { connect } = await import('../../src/cli/connect.ts');
  const client = await connect({ env: withSecretsRead(process.env), print, nowMs, sleep }, options);
  const { activeKeyId, olderKeyIds } = (await client.call('GET', '/keys')) as Keys;
  if (keyId === activeKeyId) throw new Refusal(`${keyId} is the master key that the cluster wraps by.`);
  if (olderKeyIds.includes(keyId))
    throw new Refusal(`the cluster has the master key ${keyId} yet: holdfast keys remove ${keyId}`);
}
