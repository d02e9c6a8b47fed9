// A page of a table, each row with its check, under one view. Every table is here: a new one needs a check to compile.

import { toHex } from '../../base/bytes/bytes.ts';
import { isLastPage } from '../../base/row-pages.ts';
import { behind, TABLE_END } from '../../base/table-rows.ts';
import type { CheckedTable } from '../../ports/metadata/checks.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { checkAccountRemoval } from '../accounts/account-removals.ts';
import { checkAccountAlias, checkIdentity, checkKeyUse } from '../accounts/check-identities.ts';
import {
  checkAccountCustomer,
  checkTenancy,
  checkTenancyChange,
  checkTenancyWord,
} from '../accounts/check-tenancy.ts';
import { checkMail } from '../accounts/mails.ts';
import {
  checkBilling,
  checkControlInvoice,
  checkCustomerInvoice,
  checkInvoice,
  checkPriceList,
} from '../billing/check-invoices.ts';
import {
  checkBlob,
  checkEndedLink,
  checkForeign,
  checkLink,
  checkManifestPage,
  checkMarkedBlobs,
  checkPendingClaim,
} from '../blobs/check-blobs.ts';
import { checkRepair, checkRepairQueue } from '../blobs/check-repairs.ts';
import { checkBucketConfig } from '../buckets/bucket-config.ts';
import {
  checkAccessKey,
  checkAccount,
  checkAccountAccessKey,
  checkAccountBucket,
  checkAccountIndex,
  checkBucket,
  checkDeletedBucket,
  checkIdentityChange,
  checkName,
  checkOutbox,
} from '../buckets/check-names.ts';
import { checkEvent, checkEventCursor } from '../events/check-events.ts';
import { checkEndedJob, checkJob, checkJobErrors, checkOpenJob } from '../jobs/check-jobs.ts';
import { checkLifecycle, checkLifecycleTime } from '../lifecycle/check-lifecycle.ts';
import { checkToken, checkTokenTime } from '../outcomes/check-tokens.ts';
import { checkAccountQuota } from '../quotas/account-quota.ts';
import { TABLES } from '../schema/keyspace.ts';
import {
  checkCompletedTime,
  checkCompletedUpload,
  checkPart,
  checkUpload,
  checkUploadTime,
} from '../uploads/check-uploads.ts';
import { checkUsageRecord, checkUsageState } from '../usage/check-usage.ts';
import { checkVersion, checkVersionId } from '../versions/check-versions.ts';
import { versionsBehind } from '../versions/version-walk.ts';
import { CheckScan, type RowCheck } from './scan.ts';

type Query = QueryOf<'check-rows'>;
type Result = ResultOf<'check-rows'>;

/** `bodies` and `pieces` are compared with blobs by their keys; versions are walked; of the others there is nothing to compare. */
type Apart = 'bodies' | 'pieces' | 'objects' | 'ticks' | 'history' | 'homeHistories' | 'scans';

const nothing: RowCheck = async () => {};

export const ROW_CHECKS: Record<Exclude<keyof typeof TABLES, Apart>, RowCheck> = {
  versionIds: checkVersionId,
  buckets: checkBucket,
  deletedBuckets: checkDeletedBucket,
  bucketConfigs: checkBucketConfig,
  lifecycles: checkLifecycle,
  lifecycleTimes: checkLifecycleTime,
  uploads: checkUpload,
  uploadTimes: checkUploadTime,
  parts: checkPart,
  completedUploads: checkCompletedUpload,
  completedTimes: checkCompletedTime,
  // Parts may all have gone, or be still to go: both are right.
  endedUploads: nothing,
  blobs: checkBlob,
  links: checkLink,
  foreign: checkForeign,
  manifestPages: checkManifestPage,
  endedLinks: checkEndedLink,
  condemned: checkMarkedBlobs,
  pendingClaims: checkPendingClaim,
  outbox: checkOutbox,
  jobs: checkJob,
  openJobs: checkOpenJob,
  endedJobs: checkEndedJob,
  jobErrors: checkJobErrors,
  events: checkEvent,
  eventCursors: checkEventCursor,
  tokens: checkToken,
  tokenTimes: checkTokenTime,
  debts: checkRepair,
  debtQueue: checkRepairQueue,
  names: checkName,
  accounts: checkAccount,
  accountNames: checkAccountIndex('name'),
  accountEmails: checkAccountIndex('email'),
  canonicalIds: checkAccountIndex('canonicalId'),
  accessKeys: checkAccessKey,
  accountAccessKeys: checkAccountAccessKey,
  accountBuckets: checkAccountBucket,
  identityChanges: checkIdentityChange,
  identities: checkIdentity,
  identityRevisions: nothing,
  accountAliases: checkAccountAlias,
  accountQuotas: checkAccountQuota,
  usageStates: checkUsageState,
  usageRecords: checkUsageRecord,
  usageClosed: nothing,
  keyUses: checkKeyUse,
  tenancy: checkTenancy,
  tenancyWords: checkTenancyWord,
  tenancyChanges: checkTenancyChange,
  accountCustomers: checkAccountCustomer,
  tenancySequence: nothing,
  accountRemovals: checkAccountRemoval,
  mails: checkMail,
  masterKeys: nothing,
  priceLists: checkPriceList,
  invoices: checkInvoice,
  customerInvoices: checkCustomerInvoice,
  controlInvoices: checkControlInvoice,
  billing: checkBilling,
};

export const checkRows: QuerySpec<Query, Result> = {
  async run(query, state, { shard }) {
    const view = state.view();
    try {
      const scan = new CheckScan(view, shard, query.keyIds);
      const page = await (query.table === 'objects'
        ? walkVersions(query, scan)
        : walkTable(query, query.table, scan));
      return { ...scan.result(), ...page };
    } finally {
      view.close();
    }
  },
};

type Page = Pick<Result, 'rowCount' | 'next'>;

async function walkTable(
  { after, limit }: Query,
  table: Exclude<CheckedTable, 'objects'>,
  scan: CheckScan,
): Promise<Page> {
  const asked = { limit, bytesMax: LIMITS.queryPageBytesMax };
  const rows = await scan.view.range({ table: TABLES[table], gte: behind(after), lt: TABLE_END, ...asked });
  for (const row of rows) {
    await attempt(scan, { table, key: row.key }, () => ROW_CHECKS[table](row, scan));
  }
  const last = rows.at(-1);
  const isWhole = last === undefined || isLastPage(rows, asked);
  return { rowCount: rows.length, ...(!isWhole && { next: last.key }) };
}

/**
 * By position and not by region: a version that is overwritten meanwhile is neither met twice nor missed. One that is
 * renamed may be.
 */
async function walkVersions({ after, limit }: Query, scan: CheckScan): Promise<Page> {
  let rowCount = 0;
  let next: Uint8Array | undefined;
  for await (const walked of versionsBehind(scan.view, { after, limit })) {
    next = walked.position;
    await attempt(scan, { table: 'objects', key: next }, () => checkVersion(walked, scan));
    rowCount++;
  }
  return { rowCount, ...(rowCount === limit && next !== undefined && { next }) };
}

async function attempt(
  scan: CheckScan,
  { table, key }: { table: CheckedTable; key: Uint8Array },
  check: () => Promise<void>,
): Promise<void> {
  try {
    await check();
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    scan.found('broken-row', { table, note: `${toHex(key)}: ${what}` });
  }
}
