// The commands about single shards of a cluster, for main.ts. Their code is loaded when one is called.
import type { Command } from 'commander';
import { type ClusterCommandContext, MEMBER_SETTINGS } from './command-context.ts';

const SHARDS = 'numbers of shards, as 3 or 0-15 or 1,4-6';

export function addShardCommands(program: Command, context: ClusterCommandContext): void {
  const { print, withSettings, readSettings } = context;
  const load = () => import('../../src/admin/recovery/recover-shards.ts');
  const shard = program
    .command('shard')
    .description('look after shards that have lost their majority for good');
  const recover = withSettings(shard.command('recover <shards>'), MEMBER_SETTINGS)
    .description('let shards go on with what one replica has left, and give up all others')
    .requiredOption('--from <replica>', 'the replica, or its node, or how the id of one begins')
    .option('--folder <dir...>', 'of nodes that do not run')
    .option('--accept-loss', 'do it: what that replica lacks is lost');
  recover.action(async (shards: string) => {
    const options = recover.opts<{ from: string; folder?: string[]; acceptLoss?: true }>();
    const { from, folder: folders = [], acceptLoss = false } = options;
    const wanted = { shards, from, folders, acceptsLoss: acceptLoss };
    process.exit(await (await load()).recoverShards({ config: readSettings(recover), print }, wanted));
  });
  const discard = withSettings(shard.command('discard <shards>'), MEMBER_SETTINGS)
    .description('delete what a node has of a history that was given up')
    .requiredOption('--node <node>', 'the node, or how its id begins');
  discard.action(async (shards: string) => {
    const { node } = discard.opts<{ node: string }>();
    process.exit(
      await (await load()).discardShards({ config: readSettings(discard), print }, { shards, node }),
    );
  });
  const confirm = withSettings(shard.command('confirm <shards>'), MEMBER_SETTINGS).description(
    'what recovered shards have lost is lost: let them free again what nobody holds',
  );
  confirm.action(async (shards: string) => {
    process.exit(await (await load()).confirmShards({ config: readSettings(confirm), print }, { shards }));
  });
  for (const command of [recover, discard, confirm]) command.addHelpText('after', `<shards>: ${SHARDS}`);
}
