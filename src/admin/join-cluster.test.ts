import { expect, test } from 'vitest';
import { loadConfig } from '../config/load.ts';
import { systemClock } from '../platform/system-clock.ts';
import { connect, securityOf } from './join-cluster.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };

function connecting(flags: Record<string, string>, env: Record<string, string> = {}): () => void {
  const config = loadConfig({ flags: { join: '127.0.0.1:2379', ...flags }, env });
  return () => connect({ config, clock: systemClock, log }, 'test').close();
}

test('refuses incomplete certificates for etcd', () => {
  expect(connecting({})).not.toThrow();
  expect(connecting({ join: '' })).toThrow('--join must name the etcd servers');
  expect(connecting({ 'etcd.ca': 'absent.pem' })).toThrow('cannot read absent.pem');
  expect(connecting({ 'etcd.cert': 'a.pem', 'etcd.key': 'b.pem' })).toThrow('etcd.cert needs etcd.ca');
  expect(connecting({ 'etcd.ca': 'a.pem', 'etcd.cert': 'a.pem' })).toThrow('belong together');
  expect(connecting({ 'etcd.user': 'holdfast' })).toThrow('etcd.user and etcd.password belong together');
  expect(
    connecting({ 'etcd.user': 'holdfast' }, { HOLDFAST_ETCD_PASSWORD: 'not said anywhere' }),
  ).not.toThrow();
});

test('tells a node without certificates or secret what it needs', () => {
  const securityFor = (flags: Record<string, string>) => () => securityOf(loadConfig({ flags, env: {} }));
  expect(securityFor({})).toThrow('a node needs certificates');
  expect(securityFor({ 'cluster.ca': 'ca.pem' })).toThrow('belong together');
});
