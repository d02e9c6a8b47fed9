// Reads files with secrets: master keys, root credentials, private keys, passwords. One that others can read is refused
// before its text is used (base/crypto/secret-exposure.ts); rights and text are those of the same open file.
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { refuseExposedSecret } from '../../base/crypto/secret-exposure.ts';

/** Rejects with a Refusal when others can read the file, and with the error of the system when it cannot be read. */
export async function readSecretFile(path: string): Promise<string> {
  await using file = await open(path, 'r');
  refuseExposedSecret(path, await file.stat(), ownUid());
  return await file.readFile('utf8');
}

/** The same for what is read before anything else runs. */
export function readSecretFileSync(path: string): string {
  const file = openSync(path, 'r');
  try {
    refuseExposedSecret(path, fstatSync(file), ownUid());
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function ownUid(): number {
  return process.getuid?.() ?? 0;
}
