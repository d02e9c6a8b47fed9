// Key rotation of a cluster. The operator adds a key to the file of one gateway and copies the file to all. Once every gateway
// has it, the record of the system shard makes it the active one; then one gateway at a time passes over all wrapped keys. When
// none is left under the older keys, the operator removes them (docs/security.md, "Master keys of a cluster").

import { type Moment, momentNow, passedMs } from '../../base/moment.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { ClusterKeyring } from '../../ports/keyring.ts';
import { type MetadataPort, type ResultOf, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type MasterKeysRecord, REMOVED_KEYS_MAX } from '../../types/records/master-keys-record.ts';
import { doneValue } from '../workers/shard-worker.ts';
import { createRewrapPasses } from './rewrap-passes.ts';
import { type KeyRotation, noOlderKey, type RotationProgress } from './rotate-keys.ts';

/** Until the next look for a rotation that has begun. */
const IDLE_MS = 2000;
const BUSY_MS = 1;
const WAIT_FOR_REQUESTS_MS = 1000;
/** How often the record says how far a pass has come. */
const NOTE_EVERY_MS = 1000;

/** After a rotation has begun: by then every gateway that serves clients has heard of it. */
const HEARD_MS = LIMITS.gatewayTrackedMs;

type Holders = NonNullable<ResultOf<'get-master-keys'>['holders']>;

/** What the system shard knows. */
interface Known {
  record: MasterKeysRecord;
  holders: Holders;
  mark: string;
}

export interface ClusterKeyRotation extends KeyRotation {
  /** Begins to drive rotations, in this process; the look does a little, and resolves with the ms until the next one. */
  drive(): () => Promise<number>;
}

export interface ClusterKeyRotationDeps {
  metadata: MetadataPort;
  keyring: ClusterKeyring;
  clock: ClockPort;
  log: Logger;
  /** How operators know a gateway, by the name with which it asks for changes. */
  nameOf(gateway: string): string;
}

export function createClusterKeyRotation(deps: ClusterKeyRotationDeps): ClusterKeyRotation {
  const { keyring, log, metadata } = deps;
  const shared = createSharedRecord(deps);

  return {
    async begin() {
      const { record, holders } = await shared.readAll();
      if (record.olderKeyIds.length > 0) throw notEnded(record);
      const keyId = newKeysOf(keyring, { record, holders }).at(-1);
      if (keyId === undefined) throw noNewKey();
      const lacking = lackingOf(deps, holders, [keyId]);
      if (lacking.length > 0) throw notEverywhere(keyId, lacking);
      const olderKeyIds = [record.activeKeyId];
      const changes = { activeKeyId: keyId, olderKeyIds, shardsDone: 0, rewrappedCount: 0 };
      if (!(await shared.set(record, changes))) throw changedMeanwhile();
      log.info({ keyId }, 'master-key-added');
    },
    async remove(keyId) {
      const { record, holders, mark } = await shared.readAll();
      const { unused } = record;
      if (!record.olderKeyIds.includes(keyId)) throw noOlderKey(keyId);
      if (unused?.mark !== mark || !areSettled(holders, record)) throw stillNeeded(keyId);
      const olderKeyIds = record.olderKeyIds.filter((other) => other !== keyId);
      const removedKeyIds = [...record.removedKeyIds, keyId].slice(-REMOVED_KEYS_MAX);
      if (!(await shared.set(record, { olderKeyIds, removedKeyIds, unused }))) throw changedMeanwhile();
      log.info({ keyId, rewrappedCount: record.rewrappedCount }, 'master-key-removed');
    },
    async progress() {
      const { record, holders, mark } = await shared.readNow();
      const { activeKeyId, olderKeyIds, shardsDone, rewrappedCount, unused } = record;
      const newKeyIds = newKeysOf(keyring, { record, holders });
      const isRotating = olderKeyIds.length > 0;
      return {
        activeKeyId,
        olderKeyIds,
        shardsDone: isRotating ? shardsDone : 0,
        shardCount: metadata.shardCount,
        rewrappedCount: isRotating ? rewrappedCount : 0,
        isWaitingForRequests: isRotating && !areSettled(holders, record),
        isUnused: isRotating && unused?.mark === mark,
        newKeyIds,
        lacking: lackingOf(deps, holders, [...olderKeyIds, activeKeyId, ...newKeyIds]),
      };
    },
    drive: () => createDriver(deps, shared),
  };
}

/** The record in the system shard, and what its primary knows of the gateways. */
function createSharedRecord({ metadata, keyring, clock }: ClusterKeyRotationDeps) {
  async function ask(): Promise<Known & { knownInMs: number }> {
    const asked = await metadata.query({ shard: SYSTEM_SHARD }, 'get-master-keys', {});
    const { masterKeys, holders = [], mark = '', knownInMs = 0 } = doneValue(asked);
    return { record: masterKeys ?? firstRecord(keyring), holders, mark, knownInMs };
  }

  return {
    readNow: (): Promise<Known> => ask(),
    /** Waits until all gateways are known, which takes some seconds after a change of the primary. */
    async readAll(): Promise<Known> {
      for (;;) {
        const { knownInMs, ...known } = await ask();
        if (knownInMs === 0) return known;
        await clock.sleep(knownInMs);
      }
    },
    /** False: another one has changed it meanwhile. */
    async set(before: MasterKeysRecord, changes: Partial<MasterKeysRecord>): Promise<boolean> {
      const { revision: ifRevision, unused: _, ...rest } = before;
      const command = { ifRevision, masterKeys: { ...rest, ...changes } };
      const outcome = doneValue(await metadata.execute({ shard: SYSTEM_SHARD }, 'set-master-keys', command));
      if (outcome.kind === 'conflict') return false;
      const { masterKeys } = outcome;
      // The answer may come after that to a later question.
      if (masterKeys.revision > (keyring.record()?.revision ?? 0)) keyring.learn(masterKeys);
      return true;
    },
  };
}

