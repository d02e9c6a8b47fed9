// For `holdfast cluster remove`: a killed node stays in the list of members until its lease has ended. The command waits
// for that, instead of taking the node for a running one.

import { once } from 'node:events';
import { connect } from 'node:net';
import { hostOf, portOf } from '../../base/text/host-port.ts';
import { formatId } from '../../cli/format.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Member } from '../../ports/members.ts';

/** The lease of a member, with time for a slow coordinator. */
export const LEASE_WAIT_MAX_MS = 15_000;
const LOOK_AGAIN_MS = 500;
const CONNECT_MAX_MS = 2000;

export interface WaitParts {
  clock: ClockPort;
  readMembers(): Promise<readonly Member[]>;
  /** Whether a process accepts connections there. */
  isReached(address: string): Promise<boolean>;
  print(line: string): void;
}

/** Resolves with the members when none of `names` (ids of nodes or disks, or prefixes) is listed without running. */
export async function waitUntilGone(
  { clock, readMembers, isReached, print }: WaitParts,
  names: readonly string[],
): Promise<readonly Member[]> {
  const endMs = clock.monotonicMs() + LEASE_WAIT_MAX_MS;
  let isReported = false;
  for (;;) {
    const members = await readMembers();
    const named = members.filter((member) => names.some((name) => isNamed(member, name)));
    const reached = await Promise.all(named.map(({ address }) => isReached(address)));
    // The command refuses running nodes; waiting for the others would change nothing.
    if (named.length === 0 || reached.includes(true) || clock.monotonicMs() >= endMs) return members;
    if (!isReported) {
      const nodes = named.map(({ nodeId, address }) => `${formatId(nodeId)} at ${address}`).join(', ');
      print(`${nodes} does not answer: waiting until its lease in etcd has ended, some seconds.`);
      isReported = true;
    }
    await clock.sleep(LOOK_AGAIN_MS);
  }
}

function isNamed({ nodeId, disks }: Member, name: string): boolean {
  return name !== '' && [nodeId, ...disks.map(({ diskId }) => diskId)].some((id) => id.startsWith(name));
}

/** Whether something accepts TCP connections at `host:port`. */
export async function takesConnections(address: string): Promise<boolean> {
  const socket = connect({ host: hostOf(address), port: portOf(address) });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MAX_MS) });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
