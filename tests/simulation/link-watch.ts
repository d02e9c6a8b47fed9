// Metadata calls of one request of the links part: what each commit is about to do to which value, what became of it, and
// what happens behind each step.
import type { MetadataCalls } from '../../src/objects/object-store.ts';
import type { CommandOf } from '../../src/ports/metadata.ts';
import type { BucketOperation, BucketOutcome } from './bucket-operations.ts';
import type { LinkBodies } from './link-bodies.ts';

export type CommandName = Parameters<MetadataCalls['execute']>[1];

/** What is done with the steps of one request: each after its answer, before the next one. */
export interface StepWatch {
  /** Something is sent that changes a key. What is returned is called when its answer says what became of it: null: nothing. */
  onChange(operation: BucketOperation): (outcome: BucketOutcome | null) => void;
  after(name: CommandName, command: object, shard: number): Promise<void>;
}

export interface Watching {
  bodies: LinkBodies;
  watch: StepWatch;
  /** Of the body that is sent. */
  value: string | undefined;
  onFolded(): void;
}

export function watchCalls(
  calls: MetadataCalls,
  { bodies, watch, value, onFolded }: Watching,
): MetadataCalls {
  let partValue: string | undefined;
  /** The change that a command is. */
  const changeOf = (name: CommandName, command: object): BucketOperation | undefined => {
    switch (name) {
      case 'commit-version': {
        const { key, version, data } = command as CommandOf<'commit-version'>;
        if (value !== undefined) bodies.born(data.births, value);
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
        bodies.born(piece.births, value);
        return { kind: 'append', key, piece: value };
      }
      case 'move-key': {
        const { move, overwrites } = command as CommandOf<'move-key'>;
        return { kind: 'move', key: move.from, to: move.to, overwrites };
      }
      case 'fold-version':
        bodies.folded(command as CommandOf<'fold-version'>);
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
      if (name === 'fold-version' && (reply.value as Replied).kind === 'folded') onFolded();
      const outcome = became && outcomeOf(reply.value as Replied);
      if (outcome !== undefined) became?.(outcome);
      await watch.after(name, command, target.shard);
      return reply;
    },
  };
}

type Replied =
  | { kind: 'committed'; sizeBytes?: number; mayFold?: boolean }
  | { kind: 'moved-key'; result: unknown }
  | { kind: 'folded' }
  | { kind: string };

/** null: nothing has changed. undefined: nobody knows. */
function outcomeOf(reply: Replied): BucketOutcome | null | undefined {
  if ('result' in reply) {
    if (Array.isArray(reply.result)) return { kind: 'moved' };
    const { kind } = reply.result as { kind: string };
    return kind === 'exists' ? { kind } : kind === 'no-such-key' ? { kind: 'absent' } : null;
  }
  switch (reply.kind) {
    case 'committed':
      return 'mayFold' in reply
        ? { kind: 'appended', sizeBytes: reply.sizeBytes ?? -1 }
        : { kind: 'written' };
    case 'no-such-key':
      return { kind: 'absent' };
    case 'gone':
    case 'late':
    case 'other-key':
      return null;
    default:
      return undefined;
  }
}
