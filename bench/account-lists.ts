// What a page of a long list of sub-accounts costs a gateway: its directory of them is brought up to date, filtered and paged, and
// the records of the page are decoded as a shard's rows are. One sub-account has changed before every tenth page.
// Times of the clock and of the processor: the latter say what it costs where the machine has other work.
// Run: npx node bench/account-lists.ts [--accounts N] [--pages N]
import { parseArgs } from 'node:util';
import { createTenancyDirectory } from '../src/accounts/tenancy-directory.ts';
import { holds, pageOf } from '../src/accounts/tenancy-tree.ts';
import type { MetadataPort } from '../src/ports/metadata/port.ts';
import type { AccountId } from '../src/types/names.ts';
import { type TenancyRow, tenancyRowCodec } from '../src/types/records/tenancy-records.ts';

const { values: flags } = parseArgs({
  options: { accounts: { type: 'string', default: '100000' }, pages: { type: 'string', default: '300' } },
});
const accountCount = Number(flags.accounts);
const pageCount = Number(flags.pages);
const SIZE = 100;

/** Rows by id, and ids by the number of their last change. */
const rows = new Map<number, Uint8Array>();
const changes: number[] = [];

function write(id: number): void {
  changes.push(id);
  const row: TenancyRow = {
    change: changes.length,
    record: {
      kind: 'customer',
      id,
      revision: 1,
      createdAtMs: Date.UTC(2026, 0, 1),
      accountId: String(100_000_000_000 + id) as AccountId,
      controlId: 1,
      name: `Customer ${id}`,
      email: `customer${id}@example.com`,
      state: 'paid',
      contact: { city: 'Springfield', country: 'US', address1: `${id} Main Street` },
      quotaType: 'soft',
      ftpEnabled: false,
      sendPasswordReset: false,
      ssoEnabled: false,
      isUnpaid: false,
      history: [{ state: 'paid', fromMs: Date.UTC(2026, 0, 1) }],
    },
  };
  rows.set(id, tenancyRowCodec.encode(row));
}
for (let id = 1; id <= accountCount; id++) write(id);

const decoded = (id: number) => {
  const row = rows.get(id);
  return row === undefined ? null : tenancyRowCodec.decode(row).record;
};

const metadata = {
  shardCount: 1,
  async query(_target: unknown, name: string, query: { since: number; limit: number; ids: number[] }) {
    if (name === 'read-tenancy') return { kind: 'done', value: { records: query.ids.map(decoded) } };
    const ids = changes.slice(query.since, query.since + query.limit);
    const upTo = query.since + ids.length;
    const isAll = ids.length < query.limit;
    return {
      kind: 'done',
      value: { records: ids.map(decoded), upTo, isAll, lastChange: changes.length },
    };
  },
} as unknown as MetadataPort;

const directory = createTenancyDirectory(metadata);
const beganAtMs = performance.now();
await directory.refresh();
console.log(`${accountCount} sub-accounts are learnt in ${Math.round(performance.now() - beganAtMs)} ms`);

for (const [name, part] of [
  ['all of them', undefined],
  ['by part of a name', 'MER 99'],
] as const) {
  const times: number[] = [];
  const cpuTimes: number[] = [];
  for (let at = 0; at < pageCount; at++) {
    if (at % 10 === 0) write(1 + ((at * 7919) % accountCount));
    const page = 1 + Math.floor((at / pageCount) * (accountCount / SIZE));
    const before = process.cpuUsage();
    const pageBeganMs = performance.now();
    await directory.refresh();
    const found: { id: number }[] = [];
    await directory.walk('customer', 'partner 1', (entry) => {
      if (entry.deletedAtMs === undefined && holds(entry.name, part)) found.push(entry);
    });
    const { items } = pageOf(found, { page, size: SIZE });
    await directory.read(
      'customer',
      items.map(({ id }) => id),
    );
    times.push(performance.now() - pageBeganMs);
    const { user, system } = process.cpuUsage(before);
    cpuTimes.push((user + system) / 1000);
  }
  console.log(`${name}: ${quantiles(times)}; of the processor ${quantiles(cpuTimes)}`);
}

function quantiles(times: number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const ms = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1);
  return `p50 ${ms(0.5)} ms, p99 ${ms(0.99)} ms`;
}
