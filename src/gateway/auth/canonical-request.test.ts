// What of the canonical request is not in the examples of sigv4-header.test.ts: heads that no client sends.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byteText } from '../../../tests/support/run/properties.ts';
import { readHeaders } from '../http/request-headers.ts';
import { parseTarget } from '../s3/request/target.ts';
import { canonicalRequests } from './canonical-request.ts';

const target = parseTarget('/b/k', undefined);
const linesOf = (sent: readonly (readonly [string, string])[], signed: readonly string[]) =>
  canonicalRequests({ method: 'GET', target, headers: readHeaders(sent.flat()), payloadHash: 'x' }, signed)()
    .split('\n')
    .slice(3, 3 + signed.length);

test('each signed header has one line with its values in order, or none', () => {
  const name = fc.constantFrom('a', 'b', 'host', '__proto__', 'constructor');
  const signed = ['__proto__', 'a', 'absent', 'b', 'constructor', 'host'];
  const value = byteText.map((text) => text.replace(/[ \t\r\n]/g, '_'));
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value)), (sent) => {
      const expected = signed.map((wanted) => {
        const values = sent.filter(([sentName]) => sentName === wanted).map(([, text]) => text);
        return `${wanted}:${values.join(',')}`;
      });
      expect(linesOf(sent, signed)).toEqual(expected);
    }),
  );
});

test('thousands of signed headers take linear time', () => {
  const timeOf = (count: number) => {
    const names = Array.from({ length: count }, (_, at) => at.toString(36).padStart(4, '0'));
    const sent = names.map((name) => [name, ''] as const);
    // The least of many: any of them may have a collection in it, and on a busy machine half of the processor's caches.
    const times = Array.from({ length: 25 }, () => {
      const started = process.threadCpuUsage();
      linesOf(sent, names);
      const { user, system } = process.threadCpuUsage(started);
      return user + system;
    });
    return Math.min(...times);
  };
  timeOf(1000);
  expect(timeOf(8000)).toBeLessThan(3 * timeOf(4000) + 4000);
});
