// The form in which commands are written here: one function that looks at everything a command needs to see, and one
// that decides. The engine's `reads` and `more` follow from the first, so a command cannot forget to name a row in one
// of them, and each round of reads asks for all that can be known by then.

import { finishAtOnce, type Steps } from '../../base/async/steps.ts';
import type {
  CommandSpec,
  DecideContext,
  Decision,
  LockRequest,
  PrepareContext,
  RangeAddress,
  Reads,
  RowAddress,
  View,
} from '../../ports/state-machine.ts';
import type { DeleteRules } from '../../types/delete-blocker.ts';
import type { EventConsumer } from '../../types/events.ts';
import type { Metering } from '../../types/metered.ts';

/** What a command decides by: the context from the engine, and the rules by which versions may go. */
export interface CommandContext extends DecideContext, Metering {
  rules: DeleteRules;
}

/** What `look` gives that has not come to its end: others have their turn before it is called again. */
export const LOOK_AGAIN = 'look-again';

interface CommandForm<Command, Outcome, Prepared> {
  locks(command: Command): LockRequest[];
  /** As CommandSpec has them. */
  leavesBusy?(command: Command): boolean;
  ownerOf?(command: Command): string;
  isLong?(command: Command): boolean;
  mayReadMuch?(command: Command): boolean;
  readsFew?(command: Command): boolean;
  /**
   * Looks at the rows that `decide` will look at, and writes nothing. Rows and ranges that have not been read yet
   * appear as absent; it is called again until none is left, and wherever it gives LOOK_AGAIN, because more would take long. Leave
   * out where the command looks at nothing.
   */
  look?(command: Command, view: View, rules: DeleteRules): unknown;
  /** Counters that `decide` will ask for, by what was looked at. Leave out where they are few: then it decides once more. */
  counters?(command: Command, view: View): readonly string[];
  /** What `decide` is given as its last argument: of a command that looks at thousands of rows (CommandSpec). */
  prepare?(command: Command, view: View, context: PrepareContext & { rules: DeleteRules }): Steps<Prepared>;
  decide(command: Command, view: View, context: CommandContext, prepared: Prepared): Decision<Outcome>;
}

/** A command as the engine runs it, once it is known by which rules versions may go (state-machine.ts). */
export type DefinedCommand<Command, Outcome> = (
  rules: DeleteRules,
  metering: Metering,
) => CommandSpec<Command, Outcome>;

export function defineCommand<Command, Outcome, Prepared = undefined>(
  form: CommandForm<Command, Outcome, Prepared>,
): DefinedCommand<Command, Outcome> {
  const { look, locks, leavesBusy, ownerOf, isLong, mayReadMuch, readsFew, counters } = form;
  return (rules, metering) => {
    const prepare =
      form.prepare &&
      ((command: Command, view: View, context: PrepareContext) =>
        (form.prepare as NonNullable<typeof form.prepare>)(command, view, { ...context, rules }));
    const decide = (
      command: Command,
      view: View,
      context: DecideContext,
      prepared: unknown = prepare && finishAtOnce(prepare(command, view, context)),
    ) => form.decide(command, view, { ...context, ...metering, rules }, prepared as Prepared);
    const fixed = {
      locks,
      decide,
      ...(leavesBusy && { leavesBusy }),
      ...(ownerOf && { ownerOf }),
      ...(isLong && { isLong }),
      ...(mayReadMuch && { mayReadMuch }),
      ...(readsFew && { readsFew }),
      ...(counters && { counters }),
      ...(prepare && { prepare }),
    };
    if (look === undefined) return { ...fixed, reads: () => ({}) };
    return {
      ...fixed,
      reads: (command) => unseen(NOTHING_SEEN, (view) => look(command, view, rules)) ?? {},
      more: (command, view) => unseen(view, (looking) => look(command, looking, rules)),
    };
  };
}

const NOTHING_SEEN: View = { has: () => false, row: () => undefined, range: () => [] };

/** What `look` is given for what one command has read so far: the same each time, so that it may keep by it what it has judged. */
const lookers = new WeakMap<View, Looker>();

