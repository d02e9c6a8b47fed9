// The findings of `holdfast fsck`: every kind of damage by name, and every kind of pending work, which is no damage. The
// comparisons are in src/fsck and src/metadata/checks.

/** Kind of a finding → what it means, as a person reads it. */
export const FINDINGS = {
  'unreadable-rows': 'rows of a table that cannot be read: what depends on them was not compared',
  'broken-row': 'a row that is not of its format, or not under its own key',
  'two-latest': 'a key with two latest versions',
  'no-latest': 'a key with older versions and no latest one',
  'order-wrong': 'an older version that is not older than the latest one',
  'version-misplaced': 'a version among those of another kind',
  'index-missing': 'a row without the index row that leads to it',
  'index-orphaned': 'an index row that leads to nothing',
  'queue-missing': 'a row that waits for work and stands in no queue',
  'queue-orphaned': 'a queue row without anything to do',
  'bucket-missing': 'rows of a bucket that is not there',
  'config-missing': 'a rule in the row of a bucket without the document that it repeats',
  'lock-misplaced': 'object lock in a bucket that does not keep its versions, or that has compliance besides',
  'retention-unasked':
    'something protects versions in a bucket that is not marked for it, so nothing asks for it',
  'retention-far': 'retention that ends later than any request can ask for',
  'upload-missing': 'a part of an upload that is not there',
  'manifest-wrong': 'a manifest whose pieces do not add up',
  'link-missing': 'a use of data without its link',
  'link-orphaned': 'a link that nothing uses: its data is kept for ever',
  'blob-missing': 'a link or use without the row of its data',
  'blob-condemned': 'data in use that is on its way out',
  'blob-unlinked': 'data that nothing links and nothing releases',
  'layout-differs': 'a use that sees its data otherwise than it is',
  'claim-missing': 'data of another shard without the claim that keeps it there',
  'claim-orphaned': 'a claim of another shard that does not know it',
  'body-missing': 'a small body that is not there',
  'body-orphaned': 'a small body that nothing leads to',
  'body-size': 'a small body of another size than its data',
  'chunk-missing': 'a chunk that is not there',
  'chunk-orphaned': 'a chunk that nothing leads to, older than any commit may claim',
  'chunk-size': 'a chunk of another size than its data',
  'chunk-damaged': 'a chunk whose bytes are not those that were stored',
  'object-damaged':
    'a version, or a part of an upload, whose data is damaged or missing: it has to be uploaded again',
  'counter-wrong': 'a count that differs from what is there',
  'key-unknown': 'something under a master key that is not there: it cannot be opened',
  'name-missing': 'a bucket without its name',
  'name-orphaned': 'a name without its bucket',
  'rename-broken': 'a name of a rename without its other half',
  'account-missing': 'something of an account that is not there',
} as const satisfies Record<string, string>;

export type FindingKind = keyof typeof FINDINGS;

/** Where a finding is, as far as that can be said. Text and numbers only: it travels between processes, and as JSON. */
export interface FindingPlace {
  shard?: number;
  table?: string;
  /** Name, or id where there is no name. */
  bucket?: string;
  key?: string;
  version?: string;
  upload?: string;
  part?: number;
  manifest?: string;
  page?: number;
  blob?: string;
  link?: string;
  chunk?: number;
  account?: string;
  /** What was expected and what is there, or the row's key in hex. */
  note?: string;
}

export interface Finding extends FindingPlace {
  kind: FindingKind;
}

/** Work that waits for its turn → what it is. */
export const PENDING = {
  'ended-link': 'a link has ended, its data is still to be looked at',
  'ended-upload': 'an upload has ended, its parts are still to be released',
  'condemned-blob': 'data without links, kept until no reader can need it',
  'pending-claim': 'a copy across shards that is not confirmed yet',
  outbox: 'work that one shard owes another',
  debt: 'data that does not lie on all of its disks, or may not',
  'unlinked-chunk': 'a chunk that no commit has claimed yet, or that is left of a request that was cut short',
} as const satisfies Record<string, string>;

export type PendingKind = keyof typeof PENDING;

export interface Pending {
  kind: PendingKind;
  count: number;
  /** Time of the oldest, ms since epoch. */
  oldestAtMs: number;
}
