// Lines to paste, where a certificate has to be trusted and a secret needs quotes. That programs work by them:
// tests/clients/backup-keys.test.ts.
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { clientLines, formatClientLines } from './client-lines.ts';

const facts = {
  endpoint: 'https://store.example.net:9000',
  certificateFile: "/srv/my data/it's/tls-cert.pem",
  bucket: 'vault',
  name: 'backup',
  accessKey: 'HF0',
  secretKey: 'a/b+c',
  keepsLocks: true,
};

test('a shell has the lines for restic as they are meant', () => {
  const script = `${clientLines(facts).restic}\nprintf '%s\\n' "$AWS_SECRET_ACCESS_KEY" "$RESTIC_REPOSITORY" "$RESTIC_CACERT"`;
  expect(execFileSync('/bin/sh', ['-euc', script], { env: {} }).toString().split('\n')).toEqual([
    'a/b+c',
    's3:https://store.example.net:9000/vault',
    facts.certificateFile,
    '',
  ]);
});

test('rclone and the AWS CLI are told of the certificate, and of none where there is none', () => {
  const { rclone, aws } = clientLines(facts);
  expect(rclone).toContain("\n# rclone --ca-cert '/srv/my data/it'\\''s/tls-cert.pem'");
  expect(aws).toContain("\naws configure set profile.backup.ca_bundle '/srv/my data/it'\\''s/tls-cert.pem'");
  const without = clientLines({ ...facts, certificateFile: undefined });
  expect(Object.values(without).join('\n')).not.toContain('cert');
});

test('restic is warned of locks where the key may not delete them', () => {
  const text = (keepsLocks: boolean) => formatClientLines(clientLines({ ...facts, keepsLocks }), facts);
  expect(text(true)).toContain('# This key may not delete locks');
  expect(text(false)).not.toContain('locks');
});
