// holdfast cluster init: writes once what the cluster is, and makes the secrets that its gateways need.
import { join, resolve } from 'node:path';
import { answer, CLUSTER_FORMAT, connect } from '../../src/admin/join-cluster.ts';
import { SILENT } from '../../src/admin/operator-tools.ts';
import { checkGivenCredentials, openRootCredentials } from '../../src/admin/root-credentials.ts';
import { toHex } from '../../src/base/bytes/bytes.ts';
import { Refusal } from '../../src/base/refusal.ts';
import type { Config } from '../../src/config/schema.ts';
import { makeFolder } from '../../src/platform/disk/make-folder.ts';
import { MASTER_KEYS_FILE, openFileKeyring } from '../../src/platform/keyring/file-keyring.ts';
import { systemClock, systemRandom } from '../../src/platform/system-clock.ts';

const ID_BYTES = 16;

export interface InitOptions {
  /** Where the keys go. */
  out: string;
  shardCount: number;
  replicaCount: number;
  chunkCopies: number;
}

export interface MadeCluster {
  clusterId: string;
  folder: string;
}

/** Throws {@link Refusal} when there is a cluster already. */
export async function initCluster(config: Config, options: InitOptions): Promise<MadeCluster> {
  checkGivenCredentials(config.root);
  const coordinator = connect({ config, clock: systemClock, log: SILENT }, 'init');
  try {
    if ((await answer(coordinator.identity.read())) !== undefined)
      throw new Refusal('there is a cluster already');
    if ((await answer(coordinator.registry.read(0))) !== undefined)
      throw new Refusal(
        'etcd has records of a cluster that `holdfast cluster grow` was making: repeat that, or remove them (etcdctl del --prefix holdfast/)',
      );
    const folder = resolve(options.out);
    await makeFolder(folder, 0o700);
    const keyring = await openFileKeyring({ path: join(folder, MASTER_KEYS_FILE), isNew: true });
    await openRootCredentials({ folder, given: config.root, random: systemRandom, isNew: true });
    const clusterId = toHex(systemRandom.bytes(ID_BYTES));
    const { shardCount, replicaCount, chunkCopies } = options;
    const masterKeyId = keyring.activeKeyId;
    const identity = { clusterId, shardCount, replicaCount, chunkCopies, masterKeyId };
    await answer(coordinator.identity.init({ ...identity, formatVersion: CLUSTER_FORMAT }));
    return { clusterId, folder };
  } finally {
    coordinator.close();
  }
}
