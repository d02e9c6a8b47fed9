// Whether a code is the present one of an MFA device, and nobody has used it before (RFC 6238 5.2). For STS, and for requests to
// S3 that need a second factor (extensions 3.1).
import type { KeyringPort } from '../../ports/keyring.ts';
import type { AccountId } from '../../types/names.ts';
import { identityKeys } from '../../types/records/identity-records.ts';
import { type IdentityStoreDependencies, withIdentities } from './identity-store.ts';
import { findStep, SEED_BYTES, stepAt } from './one-time-codes.ts';

/** Steps before and behind the present one whose codes are taken (extensions 3.1). */
const REACH = 1;
/** Also as the vendor writes the root's device. */
const SERIAL = /^arn:aws:iam::([0-9]{12}):mfa\/(?:[\x21-\x7e]*\/)?([\w+=,.@-]{1,226})$/;

/** The account and name of a device, by its ARN; undefined for what is none. */
export function parseMfaSerial(serial: string): { accountId: string; name: string } | undefined {
  const [, accountId, name] = SERIAL.exec(serial) ?? [];
  return accountId === undefined || name === undefined ? undefined : { accountId, name };
}

export interface MfaCode {
  readonly accountId: AccountId;
  /** ARN of the device. */
  readonly serial: string;
  readonly code: string;
  /** Whose device it must be: a user's id, or `root`. */
  readonly owner: string;
}

/** True once for each code. Of two requests with the same code at the same time, one gets true. */
export async function verifyMfaCode(
  deps: IdentityStoreDependencies & { keyring: KeyringPort },
  { accountId, serial, code, owner }: MfaCode,
): Promise<boolean> {
  const device = parseMfaSerial(serial);
  if (device?.accountId !== accountId) return false;
  const nowMs = deps.clock.wallMs();
  return withIdentities(deps, accountId, async (store) => {
    const key = identityKeys.mfaDevice(device.name);
    const record = await store.find('mfa-device', key);
    if (record?.enabled?.owner !== owner) return false;
    const seed = deps.keyring.unwrap(record.sealedSeed).subarray(0, SEED_BYTES);
    const step = stepAt(nowMs) + (record.driftSteps ?? 0);
    const found = findStep(seed, [code], { step, reach: REACH, after: record.usedStep ?? -1 });
    seed.fill(0);
    if (found === undefined) return false;
    store.putUnseen(key, { ...record, usedStep: found });
    return true;
  });
}
