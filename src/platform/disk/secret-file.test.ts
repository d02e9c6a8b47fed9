import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readConfig } from '../../../cmd/read-config.ts';
import { openRootCredentials } from '../../admin/root-credentials.ts';
import { refuseExposedSecret } from '../../base/crypto/secret-exposure.ts';
import { connect } from '../../cli/connect.ts';
import { openFileKeyring } from '../keyring/file-keyring.ts';
import { systemRandom } from '../system-clock.ts';
import { makeNodeCertificate } from '../tls/cluster-certificates.ts';
import { loadTlsFiles, openTls } from '../tls/tls.ts';
import { readSecretFile, readSecretFileSync } from './secret-file.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-secrets-'));
});
afterEach(() => rm(folder, { recursive: true }));

const NOTHING = { accessKey: undefined, secretKey: undefined };
const EXPOSED =
  'holds a secret and can be read or written by others than its owner (mode 0640): run chmod 600';

test('a secret file of mode 0600 is read; one that others can read is refused with name, mode and remedy', async () => {
  const path = join(folder, 'secret');
  await writeFile(path, 'text', { mode: 0o600 });
  expect(await readSecretFile(path)).toBe('text');
  expect(readSecretFileSync(path)).toBe('text');
  for (const mode of [0o640, 0o620, 0o604, 0o602, 0o644]) {
    await chmod(path, mode);
    await expect(readSecretFile(path)).rejects.toThrow(`${path} holds a secret`);
    expect(() => readSecretFileSync(path)).toThrow(`(mode 0${mode.toString(8)}): run chmod 600 ${path}`);
  }
});

test('a file of another user may be readable by a group of the process, and by nobody else', () => {
  const ownUid = 10_001;
  for (const mode of [0o100400, 0o100440, 0o100600, 0o100640])
    refuseExposedSecret('f', { mode, uid: 0 }, ownUid);
  for (const mode of [0o100444, 0o100644, 0o100660, 0o100604])
    expect(() => refuseExposedSecret('f', { mode, uid: 0 }, ownUid)).toThrow('mode 0400 for the user');
});

test('every kind of secret file is refused when its group can read it', async () => {
  const at = (name: string) => join(folder, name);
  const expose = (name: string) => chmod(at(name), 0o640);

  await openFileKeyring({ path: at('master-keys.json'), isNew: true });
  await expose('master-keys.json');
  await expect(openFileKeyring({ path: at('master-keys.json'), isNew: false })).rejects.toThrow(EXPOSED);

  await openRootCredentials({ folder, given: NOTHING, random: systemRandom, isNew: true });
  await expose('root-credentials.json');
  await expect(
    openRootCredentials({ folder, given: NOTHING, random: systemRandom, isNew: true }),
  ).rejects.toThrow(EXPOSED);
  const context = { env: {}, print() {}, nowMs: () => 0, sleep: async () => {} };
  await expect(connect(context, { dataDir: folder })).rejects.toThrow(EXPOSED);

  const nowMs = Date.now();
  const made = await makeNodeCertificate({ folder, name: 'node', hosts: ['localhost'], nowMs });
  await expose('node-key.pem');
  await expect(loadTlsFiles(made)).rejects.toThrow(EXPOSED);
  await expose('ca-key.pem');
  const next = { folder, name: 'next', hosts: ['localhost'], nowMs };
  await expect(makeNodeCertificate(next)).rejects.toThrow(EXPOSED);

  await openTls({ mode: 'self-signed', folder, names: ['localhost'] });
  await expose('tls-key.pem');
  await expect(openTls({ mode: 'self-signed', folder, names: ['localhost'] })).rejects.toThrow(EXPOSED);

  await writeFile(at('password'), 'x'.repeat(40), { mode: 0o640 });
  for (const name of [
    'HOLDFAST_CLUSTER_SECRET_FILE',
    'HOLDFAST_ETCD_PASSWORD_FILE',
    'HOLDFAST_ROOT_SECRET_KEY_FILE',
  ])
    expect(() => readConfig({ env: { [name]: at('password') }, flags: {} })).toThrow(EXPOSED);
});

test('a settings file is refused for its mode only if it contains a secret', async () => {
  const configFile = join(folder, 'settings.json');
  await writeFile(configFile, JSON.stringify({ log: { level: 'warn' } }), { mode: 0o644 });
  expect(readConfig({ env: {}, flags: {}, configFile }).log.level).toBe('warn');
  await writeFile(configFile, JSON.stringify({ cluster: { secret: 'x'.repeat(40) } }));
  expect(() => readConfig({ env: {}, flags: {}, configFile })).toThrow('holds a secret');
});
