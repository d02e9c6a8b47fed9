// The root account's credentials: made at the first start, stored in the data folder, and not changed by later starts. The
// account itself is in the system shard; the operator and `holdfast` sign with this file.
import { join } from 'node:path';
import { checkAccountFields } from '../accounts/account-rules.ts';
import { mintKeyPair } from '../accounts/mint-keys.ts';
import { Refusal } from '../base/refusal.ts';
import { writeDurableFile } from '../platform/disk/durable-file.ts';
import { readSecretFile } from '../platform/disk/secret-file.ts';
import { MASTER_KEYS_FILE } from '../platform/keyring/file-keyring.ts';
import type { RandomPort } from '../ports/clock.ts';
import type { Logger } from '../ports/telemetry.ts';
import { AppError } from '../types/errors.ts';

export const CREDENTIALS_FILE = 'root-credentials.json';

export interface RootCredentials {
  readonly accessKey: string;
  readonly secretKey: string;
}

/** What HOLDFAST_ROOT_ACCESS_KEY and HOLDFAST_ROOT_SECRET_KEY say: both or neither. */
export interface GivenCredentials {
  readonly accessKey: string | undefined;
  readonly secretKey: string | undefined;
}

/** Refuses keys that no account may have, before anything is made. */
export function checkGivenCredentials({ accessKey, secretKey }: GivenCredentials): void {
  if (accessKey === undefined || secretKey === undefined) return;
  try {
    checkAccountFields({ accessKey, secretKey });
  } catch (error) {
    if (error instanceof AppError) throw new Refusal(`the root credentials given: ${error.message}`);
    throw error;
  }
}

/**
 * For a gateway of a cluster: the stored credentials, else the given ones. Throws {@link Refusal} when there are neither:
 * credentials made by one gateway would be unknown to the others.
 */
export async function readRootCredentials(options: {
  folder: string;
  given: GivenCredentials;
}): Promise<RootCredentials> {
  const { folder, given } = options;
  const path = join(folder, CREDENTIALS_FILE);
  const stored = await readStored(path);
  if (stored !== undefined) return agreed(path, stored, given);
  checkGivenCredentials(given);
  const { accessKey, secretKey } = given;
  if (accessKey !== undefined && secretKey !== undefined) return { accessKey, secretKey };
  throw new Refusal(
    `there is no ${path}: \`holdfast cluster init\` has made it beside ${MASTER_KEYS_FILE}, and every gateway needs both`,
  );
}

/**
 * The stored credentials; else the given ones; else new ones, made and stored only if the root account does not exist yet
 * (`isNew`). Given ones that differ from the stored ones are refused.
 */
export async function openRootCredentials(options: {
  folder: string;
  given: GivenCredentials;
  random: RandomPort;
  isNew: boolean;
}): Promise<RootCredentials> {
  const { folder, given, random, isNew } = options;
  const path = join(folder, CREDENTIALS_FILE);
  const stored = await readStored(path);
  if (stored === undefined) {
    const { accessKey, secretKey } = given;
    const isGiven = accessKey !== undefined && secretKey !== undefined;
    if (!isGiven && !isNew) {
      throw new Refusal(
        `${path} is missing: without it no command can sign as the root account.\n` +
          `Put it back, or set HOLDFAST_ROOT_ACCESS_KEY and HOLDFAST_ROOT_SECRET_KEY to what stood there.`,
      );
    }
    const made = isGiven ? { accessKey, secretKey } : mintKeyPair(random);
    // Credentials given for existing data may be wrong: once stored, the right ones would be refused.
    if (isNew) await writeDurableFile(path, `${JSON.stringify(made, undefined, 2)}\n`);
    return made;
  }
  return agreed(path, stored, given);
}

/** The root account has other keys by now: the server works, but the command line cannot sign. */
export function warnOfRootKey(log: Logger, folder: string): void {
  log.warn({ file: join(folder, CREDENTIALS_FILE) }, 'root-credentials-outdated');
}

function agreed(path: string, stored: RootCredentials, given: GivenCredentials): RootCredentials {
  const isOther = given.accessKey !== stored.accessKey || given.secretKey !== stored.secretKey;
  if (given.accessKey !== undefined && isOther) {
    throw new Refusal(
      `HOLDFAST_ROOT_ACCESS_KEY and HOLDFAST_ROOT_SECRET_KEY are not the root credentials of this data folder.\n` +
        `They are fixed at its first start and kept in ${path}. Unset the variables, or set them to what stands there.`,
    );
  }
  return stored;
}

async function readStored(path: string): Promise<RootCredentials | undefined> {
  let text: string;
  try {
    text = await readSecretFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    if (error instanceof Refusal) throw error;
    throw new Refusal(`cannot read ${path}: ${(error as Error).message}`);
  }
  try {
    const { accessKey, secretKey } = JSON.parse(text);
    if (typeof accessKey === 'string' && typeof secretKey === 'string') return { accessKey, secretKey };
  } catch {
    // Falls through: damaged, like a file without the two keys.
  }
  throw new Refusal(`${path} is damaged`);
}
