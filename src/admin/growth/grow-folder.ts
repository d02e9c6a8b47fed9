// The data folder of a single node as the folders of a metadata node, of a storage node and of a gateway's keys: by renames
// within it, so that nothing is copied. Every step is durable before the next, and is left out where it was done before.
import { rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writeFormatFile } from '../../platform/disk/data-dir-lock.ts';
import { syncFolder } from '../../platform/disk/durable-file.ts';
import { makeFolder } from '../../platform/disk/make-folder.ts';
import { MASTER_KEYS_FILE } from '../../platform/keyring/file-keyring.ts';
import { NODE_FILE, writeNodeFile } from '../node-folder.ts';
import { CHUNKS_FOLDER, METADATA_FOLDER } from '../open-databases.ts';
import { CREDENTIALS_FILE } from '../root-credentials.ts';
import type { GrowPlan } from './grow-plan.ts';

/** Where the folders of the roles are put together, for one of them has the name of a database that is still there. */
const ASIDE = 'growing';
const TLS_FILES = ['tls-cert.pem', 'tls-key.pem'];
const ADDRESS_FILE = 'server.json';

export interface RoleFolders {
  metadata: string;
  storage: string;
  keys: string;
  gateway: string;
}

export function roleFolders(folder: string): RoleFolders {
  const of = (role: string) => join(folder, role);
  return { metadata: of('metadata'), storage: of('storage'), keys: of('keys'), gateway: of('gateway') };
}

/** Where a database of the single node is: where it was, or where the steps have brought it. */
export async function findDatabase(
  folder: string,
  name: typeof METADATA_FOLDER | typeof CHUNKS_FOLDER,
): Promise<string | undefined> {
  const role = name === METADATA_FOLDER ? 'metadata' : 'storage';
  for (const path of [join(folder, name), join(folder, ASIDE, role, name), join(folder, role, name)])
    if (await isThere(join(path, 'CURRENT'))) return path;
  return undefined;
}

/** The databases say already whose they are. */
export async function moveToRoles(
  folder: string,
  plan: GrowPlan,
  onStep: (step: string) => void = () => {},
): Promise<void> {
  const aside = join(folder, ASIDE);
  const { metadata, storage, gateway, keys } = roleFolders(folder);
  // One that has its place has all that is in it.
  if (!(await isThere(join(metadata, NODE_FILE)))) {
    await makeRole(aside, { role: 'metadata', nodeId: plan.voter.nodeId, plan });
    await gather(folder, [METADATA_FOLDER], { to: join(aside, 'metadata'), onStep });
  }
  if (!(await isThere(storage))) {
    await makeRole(aside, { role: 'storage', nodeId: plan.disk.nodeId, plan });
    await gather(folder, [CHUNKS_FOLDER], { to: join(aside, 'storage'), onStep });
  }
  if (!(await isThere(gateway))) await gather(folder, TLS_FILES, { to: join(aside, 'gateway'), onStep });
  if (!(await isThere(keys)))
    await gather(folder, [CREDENTIALS_FILE, MASTER_KEYS_FILE], { to: join(aside, 'keys'), onStep });
  for (const name of ['metadata', 'storage', 'gateway', 'keys']) {
    await move(aside, { name, to: folder });
    onStep(`${name} in its place`);
  }
  await rm(aside, { recursive: true, force: true });
  await rm(join(folder, ADDRESS_FILE), { force: true });
  await syncFolder(folder);
}

async function gather(
  folder: string,
  names: readonly string[],
  { to, onStep }: { to: string; onStep(step: string): void },
): Promise<void> {
  await makeFolder(to, 0o700);
  await syncFolder(dirname(to));
  for (const name of names) {
    await move(folder, { name, to });
    onStep(`${name} moved`);
  }
}

async function makeRole(
  aside: string,
  { role, nodeId, plan }: { role: 'metadata' | 'storage'; nodeId: string; plan: GrowPlan },
): Promise<void> {
  const folder = join(aside, role);
  await makeFolder(folder, 0o700);
  await writeNodeFile(folder, { nodeId, role, cluster: plan.identity });
  await writeFormatFile(folder, plan.identity.shardCount);
}

/** Durable when it resolves; nothing where there is nothing to move. */
async function move(from: string, { name, to }: { name: string; to: string }): Promise<void> {
  if (!(await isThere(join(from, name)))) return;
  await rename(join(from, name), join(to, name));
  await syncFolder(to);
  await syncFolder(from);
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
