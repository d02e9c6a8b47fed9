import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { ChannelCredentials, Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type AddressBook,
  CLUSTER_ID,
  CLUSTER_SECRET,
  makeCertificates,
  nodeId,
  openCredentials,
  type RpcNode,
  secretSecurity,
  startRpcNode,
} from '../../../tests/support/coordination/rpc-nodes.ts';
import { must } from '../../base/assert.ts';
import type { ReplicaMessage } from '../../ports/replication.ts';
import type { ShardCallHandler } from '../../ports/shard-calls.ts';
import type { RpcCredentials, RpcSecurity } from './credentials.ts';
import { createClusterSecret } from './secret-proofs.ts';
import { CALLS, RPC_VERSION } from './wire.ts';

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const NODE = nodeId(2);
const addresses: AddressBook = new Map();
const heard: ReplicaMessage[] = [];
const served: unknown[] = [];
const handler: ShardCallHandler = {
  ticket: () => ({ processId: 'p', monotonicMs: 1, wallMs: 0 }),
  async handle({ body }) {
    served.push(body);
    return { kind: 'busy' };
  },
};

async function open(security: RpcSecurity): Promise<RpcCredentials> {
  const credentials = await openCredentials(security);
  closers.push(() => credentials.close());
  return credentials;
}

async function start(
  security: RpcSecurity,
  options: { nodeId: string; clusterId?: string },
): Promise<RpcNode> {
  const node = await startRpcNode({ ...options, credentials: await open(security), addresses, handler });
  closers.push(node.close);
  return node;
}

async function startNode(security: RpcSecurity): Promise<RpcNode> {
  const node = await start(security, { nodeId: NODE });
  node.peers.listen((_from, message) => heard.push(message));
  return node;
}

const call = { kind: 'query', envelope: { shard: 1 }, name: 'get-version', body: 'x', budgetMs: 1 } as const;
const release = { kind: 'release', shard: 1, incarnation: 1, epoch: 1, from: 'a', to: 'b' } as const;

/** Why a node with this security cannot call, as it says itself; it sends a replica message as well. */
async function refusalOf(
  security: RpcSecurity,
  options: { nodeId: string; clusterId?: string } = { nodeId: nodeId(1) },
): Promise<string> {
  const stranger = await start(security, options);
  stranger.peers.send(NODE, release);
  const error = await stranger.calls.call(NODE, call, new AbortController().signal).then(
    (reply) => new Error(`answered ${reply.kind}`),
    (refused: Error & { wasSent?: boolean }) => {
      expect(refused.wasSent).toBe(false);
      return refused;
    },
  );
  return error.message;
}

beforeEach(() => {
  addresses.clear();
  heard.length = 0;
  served.length = 0;
});

/** Neither a call nor a message has come through. */
function expectNothingHeard(): void {
  expect({ heard, served }).toEqual({ heard: [], served: [] });
}

/** What someone who speaks gRPC but has no software of ours is told. */
function knock(credentials: ChannelCredentials, headers: Record<string, string> = {}): Promise<ServiceError> {
  const address = must(addresses.get(NODE), 'the node listens');
  const client = new Client(address, credentials, { 'grpc.ssl_target_name_override': 'node.example' });
  closers.push(() => client.close());
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const stream = client.makeBidiStreamRequest(
    CALLS.path,
    CALLS.requestSerialize,
    CALLS.responseDeserialize,
    metadata,
  );
  return new Promise((resolve, reject) => {
    stream.on('error', resolve);
    stream.on('metadata', () => reject(new Error('accepted')));
    stream.on('data', () => reject(new Error('answered')));
    stream.write({ version: RPC_VERSION, numbers: [1], payloads: [Buffer.from('x')] });
  });
}

