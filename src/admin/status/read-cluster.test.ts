// `holdfast cluster status` while etcd does not answer: what it says, and by what.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  CLUSTER_ID,
  CLUSTER_SECRET,
  nodeId,
  openCredentials,
  secretSecurity,
  startRpcNode,
} from '../../../tests/support/coordination/rpc-nodes.ts';
import { loadConfig } from '../../config/load.ts';
import type { ReplicaStatus, ShardCall } from '../../ports/shard-calls.ts';
import type { KnownCluster } from './last-known.ts';
import { lastKnownPath } from './last-known.ts';
import { printClusterStatus } from './print-status.ts';
import { describeNoCluster, readClusterStatus } from './read-cluster.ts';

/** Nobody listens there. */
const ETCD = 'http://127.0.0.1:1';
const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
const [ONE, TWO, THREE] = [nodeId(1), nodeId(2), nodeId(3)];

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-status-'));
});
afterEach(() => rm(folder, { recursive: true }));

const config = loadConfig({ flags: { join: ETCD }, env: { HOLDFAST_CLUSTER_SECRET: CLUSTER_SECRET } });
const refOf = (node: string) => ({ nodeId: node, replicaId: node });

function knownCluster(address: string): KnownCluster {
  const voters = [ONE, TWO, THREE].map(refOf);
  const members = [ONE, TWO].map((node) => ({
    nodeId: node,
    role: 'metadata' as const,
    zone: node,
    disks: [],
    version: '0.1.0',
    address: node === TWO ? address : '127.0.0.1:1',
  }));
  return {
    atMs: NOW,
    identity: {
      clusterId: CLUSTER_ID,
      formatVersion: 1,
      shardCount: 1,
      replicaCount: 3,
      chunkCopies: 3,
      masterKeyId: 'k',
    },
    members,
    records: [
      {
        incarnation: 1,
        epoch: 4,
        primary: refOf(ONE),
        voters,
        prevVoters: null,
        learners: [],
        nonce: '',
      },
    ],
    placement: null,
  };
}

test('an etcd without records says whether nodes of a cluster still run, and what to do', () => {
  expect(describeNoCluster([])).toMatch(/^there is no cluster: .*cluster init.*rebuild-coordination/);
  const said = describeNoCluster(knownCluster('127.0.0.1:1').members);
  expect(said).toMatch(
    /^etcd has lost its records of this cluster, and nodes run \(metadata .*\): they serve on/,
  );
  expect(said).toContain('stop the nodes, run `holdfast cluster rebuild-coordination`');
});

test('who has never asked before is told that etcd does not answer', async () => {
  const lastKnown = join(folder, 'none.json');
  await expect(readClusterStatus({ config })).rejects.toThrow('etcd does not answer');
  await expect(readClusterStatus({ config, lastKnown })).rejects.toThrow(
    /etcd does not answer: .* what it said before is not known to this machine/,
  );
});

test('nodes are asked where they were last, and who leads now is known by them', async () => {
  const status: ReplicaStatus = {
    shard: 0,
    role: 'primary',
    state: 'live',
    incarnation: 1,
    epoch: 5,
    primary: refOf(TWO),
    lastSeq: 7,
    appliedSeq: 7,
    appliedTimeMs: NOW,
    isRegistryBehind: false,
    isTimeBelieved: true,
    lags: [{ replicaId: THREE, lag: 2 }],
    verification: { lastPass: { endedAtMs: NOW, partialCount: 1 }, mismatchAtMs: NOW },
  };
  const credentials = await openCredentials(secretSecurity);
  const addresses = new Map<string, string>();
  const handler = {
    ticket: () => ({ processId: 'p', monotonicMs: 0, wallMs: 0 }),
    handle: async ({ kind, name }: ShardCall) => {
      const value = kind === 'status' ? [status] : name === 'get-audit' ? { audit: null } : { debts: [] };
      return { kind: 'done', value, timeMs: 0 } as const;
    },
  };
  const node = await startRpcNode({ nodeId: TWO, credentials, addresses, handler });
  const lastKnown = join(folder, 'known.json');
  await writeFile(lastKnown, JSON.stringify(knownCluster(addresses.get(TWO) ?? '')));
  const found = await readClusterStatus({ config, lastKnown });
  expect(found).toMatchObject({ clusterId: CLUSTER_ID, knownAtMs: NOW });
  expect(found.shards).toMatchObject([{ primary: TWO, epoch: 5, isOpen: true }]);
  expect(found.alarms).toEqual([
    expect.stringMatching(/^etcd does not answer: .*shown as they were at 2026-01-02T03:04:05Z$/),
    expect.stringContaining('shard 0: its replicas were found to differ at 2026-01-02T03:04:05Z'),
    expect.stringContaining(`metadata node ${ONE.slice(0, 8)} does not answer`),
    expect.stringContaining(`metadata node ${THREE.slice(0, 8)} does not answer`),
  ]);
  const lines: string[] = [];
  printClusterStatus(found, (line) => lines.push(line));
  expect(lines.join('\n')).toContain('2026-01-02T03:04:05Z in part');
  await node.close();
  credentials.close();
});

test('what was known is kept for each etcd', () => {
  const path = lastKnownPath({ XDG_CACHE_HOME: '/cache' }, ['b:1', 'a:1']);
  expect(path).toMatch(/^\/cache\/holdfast\/cluster-[0-9a-f]{16}\.json$/);
  expect(lastKnownPath({ XDG_CACHE_HOME: '/cache' }, ['a:1', 'b:1'])).toBe(path);
  expect(lastKnownPath({ HOME: '/root' }, ['c:1'])).not.toBe(path);
});

test('whoever is needed while voters are changed is named, so that nobody stops it', async () => {
  const lastKnown = join(folder, 'changing.json');
  const known = knownCluster('127.0.0.1:1');
  const records = known.records.map((record) => record && { ...record, prevVoters: [refOf(ONE)] });
  await writeFile(lastKnown, JSON.stringify({ ...known, records }));
  const found = await readClusterStatus({ config, lastKnown });
  expect(found.shards).toMatchObject([{ prevVoters: [ONE] }]);
  expect(found.alarms).toContain('1 shards change their voters: those of before are still needed');
});
