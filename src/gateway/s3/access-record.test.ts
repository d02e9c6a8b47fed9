// What the log line of a request says of the things that it did: a request that is answered 200 may have been refused some.
import { expect, test } from 'vitest';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { type AccessRecord, finishRecord, startRecord } from './access-record.ts';

function begin(): AccessRecord {
  const unknown = { host: undefined, userAgent: undefined, referer: undefined, tls: undefined };
  return startRecord({
    requestId: 'R',
    hostId: 'H',
    receivedAtMs: 0,
    method: 'POST',
    requestUri: '/b?delete',
    remoteAddress: '192.0.2.1',
    ...unknown,
  });
}

function lineOf(record: AccessRecord): unknown {
  const lines: object[] = [];
  const log = { info: (fields: object) => void lines.push(fields) } as unknown as Logger;
  const telemetry = { count() {}, observe() {} } as unknown as TelemetryPort;
  finishRecord(record, { log, telemetry });
  return lines[0];
}

test('has the operation by its name, and by that of the server access log', () => {
  const record = begin();
  [record.operation, record.logName] = ['DeleteObjects', 'REST.POST.MULTI_OBJECT_DELETE'];
  expect(lineOf(record)).toMatchObject({
    operation: 'DeleteObjects',
    logName: 'REST.POST.MULTI_OBJECT_DELETE',
  });
  expect(lineOf(begin())).not.toHaveProperty('itemCount');
});

test('counts items, and names the first refused ones, without secrets', () => {
  const record = begin();
  const logName = 'BATCH.DELETE.OBJECT';
  record.item({ logName, key: 'a', status: 204 });
  expect(lineOf(record)).toMatchObject({ itemCount: 1 });
  expect(lineOf(record)).not.toHaveProperty('refusedItemCount');
  const refused = {
    logName,
    key: 'k?password=secret',
    versionId: 'v',
    status: 403,
    errorCode: 'AccessDenied',
  };
  for (let count = 0; count < 7; count++) record.item(refused);
  const shown = { ...refused, key: 'k?password=***' };
  expect(lineOf(record)).toMatchObject({
    itemCount: 8,
    refusedItemCount: 7,
    refusedItems: Array.from({ length: 5 }, () => shown),
  });
});

test('counts all items, and keeps a few that were refused', () => {
  const record = begin();
  for (let count = 0; count < 1000; count++) {
    record.item({ logName: 'REST.MOVE.OBJECT', key: `moved-${count}`, status: 200 });
    record.item({ logName: 'REST.MOVE.OBJECT', key: `${count}`, status: 403, errorCode: 'AccessDenied' });
  }
  expect([record.itemCount, record.refusedItemCount]).toEqual([2000, 1000]);
  const kept = Object.values(record).flatMap((value) => (Array.isArray(value) ? value : []));
  expect(kept.map(({ key }) => key)).toEqual(['0', '1', '2', '3', '4']);
});