describe('with the secret', () => {
  test('a member is admitted', async () => {
    await startNode(secretSecurity);
    expect(await refusalOf(secretSecurity)).toBe('answered busy');
    expect(served).toEqual(['x']);
  });

  test('a caller with another secret is refused, and sends nothing to a node that does not know its own', async () => {
    const node = await startNode(secretSecurity);
    const refusal = await refusalOf({ mode: 'secret', secret: `${CLUSTER_SECRET}!` });
    expect(refusal).toMatch(/^UNAUTHENTICATED: .* members of the cluster/);
    expectNothingHeard();
    const told = node.events.filter(({ event }) => event === 'rpc-refused');
    // Of the call and of the message together: one line a minute.
    expect(told).toHaveLength(1);
    expect(node.counts.of('holdfast_rpc_refused_total')).toBeGreaterThan(0);
    expect(JSON.stringify([told, refusal])).not.toContain(CLUSTER_SECRET);
  });

  const GREETING = `holdfast rpc 1 ${'0'.repeat(32)}`;

  /** Says one thing after another, each when the last was answered, and resolves with the answers of a node that has ended. */
  async function tell(...says: ((challenge: string) => string)[]): Promise<string[]> {
    const socket = connect(Number(must(addresses.get(NODE), 'the node listens').split(':')[1]), '127.0.0.1');
    closers.push(() => void socket.destroy());
    const answers: string[] = [];
    socket.setEncoding('latin1').on('error', () => undefined);
    socket.on('data', (answer: string) => {
      answers.push(answer);
      const say = says.shift();
      if (say === undefined) socket.destroy();
      else socket.write(say(answer.slice(-32)), 'latin1');
    });
    socket.write(must(says.shift(), 'something is said')(''), 'latin1');
    await once(socket, 'close');
    return answers;
  }

  test.each([
    ['speaks HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
    ['greets otherwise', GREETING.replace('1', '2')],
    ['goes on before it is asked', GREETING + 'f'.repeat(64)],
    ['says too little', 'x'],
  ])('a stranger who %s has no answer, and loses its connection', async (_, said) => {
    await startNode(secretSecurity);
    expect(await tell(() => said)).toEqual([]);
  });

  test('a proof is valid for one connection, and of one end', async () => {
    await startNode(secretSecurity);
    const secret = createClusterSecret(CLUSTER_SECRET);
    const address = must(addresses.get(NODE), 'the node listens');
    const over = (challenge: string) => ({ address, challenge, nonce: GREETING.slice(-32) });
    let proof = '';
    const prove = (challenge: string) => {
      proof = secret.prove('caller', over(challenge));
      return proof;
    };
    const [asked, answer] = await tell(() => GREETING, prove);
    const own = secret.prove('callee', over(must(asked, 'a challenge').slice(-32)));
    expect(answer?.slice(0, 64)).toBe(own);
    const refused = [expect.stringMatching(/^holdfast rpc 1 /), expect.stringMatching(/^not a member/)];
    expect(
      await tell(
        () => GREETING,
        () => proof,
      ),
    ).toEqual(refused);
    expect(
      await tell(
        () => GREETING,
        (challenge) => secret.prove('callee', over(challenge)),
      ),
    ).toEqual(refused);
    expectNothingHeard();
  });

  test('a process at a former address of a node that relays everything is not admitted', async () => {
    await startNode(secretSecurity);
    const now = must(addresses.get(NODE), 'the node listens');
    const relay = createServer((from) => {
      const to = connect(Number(now.split(':')[1]), '127.0.0.1');
      for (const socket of [from, to]) socket.on('error', () => undefined);
      from.pipe(to).pipe(from);
    }).listen(0, '127.0.0.1');
    await once(relay, 'listening');
    closers.push(() => void relay.close());
    addresses.set(NODE, `127.0.0.1:${(relay.address() as AddressInfo).port}`);
    expect(await refusalOf(secretSecurity)).toMatch(/^UNAUTHENTICATED/);
    expectNothingHeard();
  });

  test('a caller sends nothing to a node that does not prove that it knows the secret', async () => {
    // It accepts everyone, as an impostor that listens at the node's address would.
    const gullible = { prove: () => '00', verify: () => true };
    const credentials: RpcCredentials = { ...(await open(secretSecurity)), secret: gullible };
    const impostor = await startRpcNode({ nodeId: NODE, credentials, addresses, handler });
    closers.push(impostor.close);
    expect(await refusalOf(secretSecurity)).toMatch('not a member of the cluster');
    expectNothingHeard();
  });
});

describe('with certificates', () => {
  test('a member is admitted', async () => {
    const made = await makeCertificates();
    closers.push(made.remove);
    await startNode(made.security);
    expect(await refusalOf(made.security)).toBe('answered busy');
  });

  test('a caller without a certificate, or with one of another authority, learns nothing', async () => {
    const hosts = ['127.0.0.1', 'node.example'];
    const [made, other] = [await makeCertificates('node', hosts), await makeCertificates()];
    closers.push(made.remove, other.remove);
    const node = await startNode(made.security);
    for (const security of [other.security, secretSecurity]) {
      expect(await refusalOf(security)).toMatch(/^UNAVAILABLE/);
      addresses.delete(nodeId(1));
    }
    // It trusts the node, so that only the node can refuse.
    const ca = readFileSync(made.security.ca);
    const noCertificate = await knock(ChannelCredentials.createSsl(ca));
    expect(noCertificate.code).toBe(status.UNAVAILABLE);
    const { cert, key } = other.security;
    await knock(ChannelCredentials.createSsl(ca, readFileSync(key), readFileSync(cert)));
    const [told] = node.events.filter(({ event }) => event === 'rpc-refused').slice(-1);
    expect(told?.fields).toEqual({ host: '127.0.0.1', reason: 'CERT_SIGNATURE_FAILURE' });
    expect(node.counts.of('holdfast_rpc_received_frames_total calls')).toBe(0);
    expectNothingHeard();
    // Both kinds, by their reasons; which is which the TLS library words.
    expect(node.events.filter(({ event }) => event === 'rpc-refused').length).toBeGreaterThanOrEqual(2);
    expect(node.counts.of('holdfast_rpc_refused_total')).toBeGreaterThanOrEqual(3);
  });

  test('a caller refuses a node whose certificate is for another address', async () => {
    const made = await makeCertificates('node', ['10.9.8.7', 'node.example']);
    closers.push(made.remove);
    await startNode(made.security);
    expect(await refusalOf(made.security)).toMatch(/10\.9\.8\.7|altnames/i);
    expectNothingHeard();
  });
});

describe.each(['secret', 'tls'] as const)('a member (%s) is told why it is refused:', (mode) => {
  let security: RpcSecurity;
  beforeEach(async () => {
    const made = mode === 'tls' ? await makeCertificates() : undefined;
    if (made !== undefined) closers.push(made.remove);
    security = made?.security ?? secretSecurity;
  });

  test('it is of another cluster', async () => {
    const node = await startNode(security);
    const refusal = await refusalOf(security, { nodeId: nodeId(1), clusterId: 'd'.repeat(32) });
    expect(refusal).toBe(
      `FAILED_PRECONDITION: the caller is of cluster ${'d'.repeat(32)}, this node of cluster ${CLUSTER_ID}`,
    );
    expectNothingHeard();
    expect(node.events.map(({ event }) => event)).toContain('rpc-refused');
  });

  test('another node has taken the address over', async () => {
    const node = await startNode(security);
    addresses.set(nodeId(8), must(addresses.get(NODE), 'the node listens'));
    const other = await start(security, { nodeId: nodeId(1) });
    other.peers.send(nodeId(8), release);
    await expect(other.calls.call(nodeId(8), call, new AbortController().signal)).rejects.toThrow(
      `FAILED_PRECONDITION: this is node ${NODE}, not ${nodeId(8)}`,
    );
    expectNothingHeard();
    expect(node.counts.of('holdfast_rpc_received_frames_total messages')).toBe(0);
  });
});
