// Metadata calls of one request of the links part: what each commit is about to do to which value, what became of it, and
// what happens behind each step.

import type { MetadataCalls } from '../../src/objects/object-store.ts';
import type { MoveResult } from '../../src/ports/metadata/moves.ts';
import type { CommandOf, OutcomeOf } from '../../src/ports/metadata/port.ts';
import type { VersionId } from '../../src/types/names.ts';
import type { Versioning } from '../../src/types/versioning.ts';
import type { BucketOperation, BucketOutcome } from './bucket-operations.ts';
import type { LinkBodies } from './link-bodies.ts';

export type CommandName = Parameters<MetadataCalls['execute']>[1];

/** What an answer says of a change. null: nothing has changed. */
export interface Became {
  outcome: BucketOutcome;
  /** Of the version that was made, where versions are kept. */
  versionId?: VersionId | undefined;
  /** Of a MOVE of a key (bucket-operations.ts). */
  keepsNull?: boolean;
}

/** What is done with the steps of one request: each after its answer, before the next one. */
export interface StepWatch {
  /** Something is sent that changes a key. What is returned is called when its answer says what became of it. */
  onChange(operation: BucketOperation): (became: Became | null) => void;
  after(name: CommandName, command: object, shard: number): Promise<void>;
}

export interface Watching {
  bodies: LinkBodies;
  watch: StepWatch;
  /** Of the body that is sent. */
  value: string | undefined;
  /** The bucket does. */
  keepsVersions: boolean;
  onCompacted(): void;
}

export function watchCalls(
  calls: MetadataCalls,
  { bodies, watch, value, keepsVersions, onCompacted }: Watching,
): MetadataCalls {
  let partValue: string | undefined;
  /** The change that a command is. */
  const changeOf = (name: CommandName, command: object): BucketOperation | undefined => {
    switch (name) {
      case 'commit-version': {
        const { key, version, data } = command as CommandOf<'commit-version'>;
        if (value !== undefined) bodies.created(data.births, value);
        return { kind: 'put', key, value: bodies.valueOfVersion(version.manifest) };
      }
      case 'commit-part':
        partValue = bodies.valueOf((command as CommandOf<'commit-part'>).part);
        return undefined;
      case 'complete-upload': {
        const { key } = command as CommandOf<'complete-upload'>;
        return partValue === undefined ? undefined : { kind: 'put', key, value: partValue };
      }
      case 'compose-version': {
        const { key, body } = command as CommandOf<'compose-version'>;
        return { kind: 'put', key, value: bodies.valueOf(body) };
      }
      case 'append-version': {
        const { key, piece } = command as CommandOf<'append-version'>;
        if (value === undefined) return undefined;
        bodies.created(piece.births, value);
        return { kind: 'append', key, piece: value };
      }
      case 'recommit-version':
        return { kind: 'renew', key: (command as CommandOf<'recommit-version'>).key };
      case 'delete-versions':
        return deletionOf(command as CommandOf<'delete-versions'>, keepsVersions);
      case 'move-key': {
        const { move, overwrites } = command as CommandOf<'move-key'>;
        return { kind: 'move', key: move.from, to: move.to, overwrites };
      }
      case 'begin-key-move': {
        const { move, overwrites } = command as CommandOf<'begin-key-move'>;
        return { kind: 'begin-rename', key: move.from, to: move.to, overwrites };
      }
      case 'fold-version':
        bodies.compacted(command as CommandOf<'fold-version'>);
        return undefined;
      default:
        return undefined;
    }
  };
  return {
    ...calls,
    execute: async (target, name, command) => {
      const change = changeOf(name, command);
      const became = change && watch.onChange(change);
      const reply = await calls.execute(target, name, command);
      if (name === 'fold-version' && reply.value.kind === 'folded') onCompacted();
      const outcome = became && outcomeOf(reply.value as Replied);
      if (outcome !== undefined) became?.(outcome);
      await watch.after(name, command, target.shard);
      return reply;
    },
  };
}

function deletionOf({ items }: CommandOf<'delete-versions'>, keepsVersions: boolean): BucketOperation {
  const [item] = items;
  if (item === undefined || items.length > 1) throw new Error('these clients delete one at a time');
  const { key, versionId } = item;
  if (versionId !== undefined) return { kind: 'remove-version', key, versionId };
  return { kind: keepsVersions ? 'mark' : 'remove', key };
}

type Replied =
  | { kind: 'committed'; versionId: VersionId; versioning: Versioning; sizeBytes?: number; mayFold?: boolean }
  | OutcomeOf<'delete-versions'>
  | { kind: 'moved-key'; result: MoveResult; versioning: Versioning }
  | Extract<OutcomeOf<'begin-key-move'>, { kind: 'refused' }>
  | { kind: 'begun' | 'too-many-jobs' | 'folded' }
  | { kind: 'no-such-key' | 'gone' | 'late' | 'other-key' | 'changed' };

/** null: nothing has changed. undefined: nobody knows. */
function outcomeOf(reply: Replied): Became | null | undefined {
  switch (reply.kind) {
    case 'moved-key':
    case 'refused':
      return movedOf(reply);
    case 'deleted-versions':
      return deletedOf(reply);
    case 'committed': {
      const versionId = reply.versioning === 'unversioned' ? undefined : reply.versionId;
      // Of an append, whose reply has more than others.
      if (!('mayFold' in reply)) return { outcome: { kind: 'written' }, versionId };
      return { outcome: { kind: 'appended', sizeBytes: reply.sizeBytes ?? -1 }, versionId };
    }
    case 'no-such-key':
      return { outcome: { kind: 'absent' } };
    // The log shows what it does (move-jobs.ts).
    case 'begun':
    case 'too-many-jobs':
    case 'gone':
    case 'late':
    case 'other-key':
    case 'changed':
      return null;
    default:
      return undefined;
  }
}

function movedOf({ result, versioning }: Extract<Replied, { kind: 'moved-key' | 'refused' }>): Became | null {
  const keepsNull = versioning === 'enabled';
  if (Array.isArray(result)) {
    const outcome = { kind: 'moved' as const, ...(versioning !== 'unversioned' && { versionIds: result }) };
    return { outcome, keepsNull };
  }
  if (result.kind === 'exists') return { outcome: { kind: 'exists' }, keepsNull };
  return result.kind === 'no-such-key' ? { outcome: { kind: 'absent' } } : null;
}

function deletedOf({ items }: OutcomeOf<'delete-versions'>): Became | undefined {
  const [item] = items;
  if (item?.kind !== 'deleted') return undefined;
  if (item.madeMarker) return { outcome: { kind: 'written' }, versionId: item.versionId };
  return item.versionId === undefined
    ? { outcome: { kind: 'gone' } }
    : { outcome: { kind: 'removed', isMarker: item.isDeleteMarker } };
}
