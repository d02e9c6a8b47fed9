// Metadata nodes that come and go by the operator's commands: one that is lost for good gives its place to a new one, and
// one that works is drained, stopped and forgotten. The commands are those of docs/operations.md.
import type { ChildProcess } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { seededBytes } from '../support/clients/tree.ts';
import { freePort } from '../support/cluster/free-ports.ts';
import { sendAgain } from '../support/cluster/send-again.ts';
import { startCluster, type TestCluster } from '../support/cluster/start-cluster.ts';
import { commandsOf } from '../support/run/runbook.ts';
import { endGracefully, ranToEnd } from '../support/servers/process-ends.ts';

const WITHIN = { timeout: 180_000, interval: 800 };
/** In the metadata, and in chunks. */
const BODIES = [seededBytes('small', 1000), seededBytes('large', 300_000)];

let cluster: TestCluster;
const started: ChildProcess[] = [];

beforeAll(async () => {
  cluster = await startCluster({ metadata: 3, storage: 1, gateways: 1, shards: 4 });
});
afterAll(async () => {
  for (const child of started) await endGracefully(child);
  await cluster?.stop();
});

async function ask(method: 'PUT' | 'GET', path: string, body?: Buffer): Promise<Buffer> {
  const answer = await sendAgain(() => must(cluster.gateways[0], 'a gateway'), {
    method,
    path,
    ...(body && { body }),
  });
  expect(answer.status).toBe(200);
  return answer.body;
}

/** Everything that was written before is read, and something is written. */
async function expectServing(turn: string): Promise<void> {
  for (const [index, body] of BODIES.entries()) {
    expect(await ask('GET', `/kept-${index}/object`)).toEqual(body);
    await ask('PUT', `/kept-${index}/${turn}`, body);
  }
}

/** As the document says; the node's folder is in the cluster's. Resolves with the node's id. */
async function addNode(name: string): Promise<string> {
  const [words] = commandsOf('Add a metadata node');
  const own: Record<string, string> = {
    '/var/lib/holdfast/metadata-1': join(cluster.folder, name),
    '192.0.2.14:7001': `127.0.0.1:${await freePort()}`,
    'rack-4': name,
  };
  const child = cluster.spawn(...must(words, 'the command').map((word) => own[word] ?? word));
  for (const stream of [child.stdout, child.stderr]) stream.resume();
  started.push(child);
  await expect.poll(() => nodeIdOf(name).catch(() => ''), WITHIN).not.toBe('');
  return nodeIdOf(name);
}

const nodeIdOf = async (name: string): Promise<string> =>
  JSON.parse(await readFile(join(cluster.folder, name, 'node.json'), 'utf8')).nodeId;

/** Nothing is wrong, and each shard has its voters on these nodes alone. */
async function untilVotersAre(...nodeIds: string[]): Promise<void> {
  const wanted = nodeIds.toSorted();
  const find = async () => {
    const { shards, alarms } = await cluster.status();
    return {
      voters: shards.map(({ voters }) => voters.map(({ nodeId }) => nodeId).sort()),
      alarms,
    };
  };
  await expect.poll(find, WITHIN).toEqual({ voters: Array(4).fill(wanted), alarms: [] });
}

async function run(change: 'drain' | 'remove', nodeId: string): Promise<string> {
  const { code, output } = await cluster.command('cluster', change, nodeId.slice(0, 8));
  return code === 0 ? output : `refused: ${output}`;
}

test('a node that is lost for good is replaced by a new one', async () => {
  for (const [index, body] of BODIES.entries()) {
    await ask('PUT', `/kept-${index}`);
    await ask('PUT', `/kept-${index}/object`, body);
  }
  const [first, second, lost] = await Promise.all(
    ['metadata-1', 'metadata-2', 'metadata-3'].map((name) => nodeIdOf(name)),
  );
  await cluster.kill('metadata-3');
  await rm(join(cluster.folder, 'metadata-3'), { recursive: true });
  await expect
    .poll(() => run('remove', must(lost, 'an id')), WITHIN)
    .toContain('2 other metadata nodes are there');
  const fourth = await addNode('metadata-4');
  await expect.poll(() => run('remove', must(lost, 'an id')), WITHIN).toContain('is removed: 4 shards');
  await untilVotersAre(must(first, 'an id'), must(second, 'an id'), fourth);
  await expectServing('after-loss');
});

test('a working node is drained, stopped and removed', async () => {
  const [leaving, staying] = [await nodeIdOf('metadata-1'), await nodeIdOf('metadata-2')];
  expect(await run('drain', leaving)).toContain('2 other metadata nodes are there');
  const [fourth, fifth] = [await nodeIdOf('metadata-4'), await addNode('metadata-5')];
  await expect.poll(() => run('drain', leaving), WITHIN).toContain('drains');
  await untilVotersAre(staying, fourth, fifth);
  const { leavingNodes } = await cluster.status();
  expect(leavingNodes).toEqual([{ nodeId: leaving, leave: 'draining', isThere: true, voterCount: 0 }]);
  expect(await run('remove', leaving)).toContain('refused: ');
  await cluster.end('metadata-1');
  await expect.poll(() => run('remove', leaving), WITHIN).toContain('is removed: no shard');
  // With the folder that it had it is the node that was removed.
  const again = cluster.spawn('metadata', '--data-dir', join(cluster.folder, 'metadata-1'));
  started.push(again);
  const refused = await ranToEnd(again, 'the node that was removed');
  expect(refused.code).toBe(1);
  expect(refused.output).toContain('which was removed from the cluster: `holdfast cluster undrain');
  await untilVotersAre(staying, fourth, fifth);
  expect((await cluster.status()).leavingNodes).toEqual([]);
  await expectServing('after-drain');
});
