// What a setting is made of. The settings themselves are in schema.ts.

export type SettingKind =
  | 'text'
  | 'path'
  | 'bytes'
  | 'duration'
  | 'integer'
  | 'boolean'
  | 'choice'
  | 'list'
  | 'hostPort'
  | 'secret';

/** What the items of a list must look like (values.ts). */
export type ItemKind = 'domainName' | 'hostName' | 'publicName' | 'networkRange' | 'path';

export interface SettingRow {
  /** Dotted camelCase, at most one dot: `storage.readingGrace` is --storage-reading-grace. */
  readonly key: string;
  readonly kind: SettingKind;
  /** As a user would write it: `64KiB`, `10min`, `a,b`. Absent: the value may be undefined. */
  readonly default?: string;
  /** Bounds of bytes (bytes), duration (ms) and integer, both inclusive. */
  readonly min?: number;
  readonly max?: number;
  readonly choices?: readonly string[];
  readonly items?: ItemKind;
  /** The integer may also be `auto`: the program decides. */
  readonly auto?: true;
  /** The bytes may also be `never`, which is 0. */
  readonly never?: true;
  readonly help: string;
  /** Left out of the help: for tests and for choices that most never make. */
  readonly hidden?: true;
}
