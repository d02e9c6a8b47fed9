// Checks of the tree of accounts for fsck: what leads to a record is there, and leads to what it says.
import { toHex } from '../../base/bytes/bytes.ts';
import { tenancyRowCodec } from '../../types/records/tenancy-records.ts';
import type { CheckScan, RowCheck } from '../checks/scan.ts';
import { readU48 } from '../schema/key-parts.ts';
import { accountCustomerRow, tenancyChangeRow, tenancyRow } from '../schema/keyspace.ts';
import { wordRow } from './tenancy.ts';

export const checkTenancy: RowCheck = async ({ key, value }, scan) => {
  const { record, change } = tenancyRowCodec.decode(value);
  const place = { table: 'tenancy', note: String(record.id) };
  if (record.id !== readU48(key)) scan.found('broken-row', place);
  await scan.expectRow(tenancyChangeRow(change), 'index-missing', place);
  const word = wordRow(record);
  if (word !== undefined) await scan.expectRow(word, 'index-missing', place);
  if (record.kind === 'customer')
    await scan.expectRow(accountCustomerRow(record.accountId), 'index-missing', place);
};

export const checkTenancyWord: RowCheck = async ({ key, value }, scan) => {
  const record = await readRecord(scan, readU48(value));
  const word = record && wordRow(record.record);
  if (word === undefined || toHex(word.key) !== toHex(key))
    scan.found('index-orphaned', { table: 'tenancyWords', note: toHex(key) });
};

export const checkTenancyChange: RowCheck = async ({ key, value }, scan) => {
  const row = await readRecord(scan, readU48(value));
  if (row?.change !== readU48(key))
    scan.found('index-orphaned', { table: 'tenancyChanges', note: toHex(key) });
};

export const checkAccountCustomer: RowCheck = async ({ key, value }, scan) => {
  const record = (await readRecord(scan, readU48(value)))?.record;
  const isIts = record?.kind === 'customer' && Number(record.accountId) === readU48(key);
  if (!isIts) scan.found('index-orphaned', { table: 'accountCustomers', note: String(readU48(key)) });
};

async function readRecord(scan: CheckScan, id: number) {
  const row = await scan.row(tenancyRow(id));
  return row && tenancyRowCodec.decode(row);
}
