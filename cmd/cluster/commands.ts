// The commands about a cluster as a whole, for main.ts. Their code is loaded when one is called.
import type { Command } from 'commander';
import { Refusal } from '../../src/base/refusal.ts';
import { type ClusterCommandContext, ETCD_SETTINGS, MEMBER_SETTINGS } from './command-context.ts';
import { addDiskCommands } from './disk-commands.ts';
import { addKeyCommands } from './key-commands.ts';

const SHARDS_DEFAULT = '64';
const COPIES_DEFAULT = '3';

export function addClusterCommands(program: Command, context: ClusterCommandContext): void {
  const cluster = program
    .command('cluster')
    .description('make, prepare and look at a cluster of several machines');
  cluster
    .command('certs')
    .description("make a node's certificate, and the cluster's authority if there is none")
    .requiredOption('--out <dir>', 'folder of the authority; keep its ca-key.pem to yourself')
    .requiredOption('--name <node>', 'its files are NODE-cert.pem and NODE-key.pem')
    .requiredOption('--host <host...>', 'names and addresses under which other nodes reach it')
    .showHelpAfterError()
    .action(async (options: { out: string; name: string; host: string[] }) => {
      const { makeCertificates } = await import('./certs.ts');
      await makeCertificates(context, options);
    });
  addInit(cluster, context);
  addGrow(cluster, context);
  addKeyCommands(cluster, context);
  addStatus(cluster, context);
  addDiskCommands(cluster, context);
  addRebuild(cluster, context);
  addRun(cluster, context);
}

function addInit(cluster: Command, context: ClusterCommandContext): void {
  const init = context
    .withSettings(cluster.command('init'), [...ETCD_SETTINGS, 'root.accessKey', 'root.secretKey'])
    .description('write into etcd, once, what the cluster is; make its master key and root credentials')
    .requiredOption('--out <dir>', 'folder of the keys, for the gateways')
    .option('--metadata-shards <n>', 'shards of the metadata, for ever', SHARDS_DEFAULT)
    .option('--replicas <n>', 'metadata nodes that hold each shard: 1, 3 or 5', COPIES_DEFAULT)
    .option('--copies <n>', 'disks that hold each chunk', COPIES_DEFAULT);
  init.action(async () => {
    const options = init.opts<{ out: string; metadataShards: string; replicas: string; copies: string }>();
    const { initCluster } = await import('./init.ts');
    const made = await initCluster(context.readSettings(init), {
      out: options.out,
      shardCount: numberOf('--metadata-shards', options.metadataShards, 4096),
      replicaCount: oddOf('--replicas', options.replicas, 5),
      chunkCopies: numberOf('--copies', options.copies, 5),
    });
    context.print(`Cluster ${made.clusterId} is made.`);
    context.print(
      `Its master key and root credentials are in ${made.folder}: the gateways need that folder.`,
    );
    context.print('Keep a copy of it: without the master key nothing in the cluster can be read.');
    process.exit(0);
  });
}

function addGrow(cluster: Command, context: ClusterCommandContext): void {
  const grow = context
    .withSettings(cluster.command('grow'), [...ETCD_SETTINGS, 'node.listen', 'node.advertise', 'node.zone'])
    .description('make the data folder of a stopped single node the first nodes of a new cluster')
    .argument('<dir>', 'the data folder; it becomes folders for the roles')
    .option('--replicas <n>', 'metadata nodes that are to hold each shard: 1, 3 or 5', COPIES_DEFAULT)
    .option('--copies <n>', 'disks that are to hold each chunk', COPIES_DEFAULT);
  grow.action(async (folder: string) => {
    const options = grow.opts<{ replicas: string; copies: string }>();
    const { growCluster } = await import('../../src/admin/growth/grow.ts');
    const { print } = context;
    const { clusterId, folders, wasDone } = await growCluster(context.readSettings(grow), {
      folder,
      replicaCount: oddOf('--replicas', options.replicas, 5),
      chunkCopies: numberOf('--copies', options.copies, 5),
    });
    print(wasDone ? `It is cluster ${clusterId} already.` : `It is cluster ${clusterId} now. Start:`);
    print(`  holdfast metadata --data-dir ${folders.metadata}`);
    print(`  holdfast storage --data-dir ${folders.storage}`);
    print(`  holdfast gateway --cluster-keys ${folders.keys} --data-dir ${folders.gateway}`);
    print(`Keep a copy of ${folders.keys}: without the master key nothing in the cluster can be read.`);
    process.exit(0);
  });
}

