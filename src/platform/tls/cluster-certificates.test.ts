import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Refusal } from '../../base/refusal.ts';
import { makeNodeCertificate } from './cluster-certificates.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-authority-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const nowMs = Date.now();
const make = (name = 'meta-1', hosts = ['10.1.2.3', 'FD00::1', 'meta-1.example']) =>
  makeNodeCertificate({ folder, name, hosts, nowMs });
const certificate = (path: string) => new X509Certificate(readFileSync(path));

describe('a node certificate', () => {
  test('is signed by the authority of the folder, which is made once', async () => {
    const [first, second] = [await make(), await make('meta-2')];
    expect([first.madeCa, second.madeCa]).toEqual([true, false]);
    const authority = certificate(first.ca);
    for (const { cert } of [first, second]) {
      expect(certificate(cert).checkIssued(authority)).toBe(true);
      expect(certificate(cert).verify(authority.publicKey)).toBe(true);
    }
    expect([authority.ca, certificate(first.cert).ca]).toEqual([true, false]);
    expect(certificate(first.cert).serialNumber).not.toBe(certificate(second.cert).serialNumber);
  });

  test('is for the named hosts, and for both ends of a connection', async () => {
    const made = certificate((await make()).cert);
    for (const ip of ['10.1.2.3', 'fd00::1']) expect(made.checkIP(ip), ip).toBeDefined();
    expect(made.checkHost('meta-1.example')).toBeDefined();
    expect([made.checkIP('127.0.0.1'), made.checkHost('meta-2.example')]).toEqual([undefined, undefined]);
    expect(made.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
    expect(made.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' });
    expect(made.subject).toBe('CN=meta-1');
  });

  test('ends at the requested time', async () => {
    const { cert, expiresAtMs } = await make();
    expect(Math.abs(certificate(cert).validToDate.getTime() - expiresAtMs)).toBeLessThan(1000);
    expect(expiresAtMs - nowMs).toBe(825 * 24 * 3_600_000);
  });

  test('has keys that only their owner can read', async () => {
    const { ca, cert, key } = await make();
    const mode = (path: string) => statSync(path).mode & 0o777;
    expect([mode(key), mode(join(folder, 'ca-key.pem'))]).toEqual([0o600, 0o600]);
    expect([mode(cert), mode(ca)]).toEqual([0o644, 0o644]);
  });
});

describe('nothing is written', () => {
  const contents = () => readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]);

  test.each(['meta-1-key.pem', 'meta-1-cert.pem'])('over %s', async (name) => {
    writeFileSync(join(folder, name), 'precious');
    await expect(make()).rejects.toThrow(`${name} is there already`);
    expect(contents()).toEqual([[name, 'precious']]);
  });

  test.each([
    ['ca-key.pem', 'ca-cert.pem'],
    ['ca-cert.pem', 'ca-key.pem'],
  ])('when there is %s without %s', async (there, missing) => {
    writeFileSync(join(folder, there), 'precious');
    await expect(make()).rejects.toThrow(new RegExp(`${there} is there, but .*${missing} is not`));
    expect(contents()).toEqual([[there, 'precious']]);
  });

  test.each([
    ['../escape', ['a']],
    ['', ['a']],
    ['ca', ['a']],
    ['a,CN=b', ['a']],
    ['a', []],
    ['a', ['not a host']],
    ['a', ['a', '999.1.1.1/8']],
  ])('for a node %j at %j', async (name, hosts) => {
    await expect(make(name, hosts)).rejects.toThrow(Refusal);
    expect(contents()).toEqual([]);
  });
});
