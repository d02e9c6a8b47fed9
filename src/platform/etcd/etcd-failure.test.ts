import { expect, test } from 'vitest';
import { describeEtcdFailure } from './etcd-failure.ts';

// As its client has them (etcd3 1.1, grpc-js 1.14).
test.each([
  [
    '9 FAILED_PRECONDITION: etcdserver: authentication is not enabled',
    'etcd refuses: authentication is not enabled',
  ],
  [
    '14 UNAVAILABLE: No connection established. Last error: Error: connect ECONNREFUSED 127.0.0.1:1. Resolution note: ',
    'etcd does not answer: connect ECONNREFUSED 127.0.0.1:1',
  ],
  ['14 UNAVAILABLE: No connection established', 'etcd does not answer: No connection established'],
  ['14 UNAVAILABLE: No connection established.', 'etcd does not answer: it cannot be reached'],
  [
    '14 UNAVAILABLE: Name resolution failed for target dns:etcd.example.net:2379',
    'etcd does not answer: Name resolution failed for target dns:etcd.example.net:2379',
  ],
])('%s', (message, told) => {
  expect(describeEtcdFailure(new Error(message))).toBe(told);
});