/** What `look` asks for and `seen` does not have yet; undefined when that is nothing. */
function unseen(seen: View, look: (view: View) => unknown): Reads | undefined {
  const looker = (seen !== NOTHING_SEEN && lookers.get(seen)) || createLooker(seen);
  if (seen !== NOTHING_SEEN) lookers.set(seen, looker);
  looker.rows = [];
  looker.ranges = [];
  const isAgain = look(looker.view) === LOOK_AGAIN;
  const { rows, ranges } = looker;
  return rows.length === 0 && ranges.length === 0 && !isAgain ? undefined : { rows, ranges };
}

interface Looker {
  readonly view: View;
  /** What has been asked for and was not there. */
  rows: RowAddress[];
  ranges: RangeAddress[];
}

function createLooker(seen: View): Looker {
  const looker: Looker = {
    rows: [],
    ranges: [],
    view: {
      has: (address) => seen.has(address),
      row(address) {
        if (seen.has(address)) return seen.row(address);
        looker.rows.push(address);
        return undefined;
      },
      range(address) {
        if (seen.has(address)) return seen.range(address);
        looker.ranges.push(address);
        return [];
      },
    },
  };
  return looker;
}

// ---- lock names ----

export function shared(name: string): LockRequest {
  return { name, mode: 'shared' };
}

export function exclusive(name: string): LockRequest {
  return { name, mode: 'exclusive' };
}

/** What commands lock. Taken in the order of names, whatever the order here. */
export const LOCK = {
  /** Shared by all that writes into the bucket; exclusive for what decides on all of it or changes its settings. */
  bucket: (bucketId: string) => `bucket/${bucketId}`,
  key: (bucketId: string, key: string) => `key/${bucketId}/${key}`,
  /** Shared by its parts; exclusive for its end. */
  upload: (uploadId: string) => `upload/${uploadId}`,
  part: (uploadId: string, partNumber: number) => `part/${uploadId}/${partNumber}`,
  /**
   * Shared by what adds a link to a blob that must be live; exclusive where it is created, marked for deletion or erased,
   * or where one link row or the foreign row is looked at and then changed. Ending a link of one's own needs none.
   */
  blob: (blobId: string) => `blob/${blobId}`,
  name: (name: string) => `name/${name}`,
  /** What changes a name that its bucket has besides another one, or may have: the other's is known only then. */
  namesOf: (bucketId: string) => `names-of/${bucketId}`,
  /** Shared by new blobs that go by the map of the last audit; exclusive where another audit begins. */
  audit: 'audit',
  /** How far the lifecycle of a bucket has come. What changes the bucket's settings holds `bucket` instead. */
  lifecycle: (bucketId: string) => `lifecycle/${bucketId}`,
  /** How far a scan has come. */
  scan: (name: string) => `scan/${name}`,
  /** What is known of this shard's own history (R23). */
  history: 'history',
  /** Shared by what rests on claims at that home; exclusive where another history of it becomes known (R23). */
  home: (homeShard: number) => `home/${homeShard}`,
  /** An idempotency token: requests that bear the same one come one after the other. */
  token: (bucketId: string, token: string) => `token/${bucketId}/${token}`,
  /** A job that the shard keeps: its steps come one after the other. */
  job: (jobId: string) => `job/${jobId}`,
  /** Jobs begin one after the other: how many are under way is known only then. */
  jobs: 'jobs',
  /** How far a consumer has taken its events. */
  events: (consumer: EventConsumer) => `events/${consumer}`,
  account: (accountId: string) => `account/${accountId}`,
  /** The quota of an account in the system shard, and its lease in each. */
  quota: (accountId: string) => `quota/${accountId}`,
  /** How far the days of a bucket are closed. */
  usage: (bucketId: string) => `usage/${bucketId}`,
  /** Creation and deletion of accounts, which look at several indices. */
  accounts: 'accounts',
  /** Numbers the records of the tree of accounts, and their changes. */
  tenancy: 'tenancy',
  /** Numbers the changes of identities, one after another. */
  identities: 'identities',
  /** Which master keys a cluster uses. */
  masterKeys: 'master-keys',
  /** Price lists, and invoices, whose numbers have no gaps. */
  billing: 'billing',
} as const;
