// Whether a code of an MFA device is right: for STS, for x-amz-mfa of S3, and for who enables a device. A code that was right is
// used up with the answer, in the device's row: of two who send it at once, one is told that it is right.

import {
  type IdentityStore,
  type IdentityStoreDependencies,
  withIdentities,
} from '../../accounts/identity-store.ts';
import { createFailureWaits, SECRET_WAITS } from '../../base/failure-waits.ts';
import type { KeyringPort } from '../../ports/keyring.ts';
import type { AccountId } from '../../types/names.ts';
import { identityKeys, type MfaDeviceRecord } from '../../types/records/identity-records.ts';
import { identityArn } from './identity-parameters.ts';
import { findStep, SEED_BYTES, stepAt } from './one-time-codes.ts';

export interface MfaQuestion {
  readonly accountId: AccountId;
  /** As the caller names the device: its ARN. */
  readonly serial: string;
  readonly code: string;
  /** Whose device it must be: the user's id, or `root`. */
  readonly owner: string;
}

/**
 * - `wrong`: there is no such device, it is not enabled for the owner, the code is wrong or was used before, or there were too
 *   many wrong ones.
 * - `vouched`, `unvouched`: it is right; and whether the device may stand for MFA delete (MfaDeviceRecord).
 */
export type MfaAnswer = 'wrong' | 'vouched' | 'unvouched';

export interface MfaCodes {
  /** Throws ServiceUnavailable, ConcurrentModification. */
  verify(question: MfaQuestion): Promise<MfaAnswer>;
}

/** The root's device under the name that consoles give it, also where it was made under another. */
const ROOT_DEVICE = 'root-account-mfa-device';
/** RFC 6238 5.2: one step of delay either way. */
const REACH_STEPS = 1;
/** Of clocks that are synchronised anew: half an hour. */
const RESYNC_REACH_STEPS = 60;

export function createMfaCodes(
  deps: IdentityStoreDependencies & { readonly keyring: KeyringPort },
): MfaCodes {
  const { clock, keyring } = deps;
  const waits = createFailureWaits({ clock, ...SECRET_WAITS });

  return {
    async verify({ accountId, serial, code, owner }) {
      const who = { group: accountId, name: owner };
      if (waits.mustWait(who)) return 'wrong';
      // Counted before it is known: many that are sent at once have no more guesses than if they came one after the other.
      waits.note(who);
      const answer = await withIdentities(deps, accountId, (store) =>
        useCode(store, { serial, code, owner, keyring, nowMs: clock.wallMs() }),
      );
      if (answer !== 'wrong') waits.forget(who);
      return answer;
    },
  };
}

/** Whether a device has this code; if so, it is used up with what the store writes. */
async function useCode(
  store: IdentityStore,
  asked: Omit<MfaQuestion, 'accountId'> & { keyring: KeyringPort; nowMs: number },
): Promise<MfaAnswer> {
  for (const device of await devicesNamed(store, asked)) {
    if (device.enabled?.owner !== asked.owner) continue;
    const usedStep = matchCodes(asked.keyring, device, { codes: [asked.code], nowMs: asked.nowMs });
    if (usedStep === undefined) continue;
    // Read anew for each code: no gateway has it in memory.
    store.putUnseen(identityKeys.mfaDevice(device.name), { ...device, usedStep });
    return device.enabled.isUnvouched ? 'unvouched' : 'vouched';
  }
  return 'wrong';
}

/** The device of a serial number, which is its ARN. */
export async function findMfaDevice(
  store: IdentityStore,
  serial: string,
): Promise<MfaDeviceRecord | undefined> {
  const name = serial.slice(serial.lastIndexOf('/') + 1);
  const device = await store.find('mfa-device', identityKeys.mfaDevice(name));
  return device !== undefined && serialOf(store, device) === serial ? device : undefined;
}

export function serialOf({ accountId }: IdentityStore, device: { path: string; name: string }): string {
  return identityArn(accountId, 'mfa', device);
}

async function devicesNamed(
  store: IdentityStore,
  { serial, owner }: Pick<MfaQuestion, 'serial' | 'owner'>,
): Promise<MfaDeviceRecord[]> {
  const device = await findMfaDevice(store, serial);
  if (device !== undefined) return [device];
  if (owner !== 'root' || serial !== serialOf(store, { path: '/', name: ROOT_DEVICE })) return [];
  const { rootMfaDevices } = await store.settings();
  const devices = await store.findAll('mfa-device', rootMfaDevices.map(identityKeys.mfaDevice));
  return devices.filter((each) => each !== undefined);
}

/**
 * The step of the last of these codes, which follow one another; undefined: they are not the device's, or were used before.
 * Two of them are looked for in a wider range, and by the device's own clock: it is what they tell.
 */
export function matchCodes(
  keyring: KeyringPort,
  { sealedSeed, usedStep = -1, driftSteps = 0 }: MfaDeviceRecord,
  { codes, nowMs }: { codes: readonly string[]; nowMs: number },
): number | undefined {
  const seed = keyring.unwrap(sealedSeed);
  const isSingle = codes.length === 1;
  try {
    return findStep(seed.subarray(0, SEED_BYTES), codes, {
      step: stepAt(nowMs) + (isSingle ? driftSteps : 0),
      reach: isSingle ? REACH_STEPS : RESYNC_REACH_STEPS,
      after: usedStep,
    });
  } finally {
    seed.fill(0);
  }
}
