// What prevents the deletion of a version: object lock and compliance settings of the version itself (service 2.3, 2.5, 3).
// It is in the head of the stored version, so that removing many versions reads nothing else of them.
import { assert } from '../base/assert.ts';
import { ByteReader, ByteWriter } from '../base/bytes/byte-cursor.ts';

/** Object lock: no removal before `untilMs` (ms since epoch). GOVERNANCE may be bypassed by who has the right to. */
export interface Retention {
  mode: 'GOVERNANCE' | 'COMPLIANCE';
  untilMs: number;
}

/** A field is absent where it does not protect. Times are ms since epoch, shard time. */
export interface VersionProtection {
  retention?: Retention;
  /** Object lock: no removal while it is on. */
  legalHold?: true;
  /** It was put OFF, which protects nothing: reads then say so, and not that there never was one (AWS GetObjectLegalHold). */
  hadLegalHold?: true;
  compliance?: ComplianceProtection;
}

/** What a request may ask for a version that it makes, in a bucket with object lock. */
export type VersionLock = Omit<VersionProtection, 'compliance'>;

/** Settings of the object under its bucket's compliance rule (extensions 2.6). */
export interface ComplianceProtection {
  /** The RetentionTime that was put for this object; the bucket's RetentionDays count besides. */
  retainUntilMs?: number;
  /** It was made under a conditional hold, which `holdReleasedAtMs` has ended. */
  conditionalHold?: true;
  /** RetentionDays count from here. */
  holdReleasedAtMs?: number;
  legalHold?: true;
  /** Hex, of the object's bytes, where it has been proved or computed. It protects nothing, and is read with the others. */
  sha256?: string;
}

/** Flags of the stored form. The first two are the modes of object lock; `complianceHold` is of the compliance rule. */
const HAS = {
  governanceMode: 1,
  complianceMode: 2,
  legalHold: 4,
  retainUntil: 8,
  conditionalHold: 16,
  holdReleased: 32,
  complianceHold: 64,
  sha256: 128,
} as const;
const BOTH_MODES = HAS.governanceMode | HAS.complianceMode;
/** Both modes at once, which no version has, say that a second byte of flags follows, and that the mode is in that one. */
const HAS_MORE = { governanceMode: 1, complianceMode: 2, hadLegalHold: 4 } as const;
const ALL_MORE = BOTH_MODES | HAS_MORE.hadLegalHold;
const TIME_BYTES = 6;
const SHA256_BYTES = 32;

/** Bytes of the stored form: flags 1 | more 1? | end of the retention 6? | RetentionTime 6? | release of the hold 6? | SHA-256 32? */
export function protectionBytes({ retention, hadLegalHold, compliance = {} }: VersionProtection): number {
  const times = [retention?.untilMs, compliance.retainUntilMs, compliance.holdReleasedAtMs];
  const timesBytes = TIME_BYTES * times.filter((time) => time !== undefined).length;
  return 1 + (hadLegalHold ? 1 : 0) + timesBytes + (compliance.sha256 === undefined ? 0 : SHA256_BYTES);
}

export function writeProtection(buffer: Buffer, at: number, protection: VersionProtection): void {
  const { retention, legalHold, hadLegalHold, compliance = {} } = protection;
  const writer = new ByteWriter(buffer, at);
  const mode = retention === undefined ? 0 : flagOf(retention.mode);
  let has: number = hadLegalHold ? BOTH_MODES : mode;
  if (legalHold) has |= HAS.legalHold;
  if (compliance.retainUntilMs !== undefined) has |= HAS.retainUntil;
  if (compliance.conditionalHold) has |= HAS.conditionalHold;
  if (compliance.holdReleasedAtMs !== undefined) has |= HAS.holdReleased;
  if (compliance.legalHold) has |= HAS.complianceHold;
  if (compliance.sha256 !== undefined) has |= HAS.sha256;
  writer.uint(has, 1);
  if (hadLegalHold) writer.uint(mode | HAS_MORE.hadLegalHold, 1);
  for (const time of [retention?.untilMs, compliance.retainUntilMs, compliance.holdReleasedAtMs])
    if (time !== undefined) writer.uint(time, TIME_BYTES);
  if (compliance.sha256 !== undefined) writer.hex(compliance.sha256, SHA256_BYTES);
}

function flagOf(mode: Retention['mode']): number {
  return mode === 'GOVERNANCE' ? HAS.governanceMode : HAS.complianceMode;
}

export function readProtection(bytes: Uint8Array, at: number): VersionProtection {
  const reader = new ByteReader(bytes, at);
  const has = reader.uint(1);
  const more = (has & BOTH_MODES) === BOTH_MODES ? reader.uint(1) : undefined;
  const mode = (more ?? has) & BOTH_MODES;
  const isKnown = mode !== BOTH_MODES && ((more ?? 0) & ~ALL_MORE) === 0;
  assert(isKnown, `version record: unknown protection ${has} ${more}`);
  const protection: VersionProtection = {};
  const compliance: ComplianceProtection = {};
  if (mode !== 0)
    protection.retention = {
      mode: mode === HAS.governanceMode ? 'GOVERNANCE' : 'COMPLIANCE',
      untilMs: reader.uint(TIME_BYTES),
    };
  if ((more ?? 0) & HAS_MORE.hadLegalHold) protection.hadLegalHold = true;
  if (has & HAS.legalHold) protection.legalHold = true;
  if (has & HAS.retainUntil) compliance.retainUntilMs = reader.uint(TIME_BYTES);
  if (has & HAS.conditionalHold) compliance.conditionalHold = true;
  if (has & HAS.holdReleased) compliance.holdReleasedAtMs = reader.uint(TIME_BYTES);
  if (has & HAS.complianceHold) compliance.legalHold = true;
  if (has & HAS.sha256) compliance.sha256 = reader.hex(SHA256_BYTES);
  if (Object.keys(compliance).length > 0) protection.compliance = compliance;
  return protection;
}
