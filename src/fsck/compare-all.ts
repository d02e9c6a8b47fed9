// The full comparison, step by step: every row with all that must agree with it, shard after shard; then every blob with
// its bytes, over all shards at once; then what still waits for its turn, which is no damage.
import type { CheckedTable } from '../ports/metadata/checks.ts';
import { compareForeign } from './compare-claims.ts';
import { compareData } from './compare-data.ts';
import { compareLinks } from './compare-links.ts';
import { compareBuckets, compareNames } from './compare-names.ts';
import { nameDamage } from './name-damage.ts';
import type { FsckRun } from './run.ts';

/** How each table is compared. `row`: all that it must agree with is in its shard's rows. */
const TABLES: Readonly<Record<CheckedTable, 'row' | 'links' | 'claims' | 'names' | 'data'>> = {
  objects: 'links',
  parts: 'links',
  manifestPages: 'links',
  links: 'links',
  foreign: 'claims',
  buckets: 'names',
  names: 'names',
  blobs: 'data',
  versionIds: 'row',
  deletedBuckets: 'row',
  bucketConfigs: 'row',
  lifecycles: 'row',
  lifecycleTimes: 'row',
  uploads: 'row',
  uploadTimes: 'row',
  completedUploads: 'row',
  completedTimes: 'row',
  endedUploads: 'row',
  endedLinks: 'row',
  condemned: 'row',
  pendingClaims: 'row',
  outbox: 'row',
  debts: 'row',
  debtQueue: 'row',
  jobs: 'row',
  openJobs: 'row',
  endedJobs: 'row',
  jobErrors: 'row',
  tokens: 'row',
  tokenTimes: 'row',
  accounts: 'row',
  accountNames: 'row',
  accountEmails: 'row',
  canonicalIds: 'row',
  accessKeys: 'row',
  accountAccessKeys: 'row',
  accountBuckets: 'row',
  identityChanges: 'row',
  identities: 'row',
  identityRevisions: 'row',
  accountAliases: 'row',
  accountQuotas: 'row',
  keyUses: 'row',
  tenancy: 'row',
  tenancyWords: 'row',
  tenancyChanges: 'row',
  accountCustomers: 'row',
  tenancySequence: 'row',
  accountRemovals: 'row',
  mails: 'row',
  masterKeys: 'row',
  priceLists: 'row',
  invoices: 'row',
  customerInvoices: 'row',
  controlInvoices: 'row',
  billing: 'row',
  usageStates: 'row',
  usageRecords: 'row',
  usageClosed: 'row',
  events: 'row',
  eventCursors: 'row',
};

export const COMPARED_TABLES = Object.keys(TABLES) as CheckedTable[];

/** Resolves when all is compared; rejects when it cannot be, or is cancelled. */
export async function compareAll(run: FsckRun): Promise<void> {
  const { shardCount } = run.deps.metadata;
  for (const shard of run.shards) {
    run.progress.stage = `rows of shard ${shard + 1} of ${shardCount}`;
    await compareShard(run, shard);
  }
  run.progress.stage = 'names';
  await compareNames(run);
  run.progress.stage = run.options.readData ? 'data, read whole' : 'data';
  await compareData(run);
  run.progress.stage = 'whose data is damaged';
  await nameDamage(run);
  run.progress.stage = 'work under way';
  for (const shard of run.shards) {
    for (const some of (await run.ask(shard, 'count-pending', {})).pending) run.addPending(some);
  }
}

async function compareShard(run: FsckRun, shard: number): Promise<void> {
  const usage = await compareLinks(run, shard);
  // Of versions that cannot be read nothing can be counted.
  if (!run.isUnreadable(shard, 'objects')) {
    run.foundAll((await run.ask(shard, 'check-counters', { counted: usage })).findings);
  }
  for (const table of COMPARED_TABLES.filter((name) => TABLES[name] === 'row')) {
    for await (const { findings } of run.pages(shard, table)) run.foundAll(findings);
  }
  for await (const { findings, facts } of run.pages(shard, 'foreign')) {
    run.foundAll(findings);
    await compareForeign(run, shard, facts.foreign);
    await run.checkUnlinked(shard, facts.unlinked);
  }
  await compareBuckets(run, shard);
  run.foundAll((await run.ask(shard, 'check-outcomes', {})).findings);
}