function addStatus(cluster: Command, context: ClusterCommandContext): void {
  const status = context
    .withSettings(cluster.command('status'), MEMBER_SETTINGS)
    .description('members, shards with primary, epoch and voters, alarms')
    .option('--json', 'as JSON');
  status.action(async () => {
    const { readClusterStatus } = await import('../../src/admin/status/read-cluster.ts');
    const { printClusterStatus } = await import('../../src/admin/status/print-status.ts');
    const { lastKnownPath } = await import('../../src/admin/status/last-known.ts');
    const config = context.readSettings(status);
    const lastKnown = lastKnownPath(process.env, config.join);
    const found = await readClusterStatus({ config, lastKnown });
    if (status.opts<{ json?: true }>().json === true) context.print(JSON.stringify(found, undefined, 2));
    else printClusterStatus(found, context.print);
    process.exit(found.alarms.length === 0 ? 0 : 2);
  });
}

function addRebuild(cluster: Command, context: ClusterCommandContext): void {
  const rebuild = context
    .withSettings(cluster.command('rebuild-coordination'), MEMBER_SETTINGS)
    .description(
      'after etcd was lost or restored, before any node starts: its records anew, from metadata nodes',
    )
    .option('--from <dir...>', 'folders of metadata nodes on this machine that do not run')
    .option('--cluster-id <id>', 'where etcd has lost it and no folder is given: as in node.json of any node')
    .option('--yes', 'do it, else it is only shown');
  rebuild.action(async () => {
    const options = rebuild.opts<{ from?: string[]; clusterId?: string; yes?: true }>();
    const { rebuildCoordination } = await import('../../src/admin/recovery/rebuild-coordination.ts');
    const { print, nowMs } = context;
    const { from: folders = [], clusterId, yes: isMeant = false } = options;
    const config = context.readSettings(rebuild);
    process.exit(await rebuildCoordination({ config, print, nowMs }, { folders, clusterId, isMeant }));
  });
}

function addRun(cluster: Command, context: ClusterCommandContext): void {
  cluster
    .command('run')
    .description('a whole cluster on this machine, of real processes: to try it, and for tests')
    .option('--metadata <n>', 'metadata nodes', COPIES_DEFAULT)
    .option('--storage <n>', 'storage nodes', COPIES_DEFAULT)
    .option('--gateways <n>', 'gateways', '2')
    .option('--metadata-shards <n>', 'shards of a new cluster', '16')
    .option('--data-dir <dir>', 'folder of everything it keeps', './cluster-data')
    .option('--listen <host:port>', 'of the first gateway; the next have the next ports', '127.0.0.1:9000')
    .option('--no-restart', 'leave a process that has ended')
    .option('--log-level <level>', 'of all processes', 'info')
    .showHelpAfterError()
    .action(async (options: Record<string, string> & { restart: boolean }) => {
      const { runDevCluster } = await import('./dev-cluster.ts');
      const code = await runDevCluster(
        {
          metadata: numberOf('--metadata', options.metadata ?? '', 100),
          storage: numberOf('--storage', options.storage ?? '', 100),
          gateways: numberOf('--gateways', options.gateways ?? '', 100),
          shards: numberOf('--metadata-shards', options.metadataShards ?? '', 4096),
          dataDir: options.dataDir ?? '',
          listen: options.listen ?? '',
          restarts: options.restart,
          logLevel: options.logLevel ?? 'info',
        },
        context.print,
      );
      process.exit(code);
    });
}

/** Two voters bear no more losses than one. */
function oddOf(option: string, text: string, max: number): number {
  const number = numberOf(option, text, max);
  if (number % 2 === 0) throw new Refusal(`${option} must be odd`);
  return number;
}

function numberOf(option: string, text: string, max: number): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < 1 || number > max)
    throw new Refusal(`${option} must be from 1 to ${max}`);
  return number;
}
