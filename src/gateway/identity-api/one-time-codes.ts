// The codes of virtual MFA devices (RFC 6238 with SHA-1, steps of 30 seconds, 6 digits), and how a seed is shown to an app. Which
// codes have been used is in the device's row, and is mfa-codes.ts's to ask.
import { timingSafeEqual } from 'node:crypto';
import { generate } from 'lean-qr';
import { toPngBuffer } from 'lean-qr/extras/node_export';
import { HOTP, Secret, TOTP } from 'otpauth';

/** RFC 4226 4: 160 bits. */
export const SEED_BYTES = 20;
const STEP_SECONDS = 30;
const CODE = /^[0-9]{6}$/;
/** Pixels of one module of the QR code. */
const QR_SCALE = 4;

/** The time step of a moment. */
export function stepAt(nowMs: number): number {
  return Math.floor(nowMs / 1000 / STEP_SECONDS);
}

export function codeAt(seed: Uint8Array, step: number): string {
  return HOTP.generate({ secret: secretOf(seed), counter: step });
}

/** Where to look for codes: steps up to `reach` before and behind `step`, none of them at or before `after`. */
export interface StepSearch {
  readonly step: number;
  readonly reach: number;
  readonly after: number;
}

/** The step whose codes, one after the other, these are: that of the last one. undefined: of none that is searched. */
export function findStep(seed: Uint8Array, codes: readonly string[], search: StepSearch): number | undefined {
  if (!codes.every((code) => CODE.test(code))) return undefined;
  const first = Math.max(search.step - search.reach, search.after + 1, 0);
  const last = search.step + search.reach;
  let found: number | undefined;
  // All of them are computed: the time says nothing of which one it was.
  for (let step = first; step + codes.length - 1 <= last; step++) {
    let isMatch = true;
    for (const [at, code] of codes.entries()) {
      const expected = codeAt(seed, step + at);
      if (!timingSafeEqual(Buffer.from(expected), Buffer.from(code))) isMatch = false;
    }
    if (isMatch) found ??= step + codes.length - 1;
  }
  return found;
}

/** As people type it. */
export function seedInBase32(seed: Uint8Array): string {
  return secretOf(seed).base32;
}

/** A QR code of the URI that apps read (AWS "CreateVirtualMFADevice"): the device, the account, the seed. */
export function seedAsPng(
  seed: Uint8Array,
  options: { deviceName: string; accountName: string },
): Uint8Array {
  const label = `${options.deviceName}@${options.accountName}`;
  const uri = new TOTP({ label, secret: secretOf(seed) }).toString();
  return toPngBuffer(generate(uri), {
    on: [0, 0, 0, 255],
    off: [255, 255, 255, 255],
    scale: QR_SCALE,
  });
}

function secretOf(seed: Uint8Array): Secret {
  return new Secret({ buffer: Uint8Array.from(seed).buffer });
}
