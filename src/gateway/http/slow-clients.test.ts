// What slow clients leave to others, over real sockets: another account, another address of the same account, and whoever
// has signed the URL that they use, are served at once, and all memory is given back when the slow ones go.
import { Agent } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { type Access, send } from '../../../tests/support/servers/raw-s3.ts';
import {
  headOf,
  openSocket,
  presignedHeadOf,
  type RawSocket,
} from '../../../tests/support/servers/raw-socket.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const LARGE = 24 * MiB;
const BUFFER = 16 * MiB;
/** What one address may hold of it. */
const SHARE = 0.72 * BUFFER;
/** The least that a tenant at its bound holds: up to 64 KiB are reserved for each of 46 bodies. */
const NEAR_SHARE = 0.7 * SHARE;

let world: GatewayWorld;
let slow: Access;
let other: Access;
let elsewhere: Agent;
const sockets: RawSocket[] = [];

beforeEach(async () => {
  world = await openGatewayWorld({ bodyBufferBytes: BUFFER });
  slow = { endpoint: world.endpoint, ...(await world.makeAccount('slow')) };
  other = { endpoint: world.endpoint, ...(await world.makeAccount('other')) };
  elsewhere = new Agent({ localAddress: '127.0.0.2' });
  for (const access of [slow, other]) await send(access, { method: 'PUT', path: bucketOf(access) });
});

afterEach(async () => {
  for (const { destroy } of sockets.splice(0)) destroy();
  elsewhere.destroy();
  await world.close();
});

const bucketOf = (access: Access) => `/bucket-${access === slow ? 'slow' : 'other'}`;

/** What a client that is within its share does all the time. */
async function statusesOf(access: Access, agent?: Agent): Promise<number[]> {
  const path = bucketOf(access);
  const by = agent === undefined ? {} : { agent };
  const answers = [
    await send(access, { method: 'PUT', path: `${path}/1m`, body: Buffer.alloc(MiB, 1), ...by }),
    await send(access, { method: 'PUT', path: `${path}/4k`, body: Buffer.alloc(4 * KiB, 2), ...by }),
    await send(access, { method: 'GET', path: `${path}/4k`, ...by }),
    await send(access, { method: 'GET', path: `${path}?list-type=2`, ...by }),
  ];
  return answers.map(({ status }) => status);
}

const held = () => expect.poll(() => world.heldBytes(), { timeout: 20_000, interval: 20 });

/**
 * Connections, of one address where none is said, opened one after the other while there is room; `begin` sends what makes
 * them hold memory.
 */
async function openCrowd(
  count: number,
  begin: (socket: RawSocket, at: number) => void,
  addressOf = (_at: number) => '127.0.0.1',
): Promise<void> {
  for (let at = 0; at < count; at++) {
    const socket = await openSocket(slow, { localAddress: addressOf(at) });
    sockets.push(socket);
    const before = world.heldBytes();
    begin(socket, at);
    if (before < NEAR_SHARE) await held().toBeGreaterThan(before);
  }
  await held().toBeGreaterThan(NEAR_SHARE);
}

async function putLarge(): Promise<string> {
  const path = `${bucketOf(slow)}/large`;
  const stored = await send(slow, { method: 'PUT', path, body: Buffer.alloc(LARGE, 3) });
  expect(stored.status).toBe(200);
  return path;
}

/** They ask for a large object and do not read it. */
async function readSlowly(count: number): Promise<void> {
  const path = await putLarge();
  await openCrowd(count, (socket) => {
    socket.socket.pause();
    socket.write(headOf(slow, { method: 'GET', path }));
  });
}

/** They send a part of a chunk and no more. */
function sendSlowly(count: number): Promise<void> {
  return openCrowd(count, (socket, at) => {
    const headers = { 'content-length': String(MiB) };
    socket.write(headOf(slow, { method: 'PUT', path: `${bucketOf(slow)}/${at}`, headers }));
    socket.write(Buffer.alloc(400 * KiB));
  });
}

async function expectAllGivenBack(): Promise<void> {
  for (const { destroy } of sockets) destroy();
  await held().toBe(0);
  await expect.poll(() => world.gateway.oldestRequestMs(), { timeout: 20_000 }).toBeUndefined();
}

describe.each([
  ['that read a large object and do not take it', () => readSlowly(30)],
  ['that send a part of their bodies and no more', () => sendSlowly(60)],
])('clients of one address %s', (_name, attack) => {
  test('refuse nothing to another account, nor to their own from another address', async () => {
    await attack();
    expect(world.heldBytes()).toBeLessThanOrEqual(BUFFER + BUFFER / 8);
    expect(await statusesOf(other)).toEqual([200, 200, 200, 200]);
    expect(await statusesOf(slow, elsewhere)).toEqual([200, 200, 200, 200]);
    await expectAllGivenBack();
    expect(await statusesOf(slow)).toEqual([200, 200, 200, 200]);
  });
});

test('readers by one presigned URL, of many addresses, refuse nothing to who has signed it, nor to another account', async () => {
  const get = presignedHeadOf(slow, { method: 'GET', path: await putLarge() });
  const begin = (socket: RawSocket) => {
    socket.socket.pause();
    socket.write(get);
  };
  await openCrowd(40, begin, (at) => `127.0.1.${at + 1}`);
  expect(await statusesOf(slow)).toEqual([200, 200, 200, 200]);
  expect(await statusesOf(other)).toEqual([200, 200, 200, 200]);
  await expectAllGivenBack();
});
