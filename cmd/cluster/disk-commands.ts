// The commands about disks and nodes that come and go, for main.ts. Their code is loaded when one is called.
import type { Command } from 'commander';
import type { DiskChange } from '../../src/admin/members/change-disks.ts';
import { type ClusterCommandContext, MEMBER_SETTINGS } from './command-context.ts';

const DESCRIPTIONS: Record<DiskChange, string> = {
  drain: 'move all data off disks or nodes, or all shards off metadata nodes, while they serve on',
  undrain: 'let disks and nodes that drain stay, and let removed metadata nodes hold shards again',
  remove:
    'forget drained disks that nobody serves, metadata nodes that do not run (drained, or lost for good), and gateways that are missed',
};

export function addDiskCommands(cluster: Command, context: ClusterCommandContext): void {
  const disks = context
    .withSettings(cluster.command('disks'), MEMBER_SETTINGS)
    .description('disks with what they own, changes that are pending')
    .option('--json', 'as JSON');
  disks.action(async () => {
    const { readDisks, printDisks } = await import('../../src/admin/members/disks.ts');
    const found = await readDisks(context.readSettings(disks));
    if (disks.opts<{ json?: true }>().json === true) context.print(JSON.stringify(found, undefined, 2));
    else printDisks(found, context.print);
    process.exit(0);
  });
  for (const change of ['drain', 'undrain', 'remove'] as const) {
    const command = context
      .withSettings(cluster.command(change), MEMBER_SETTINGS)
      .description(DESCRIPTIONS[change])
      .argument(
        '<name...>',
        'ids of disks, or of storage nodes for all of their disks, or of metadata nodes, or how these begin',
      );
    if (change === 'remove')
      command.option(
        '--accept-loss',
        'although chunks lack copies that these disks may have, or shards do not say',
      );
    command.action(async (names: string[]) => {
      const { changeMembers } = await import('../../src/admin/members/change-members.ts');
      const acceptLoss = command.opts<{ acceptLoss?: true }>().acceptLoss === true;
      await changeMembers(context.readSettings(command), { change, names, acceptLoss }, context.print);
      process.exit(0);
    });
  }
}
