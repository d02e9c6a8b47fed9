// What must become of versions that are protected, in few words: a list of versions for each key, and the rules by which one
// of them may go, after AWS and the service's own compliance. It knows nothing of the code that it is compared with.

const DAY = 24 * 3600_000;

/** Of one version, or one delete marker. */
export interface ModelVersion {
  id: string;
  etag: string;
  isMarker: boolean;
  madeMs: number;
  mode?: 'GOVERNANCE' | 'COMPLIANCE' | undefined;
  untilMs?: number | undefined;
  legalHold?: boolean | undefined;
  /** Its own settings under the bucket's compliance. */
  timeMs?: number | undefined;
  isHeld?: boolean | undefined;
  releasedMs?: number | undefined;
  complianceHold?: boolean | undefined;
}

export interface ModelCompliance {
  isOn: boolean;
  days: number;
  hold: boolean;
  lockAtMs?: number | undefined;
}

export interface ModelLock {
  mode?: 'GOVERNANCE' | 'COMPLIANCE';
  days?: number;
}

export class ModelBucket {
  versioning: 'unversioned' | 'enabled' | 'suspended' = 'unversioned';
  lock: ModelLock | undefined;
  compliance: ModelCompliance | undefined;
  /** Object lock or compliance has been on at some time. */
  hasRules = false;
  /** Lifecycle: days of current versions, days of versions since another one has taken their place. */
  expireDays: number | undefined;
  noncurrentDays: number | undefined;
  /** Versions go once compliance lets them. */
  deletesAfter = false;
  /** Newest first. */
  keys = new Map<string, ModelVersion[]>();

  of(key: string): ModelVersion[] {
    return this.keys.get(key) ?? [];
  }

  /** Of what a GET without a version id gives. */
  current(key: string): ModelVersion | undefined {
    const [latest] = this.of(key);
    return latest?.isMarker ? undefined : latest;
  }

  all(): { key: string; version: ModelVersion }[] {
    return [...this.keys].flatMap(([key, versions]) => versions.map((version) => ({ key, version })));
  }

  isKept(version: ModelVersion, atMs: number, bypasses = false): boolean {
    if (version.isMarker) return false;
    if (version.legalHold) return true;
    if (this.compliance?.isOn) {
      if (version.complianceHold) return true;
      if (version.isHeld && version.releasedMs === undefined) return true;
      if (atMs < this.ruleEndMs(version)) return true;
    }
    if (version.mode === 'GOVERNANCE' && bypasses) return false;
    return version.untilMs !== undefined && atMs < version.untilMs;
  }

  /** When RetentionDays and the version's own RetentionTime are over. */
  ruleEndMs(version: ModelVersion): number {
    const daysMs = (this.compliance?.days ?? 0) * DAY;
    return Math.max((version.releasedMs ?? version.madeMs) + daysMs, version.timeMs ?? 0);
  }

  isLocked(atMs: number): boolean {
    const { isOn, lockAtMs } = this.compliance ?? {};
    return isOn === true && lockAtMs !== undefined && lockAtMs <= atMs;
  }

  /** False: the version that it would replace is kept. `id`: the one that it gets where ids are not null. */
  mayWrite(key: string, atMs: number): boolean {
    const replaced = this.#null(key);
    return this.versioning === 'enabled' || replaced === undefined || !this.isKept(replaced, atMs);
  }

  write(key: string, version: ModelVersion): void {
    const others = this.of(key).filter(({ id }) => version.id !== 'null' || id !== 'null');
    this.keys.set(key, [version, ...others]);
  }

  /** What a new version gets by the bucket's rules. */
  newVersion(
    made: Pick<ModelVersion, 'id' | 'etag' | 'madeMs'>,
    given: Partial<ModelVersion> = {},
  ): ModelVersion {
    const { mode, days } = this.lock ?? {};
    const byDefault = mode && days !== undefined && { mode, untilMs: made.madeMs + days * DAY };
    return {
      ...made,
      isMarker: false,
      ...byDefault,
      ...given,
      ...(this.compliance?.isOn && this.compliance.hold && { isHeld: true }),
    };
  }

  remove(key: string, gone: ModelVersion): void {
    this.#set(
      key,
      this.of(key).filter((version) => version !== gone),
    );
  }

  /** The ids that move, or why none does. */
  mayMove(from: string, to: string, overwrites: boolean, atMs: number): string[] | string {
    const source = this.of(from);
    if (source.length === 0) return 'no-such-key';
    const replaced = source.some(({ id }) => id === 'null') ? this.#null(to) : undefined;
    const isLost = replaced?.isMarker === false && !(overwrites && this.versioning !== 'enabled');
    if ((!overwrites && this.current(to) !== undefined) || isLost) return 'exists';
    const asked = replaced === undefined ? source : [...source, replaced];
    if (asked.some((version) => this.isKept(version, atMs))) return 'blocked';
    return source.map(({ id }) => id);
  }

  move(from: string, to: string): void {
    const source = this.of(from);
    const hasNull = source.some(({ id }) => id === 'null');
    const target = this.of(to).filter(({ id }) => !hasNull || id !== 'null');
    this.#set(from, []);
    this.#set(to, [...source, ...target]);
  }

  #null(key: string): ModelVersion | undefined {
    return this.of(key).find(({ id }) => id === 'null');
  }

  #set(key: string, versions: ModelVersion[]): void {
    if (versions.length === 0) this.keys.delete(key);
    else this.keys.set(key, versions);
  }
}

/** Why settings of a bucket may not become these; undefined: they may. `isMoving`: a key is renamed in several entries. */
export function refusedSetting(
  bucket: ModelBucket,
  setting:
    | { kind: 'versioning'; status: 'enabled' | 'suspended' }
    | { kind: 'objectLock' }
    | { kind: 'compliance'; after: ModelCompliance },
  { atMs, isMoving }: { atMs: number; isMoving: boolean },
): string | undefined {
  const { lock, compliance, versioning } = bucket;
  if (setting.kind === 'versioning')
    return lock !== undefined && setting.status === 'suspended' ? 'has-object-lock' : undefined;
  if (setting.kind === 'objectLock') {
    if (versioning !== 'enabled') return 'needs-versioning';
    if (compliance?.isOn) return 'has-compliance';
  } else {
    const { after } = setting;
    if (lock !== undefined && after.isOn) return 'has-object-lock';
    if (compliance !== undefined && bucket.isLocked(atMs)) {
      if (!after.isOn) return 'locked-status';
      if (after.days < compliance.days) return 'locked-retention-days';
      if (after.lockAtMs !== compliance.lockAtMs) return 'locked-lock-time';
    }
    return after.isOn && isMoving ? 'keys-are-moving' : undefined;
  }
  return isMoving && !bucket.hasRules ? 'keys-are-moving' : undefined;
}

/** Whether the retention of a version may become this one (undefined: none). */
export function mayRetain(
  { mode, untilMs = 0 }: ModelVersion,
  after: { mode: string; untilMs: number } | undefined,
  { atMs, bypasses }: { atMs: number; bypasses: boolean },
): boolean {
  if (mode === undefined || untilMs <= atMs) return true;
  if (mode === 'GOVERNANCE' && bypasses) return true;
  return after !== undefined && after.mode === mode && after.untilMs >= untilMs;
}
