// Turns the data folder of a single node into the folders of a metadata node, of a storage node and of a gateway's keys: by
// renames, so that nothing is copied. Every step is durable before the next, and is skipped if it was done before.
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

/** The folder in which the new folders are built: one of them has the name of a database that still exists. */
const BUILDING = 'growing';
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

/** The present place of a database of the single node: the original one, or where the steps have moved it. */
export async function findDatabase(
  folder: string,
  name: typeof METADATA_FOLDER | typeof CHUNKS_FOLDER,
): Promise<string | undefined> {
  const role = name === METADATA_FOLDER ? 'metadata' : 'storage';
  for (const path of [join(folder, name), join(folder, BUILDING, role, name), join(folder, role, name)])
    if (await isThere(join(path, 'CURRENT'))) return path;
  return undefined;
}

/** The databases have their new identity already. */
export async function moveToRoles(
  folder: string,
  plan: GrowPlan,
  onStep: (step: string) => void = () => {},
): Promise<void> {
  const building = join(folder, BUILDING);
  const { metadata, storage, gateway, keys } = roleFolders(folder);
  // A folder in its place is complete.
  if (!(await isThere(join(metadata, NODE_FILE)))) {
    await makeRole(building, { role: 'metadata', nodeId: plan.voter.nodeId, plan });
    await gather(folder, [METADATA_FOLDER], { to: join(building, 'metadata'), onStep });
  }
  if (!(await isThere(storage))) {
    await makeRole(building, { role: 'storage', nodeId: plan.disk.nodeId, plan });
    await gather(folder, [CHUNKS_FOLDER], { to: join(building, 'storage'), onStep });
  }
  if (!(await isThere(gateway))) await gather(folder, TLS_FILES, { to: join(building, 'gateway'), onStep });
  if (!(await isThere(keys)))
    await gather(folder, [CREDENTIALS_FILE, MASTER_KEYS_FILE], { to: join(building, 'keys'), onStep });
  for (const name of ['metadata', 'storage', 'gateway', 'keys']) {
    await move(building, { name, to: folder });
    onStep(`${name} in its place`);
  }
  await rm(building, { recursive: true, force: true });
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
  building: string,
  { role, nodeId, plan }: { role: 'metadata' | 'storage'; nodeId: string; plan: GrowPlan },
): Promise<void> {
  const folder = join(building, role);
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
