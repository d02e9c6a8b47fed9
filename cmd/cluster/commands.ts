// The commands about a cluster as a whole, for main.ts. Their code is loaded when one is called.
import type { Command } from 'commander';

export interface ClusterCommandContext {
  print(line: string): void;
  nowMs(): number;
}

export function addClusterCommands(program: Command, context: ClusterCommandContext): void {
  const cluster = program.command('cluster').description('prepare a cluster of several machines');
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
}
