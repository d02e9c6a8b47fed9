// What the commands about a cluster have in common: how they print and read settings, and which settings they take.
import type { Command } from 'commander';
import type { Config } from '../../src/config/schema.ts';

export interface ClusterCommandContext {
  print(line: string): void;
  nowMs(): number;
  /** Gives a command the settings of `keys` as options. */
  withSettings(command: Command, keys: readonly string[]): Command;
  readSettings(command: Command): Config;
}

/** By which a command reaches etcd. */
export const ETCD_SETTINGS = ['join', 'etcd.ca', 'etcd.cert', 'etcd.key', 'etcd.user', 'etcd.password'];

/** Of a command that asks nodes. */
export const MEMBER_SETTINGS = [
  ...ETCD_SETTINGS,
  'cluster.secret',
  'cluster.ca',
  'cluster.cert',
  'cluster.key',
];
