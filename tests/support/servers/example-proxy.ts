// HAProxy with the example in deploy/, which has other addresses and certificates here: of gateways on this machine, and of a
// folder that is gone in the end.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { makeNodeCertificate } from '../../../src/platform/tls/cluster-certificates.ts';
import { programPath } from '../clients/client-programs.ts';
import { readDeploy } from './deploy-files.ts';

export const HAPROXY = programPath('haproxy') ?? 'haproxy';

export interface ExampleProxies {
  /** Of a node, as the cluster's gateways have them: paths of PEM files. */
  certificateOf(name: string): ReturnType<typeof makeNodeCertificate>;
  /** Path of the example with these addresses, and `reuse` as its http-reuse. `ports`: for clients, and of its own health. */
  configure(options: {
    gateways: readonly [string, string];
    ports: readonly [number, number];
    reuse?: string;
  }): Promise<string>;
  /** Resolves with what it says when it has looked at both gateways, and found that the second one is not fit. */
  start(config: string): Promise<string>;
  end(): void;
}

/** `name`: of the service, in the certificate that clients see. */
export function openExampleProxies(name: string): ExampleProxies {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-proxy-'));
  const ca = join(folder, 'ca-cert.pem');
  const children: ChildProcess[] = [];
  return {
    certificateOf: (node) => makeNodeCertificate({ folder, name: node, hosts: [node], nowMs: Date.now() }),
    async configure({ gateways, ports, reuse }) {
      const { cert, private: key } = await generate([{ name: 'commonName', value: name }]);
      const pem = join(folder, 'tls.pem');
      writeFileSync(pem, `${cert}\n${key}\n`, { mode: 0o600 });
      const text = readDeploy('proxy/haproxy.cfg')
        .replace('/run/secrets/tls.pem', pem)
        .replace('/run/secrets/ca-cert.pem', ca)
        .replace(':8443', `127.0.0.1:${ports[0]}`)
        .replace('127.0.0.1:8404', `127.0.0.1:${ports[1]}`)
        .replace('gateway-1:9000', gateways[0])
        .replace('gateway-2:9000', gateways[1])
        .replace(
          'balance leastconn',
          `balance leastconn${reuse === undefined ? '' : `\n  http-reuse ${reuse}`}`,
        );
      const path = join(folder, `haproxy-${ports[0]}.cfg`);
      writeFileSync(path, text);
      return path;
    },
    start(config) {
      const proxy = spawn(HAPROXY, ['-db', '-f', config], { stdio: ['ignore', 'pipe', 'pipe'] });
      children.push(proxy);
      const isLeftAlone = Promise.withResolvers<string>();
      let log = '';
      for (const stream of [proxy.stdout, proxy.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => {
          log = (log + text).slice(-10_000);
          if (log.includes('gateways/gateway-2 is DOWN')) isLeftAlone.resolve(log);
        });
      proxy.once('exit', () => isLeftAlone.reject(new Error(`haproxy has ended: ${log}`)));
      return isLeftAlone.promise;
    },
    end() {
      for (const child of children) child.kill('SIGKILL');
      rmSync(folder, { recursive: true });
    },
  };
}