/** One gateway at a time drives; where two do, both do the same. */
function createDriver(
  { metadata, keyring, clock }: ClusterKeyRotationDeps,
  shared: ReturnType<typeof createSharedRecord>,
): () => Promise<number> {
  const signal = new AbortController().signal;
  let activeKeyId = '';
  let activeSince = momentNow(clock);
  let countedBefore = 0;
  let noted: Moment | undefined;
  const passes = createRewrapPasses({
    metadata,
    keyring,
    async settledMark() {
      const { record, holders, mark } = await shared.readAll();
      const haveHeard = passedMs(activeSince, momentNow(clock)) >= HEARD_MS;
      return haveHeard && areSettled(holders, record) ? mark : undefined;
    },
  });

  function follow(record: MasterKeysRecord): void {
    if (record.activeKeyId === activeKeyId) return;
    activeKeyId = record.activeKeyId;
    activeSince = momentNow(clock);
    countedBefore = passes.rewrappedCount - record.rewrappedCount;
    passes.forget();
  }

  return async () => {
    if ((keyring.record() ?? firstRecord(keyring)).olderKeyIds.length === 0) return IDLE_MS;
    const { record, mark } = await shared.readAll();
    follow(record);
    if (record.olderKeyIds.length === 0 || record.unused?.mark === mark) return IDLE_MS;
    const state = await passes.work(signal);
    const now = momentNow(clock);
    const isDue = noted === undefined || passedMs(noted, now) >= NOTE_EVERY_MS;
    if (state === 'clean' || isDue) {
      noted = now;
      const unused = { sinceMs: clock.wallMs(), mark: passes.mark ?? '' };
      const { shardsDone } = passes;
      const rewrappedCount = passes.rewrappedCount - countedBefore;
      const isNews = shardsDone !== record.shardsDone || rewrappedCount !== record.rewrappedCount;
      const changes = { shardsDone, rewrappedCount, ...(state === 'clean' && { unused }) };
      // Where another one has changed it, the next look sees what it is now.
      if (state === 'clean' || isNews || record.revision === 0) await shared.set(record, changes);
    }
    return state === 'held-up' ? WAIT_FOR_REQUESTS_MS : BUSY_MS;
  };
}

function lackingOf(
  { nameOf }: Pick<ClusterKeyRotationDeps, 'nameOf'>,
  holders: Holders,
  wanted: readonly string[],
): NonNullable<RotationProgress['lacking']> {
  // Threads of one process have one name.
  const lacking = new Map<string, Set<string>>();
  for (const { gateway, keyIds: has } of holders) {
    const name = nameOf(gateway);
    for (const keyId of wanted.filter((wantedId) => !has.includes(wantedId)))
      lacking.set(name, (lacking.get(name) ?? new Set()).add(keyId));
  }
  return [...lacking].map(([gateway, keyIds]) => ({ gateway, keyIds: [...keyIds] }));
}

/** In the files of gateways, and not used yet: those of this one last, in the order of their making. */
function newKeysOf(
  keyring: ClusterKeyring,
  { record, holders }: Pick<Known, 'record' | 'holders'>,
): readonly string[] {
  const { activeKeyId, olderKeyIds, removedKeyIds } = record;
  const known = new Set([activeKeyId, ...olderKeyIds, ...removedKeyIds]);
  const own = keyring.newKeyIds().filter((keyId) => !known.has(keyId));
  const others = holders.flatMap(({ keyIds }) => keyIds).filter((keyId) => !known.has(keyId));
  return [...new Set(others.filter((keyId) => !own.includes(keyId))), ...own];
}

/** Whether all gateways wrap by the active key, and have no request under way from before. */
function areSettled(holders: Holders, { activeKeyId }: MasterKeysRecord): boolean {
  return holders.every(({ settledKeyId }) => settledKeyId === activeKeyId);
}

/** Where there is none yet, what the file says. */
function firstRecord(keyring: ClusterKeyring): MasterKeysRecord {
  const { activeKeyId } = keyring;
  const known = keyring.keyIds().filter((keyId) => !keyring.newKeyIds().includes(keyId));
  const olderKeyIds = known.filter((keyId) => keyId !== activeKeyId);
  return { revision: 0, activeKeyId, olderKeyIds, removedKeyIds: [], shardsDone: 0, rewrappedCount: 0 };
}

function notEnded({ olderKeyIds }: MasterKeysRecord): AppError {
  const message = `The rotation of before has not ended: it does with \`holdfast keys remove ${olderKeyIds.join(', ')}\`.`;
  return new AppError('OperationAborted', { message });
}

function noNewKey(): AppError {
  const message =
    'There is no new master key. Make one with `holdfast cluster add-key FOLDER`, and copy master-keys.json to the folders of all gateways.';
  return new AppError('OperationAborted', { message });
}

function notEverywhere(keyId: string, lacking: readonly { gateway: string }[]): AppError {
  const names = lacking.map(({ gateway }) => gateway).join(', ');
  const message = `These gateways lack the new master key ${keyId}: ${names}. Copy master-keys.json to their folders; they read it within seconds.`;
  return new AppError('OperationAborted', { message });
}

function changedMeanwhile(): AppError {
  const message = 'The master keys have changed meanwhile: see `holdfast keys status`.';
  return new AppError('OperationAborted', { message });
}

function stillNeeded(keyId: string): AppError {
  const message = `Stored keys or requests may need the master key ${keyId} yet: see \`holdfast keys status\`.`;
  return new AppError('OperationAborted', { message });
}
