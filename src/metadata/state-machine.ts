// The commands and queries that the shard engine runs: one row each, complete by type. A command's row also says by how many
// bytes it grows the state.
//
// Names that are sent or stored stay as they are when the code gets a better word: `fold`, `condemn`, `debt`, `settle`, `kept`,
// `births`, `strays`. docs/internals/glossary.md has the word of today for each.

import type { DataGrant } from '../ports/metadata/blobs.ts';
import type { EngineCommands, EngineQueries } from '../ports/metadata/engine.ts';
import type {
  CommandName,
  CommandOf,
  OutcomeOf,
  QueryName,
  QueryOf,
  ResultOf,
} from '../ports/metadata/port.ts';
import type { QuerySpec, StateMachine } from '../ports/state-machine.ts';
import { DELETE_RULES, type DeleteRules } from '../types/delete-blocker.ts';
import { LIMITS } from '../types/limits.ts';
import { DEFAULT_METERING, type Metering } from '../types/metered.ts';
import { getAccountRemoval, listAccountRemovals, noteAccountRemoval } from './accounts/account-removals.ts';
import { addAccessKey } from './accounts/add-access-key.ts';
import { changeAccessKey } from './accounts/change-access-key.ts';
import { createAccount } from './accounts/create-account.ts';
import { deleteAccount } from './accounts/delete-account.ts';
import {
  findAccount,
  getAccessKey,
  getAccount,
  listAccounts,
  listKeysOfAccount,
} from './accounts/find-accounts.ts';
import { findIdentityChanges } from './accounts/find-identity-changes.ts';
import {
  changeIdentities,
  forgetIdentities,
  getKeyUses,
  getPrincipal,
  noteKeyUses,
  readIdentities,
} from './accounts/identities.ts';
import { addMail, listMails, noteMail } from './accounts/mails.ts';
import { setAccount } from './accounts/set-account.ts';
import { changeTenancy, findTenancy, findTenancyChanges, readTenancy } from './accounts/tenancy.ts';
import { beginMonth, closeInvoices, endMonth } from './billing/close-invoices.ts';
import { getInvoices, listInvoices, listPriceLists } from './billing/list-invoices.ts';
import { setPriceList } from './billing/set-price-list.ts';
import { applyClaimVerdicts } from './blobs/apply-claim-verdicts.ts';
import { assertLinks } from './blobs/assert-links.ts';
import { claimLinks } from './blobs/claim-links.ts';
import { confirmHistory, learnHistory, noteAsserted } from './blobs/confirm-history.ts';
import { eraseBlobs } from './blobs/erase-blobs.ts';
import { findHolders } from './blobs/find-holders.ts';
import { findOrphans } from './blobs/find-orphans.ts';
import { findUsers } from './blobs/find-users.ts';
import { getBlobs, getBodies, getManifestPages, getPieces } from './blobs/get-blobs.ts';
import { getHistory, listClaims } from './blobs/get-history.ts';
import { historyRow } from './blobs/history.ts';
import { countRepairs, getAudit, getRepairs, listBlobs, listRepairs } from './blobs/list-repairs.ts';
import { markBlobs } from './blobs/mark-blobs.ts';
import { noteAudit } from './blobs/note-audit.ts';
import { recordRepairs } from './blobs/record-repairs.ts';
import { releaseLinks } from './blobs/release-links.ts';
import { resolveRepairs } from './blobs/resolve-repairs.ts';
import { activateName } from './buckets/activate-name.ts';
import { admitForeignObjects } from './buckets/admit-foreign-objects.ts';
import { beginRename } from './buckets/begin-rename.ts';
import { getBucket, setBucketConfig, unlockCompliance } from './buckets/bucket-config.ts';
import { bucketGuard } from './buckets/buckets.ts';
import { closeBucket } from './buckets/close-bucket.ts';
import { createBucket } from './buckets/create-bucket.ts';
import { deleteBucket } from './buckets/delete-bucket.ts';
import { emptyBucket } from './buckets/empty-bucket.ts';
import { endRename } from './buckets/end-rename.ts';
import { findName, listNames } from './buckets/find-names.ts';
import { findProtected } from './buckets/find-protected.ts';
import { findRemovable } from './buckets/find-removable.ts';
import { forgetName } from './buckets/forget-name.ts';
import { renameBucket } from './buckets/rename-bucket.ts';
import { reserveName } from './buckets/reserve-name.ts';
import { stepClosing } from './buckets/step-closing.ts';
import { checkCounters } from './checks/check-counters.ts';
import {
  checkUnlinked,
  countPending,
  getLinks,
  getPieceIds,
  listBodies,
  listPieces,
} from './checks/check-queues.ts';
import { checkRows } from './checks/check-rows.ts';
import { countUsage } from './count-usage.ts';
import { listEvents } from './events/list-events.ts';
import { takeEvents } from './events/take-events.ts';
import { finishOutbox } from './jobs/deliver-outbox.ts';
import { forgetJobs } from './jobs/forget-jobs.ts';
import {
  countJobs,
  getJob,
  listEndedJobs,
  listJobs,
  listOpenJobs,
  listSurplusJobs,
} from './jobs/list-jobs.ts';
import {
  findExpirable,
  lifecycleStatus,
  listDueLifecycles,
  previewLifecycle,
} from './lifecycle/find-expirable.ts';
import { stepLifecycle } from './lifecycle/step-lifecycle.ts';
import {
  listCompletedUploads,
  listEndedLinks,
  listEndedUploads,
  listMarkedBlobs,
  listOutbox,
  listPendingClaims,
  resolveClaims,
} from './list-queues.ts';
import { listWrappedKeys } from './master-keys/list-wrapped-keys.ts';
import { getMasterKeys, setMasterKeys } from './master-keys/master-keys.ts';
import { rewrapKeys } from './master-keys/rewrap-keys.ts';
import { beginKeyMove } from './moves/begin-key-move.ts';
import { beginMove } from './moves/begin-move.ts';
import { findMoves } from './moves/find-moves.ts';
import { holdMove } from './moves/hold-move.ts';
import { moveKey } from './moves/move-key.ts';
import { stepKeyMove } from './moves/step-key-move.ts';
import { stepMove } from './moves/step-move.ts';
import { keepAnswer } from './outcomes/keep-answer.ts';
import { countOutcomes, forgetTokens, getStoredOutcome, listStoredTokens } from './outcomes/outcome-calls.ts';
import {
  endQuotaPhase,
  getAccountQuota,
  getHeld,
  getHeldByBucket,
  getHeldOfAccounts,
  grantQuota,
  listAccountQuotas,
  noteQuotaLease,
  noteSoftQuota,
  setAccountQuota,
} from './quotas/account-quota.ts';
import { checkRoom } from './quotas/check-room.ts';
import { underQuota } from './quotas/enforce-quotas.ts';
import { closeQuotaLease, openQuotaLease, setQuotaLease, shrinkQuotaLease } from './quotas/lease-commands.ts';
import { getScan, noteScan } from './scans/scans.ts';
import type { DefinedCommand } from './schema/define-command.ts';
import { tick } from './tick.ts';
import { commitPart } from './uploads/commit-part.ts';
import { completeUpload } from './uploads/complete-upload.ts';
import { abortUpload, createUpload } from './uploads/create-upload.ts';
import { expireUploads } from './uploads/expire-uploads.ts';
import { forgetCompletedUploads } from './uploads/forget-completed-uploads.ts';
import { getUpload, listParts } from './uploads/get-upload.ts';
import { listStaleUploads } from './uploads/list-stale-uploads.ts';
import { listUploads } from './uploads/list-uploads.ts';
import { releaseParts } from './uploads/release-parts.ts';
import { addTraffic } from './usage/add-traffic.ts';
import { closeUsage, mendAccount, mendUsage, noteOrphaned, noteUsageClosed } from './usage/close-usage.ts';
import {
  getUsageClosed,
  listCurrentUsages,
  listOpenUsage,
  listUnmetered,
  listUsages,
  sumCurrentUsages,
} from './usage/list-usages.ts';
import { recountAccount, recountUsage } from './usage/recount-usage.ts';
import { countUsages, sumDay, sumUsages } from './usage/sum-usages.ts';
import { appendVersion } from './versions/append-version.ts';
import { commitVersion } from './versions/commit-version.ts';
import { compactVersion } from './versions/compact-version.ts';
import { composeVersion } from './versions/compose-version.ts';
import { countComposedOnly, findCompositions } from './versions/count-composed-only.ts';
import { deleteVersions } from './versions/delete-versions.ts';
import { getVersion, getVersions } from './versions/get-version.ts';
import { listObjects } from './versions/list-objects.ts';
import { listVersions } from './versions/list-versions.ts';
import { recommitVersion } from './versions/recommit-version.ts';
import { releaseManifestPage } from './versions/release-manifest-page.ts';
import { setAcl } from './versions/set-acl.ts';
import { setProtection } from './versions/set-protection.ts';
import { setTags } from './versions/set-tags.ts';

type Commands = {
  [N in Exclude<CommandName, keyof EngineCommands>]: {
    define: DefinedCommand<CommandOf<N>, OutcomeOf<N>>;
    /** Bytes that it adds for good: below the reserve of its disk a node refuses what grows (R20, refuse-growth.ts). */
    growthBytes: (command: CommandOf<N>) => number;
    /** The same of what is wanted on a full disk, too, and goes on until half of the reserve is left. */
    reserveBytes?: (command: CommandOf<N>) => number;
  };
};
/** All but the engine's own. */
type Queries = {
  [N in Exclude<QueryName, 'check-outcomes' | keyof EngineQueries>]: QuerySpec<QueryOf<N>, ResultOf<N>>;
};

/** Rows of one command, roughly: a version, its links, an outcome. */
const ROWS_BYTES = 4096;
const ROW_BYTES = 256;
const MARKER_BYTES = LIMITS.keyBytesMax + 2 * ROW_BYTES;

/** For deletes, settings, upkeep and what is bounded. Events are bounded: the oldest make room for new ones (eventsKeptMax). */
const NONE = () => 0;

function dataBytes({ births, links }: DataGrant): number {
  const bodyBytes = births.reduce((sum, { body }) => sum + (body?.length ?? 0), 0);
  return bodyBytes + ROWS_BYTES + links.length * ROW_BYTES;
}

const commands: Commands = {
  'create-account': { define: createAccount, growthBytes: () => ROWS_BYTES },
  'set-account': { define: setAccount, growthBytes: NONE },
  'delete-account': { define: deleteAccount, growthBytes: NONE },
  // Bounded by their number.
  'add-mail': { define: addMail, growthBytes: NONE },
  'note-mail': { define: noteMail, growthBytes: NONE },
  'note-account-removal': { define: noteAccountRemoval, growthBytes: NONE },
  // An operator must be able to replace a stolen key on a full disk.
  'add-access-key': { define: addAccessKey, growthBytes: NONE },
  'change-access-key': { define: changeAccessKey, growthBytes: NONE },
  // Users must be able to lose rights on a full disk. What an account has of identities is bounded (identity-api quotas).
  'change-identities': {
    define: changeIdentities,
    growthBytes: ({ newRecords = [] }) => newRecords.length * ROWS_BYTES,
    reserveBytes: ({ rows }) => rows.filter(({ record }) => record !== null).length * ROWS_BYTES,
  },
  'forget-identities': { define: forgetIdentities, growthBytes: NONE },
  // Partners and members are some hundred bytes each; sub-accounts come by create-account.
  'change-tenancy': { define: changeTenancy, growthBytes: ({ add = [] }) => add.length * ROWS_BYTES },
  'note-key-uses': { define: noteKeyUses, growthBytes: NONE },
  // The first step of a new bucket decides for the others.
  'reserve-name': {
    define: reserveName,
    growthBytes: ({ settings }) => (settings === undefined ? 1 : 2) * ROWS_BYTES,
  },
  'activate-name': { define: activateName, growthBytes: NONE },
  // As many rows when it is over; beginning takes some more.
  'begin-rename': { define: beginRename, growthBytes: () => ROWS_BYTES },
  'end-rename': { define: endRename, growthBytes: NONE },
  'forget-name': { define: forgetName, growthBytes: NONE },

  'create-bucket': { define: createBucket, growthBytes: NONE },
  'delete-bucket': { define: deleteBucket, growthBytes: NONE },
  'rename-bucket': { define: renameBucket, growthBytes: NONE },
  // One document for each kind (CONFIG_KINDS), and a bound for each document: `versioning` and `events` have values of closed
  // lists only. The others are bounded by the operation that takes them, before the command is sent: `acl` by ACL_GRANTS_MAX,
  // `policy` by POLICY_SIZES, `lifecycle` by LIMITS.lifecycleBodyBytesMax.
  'set-bucket-config': {
    define: setBucketConfig,
    growthBytes: NONE,
    reserveBytes: ({ kind, document }) => (document === null || kind === 'versioning' ? 0 : ROWS_BYTES),
  },
  'unlock-compliance': { define: unlockCompliance, growthBytes: NONE },
  'admit-foreign-objects': { define: admitForeignObjects, growthBytes: NONE },
  'commit-version': { define: underQuota(commitVersion), growthBytes: ({ data }) => dataBytes(data) },
  'recommit-version': { define: underQuota(recommitVersion), growthBytes: () => ROWS_BYTES },
  'compose-version': { define: underQuota(composeVersion), growthBytes: ({ data }) => 2 * dataBytes(data) },
  'append-version': {
    define: underQuota(appendVersion),
    growthBytes: ({ piece }) => dataBytes({ births: piece.births, links: [] }),
  },
  // What it takes goes back, but not at once.
  'fold-version': {
    define: compactVersion,
    growthBytes: ({ birth }) => dataBytes({ births: [birth], links: [] }),
  },
  // A delete marker is a row more, and yet a delete; on a key there may be any number of them.
  'delete-versions': {
    define: deleteVersions,
    growthBytes: NONE,
    reserveBytes: ({ items, mayMark = false }) =>
      mayMark ? items.filter(({ versionId }) => versionId === undefined).length * MARKER_BYTES : 0,
  },
  // To take tags away is a delete.
  'set-tags': {
    define: setTags,
    growthBytes: ({ tags }) => (tags === null || tags.length === 0 ? 0 : ROWS_BYTES),
  },
  // What must be kept must be kept on a full disk, too.
  'set-protection': { define: setProtection, growthBytes: NONE },
  'set-acl': { define: setAcl, growthBytes: ({ grants }) => (grants === null ? 0 : ROWS_BYTES) },
  // The same rows under other keys; a job or token takes some of its own.
  'move-key': { define: moveKey, growthBytes: ({ token }) => (token === undefined ? 0 : ROW_BYTES) },
  'begin-move': { define: beginMove, growthBytes: () => ROWS_BYTES },
  'begin-key-move': { define: beginKeyMove, growthBytes: () => ROWS_BYTES },
  'step-move': { define: stepMove, growthBytes: NONE },
  'step-key-move': { define: stepKeyMove, growthBytes: NONE },
  'hold-move': { define: holdMove, growthBytes: NONE },
  'create-upload': { define: createUpload, growthBytes: () => ROWS_BYTES },
  'commit-part': { define: underQuota(commitPart), growthBytes: ({ data }) => dataBytes(data) },
  'complete-upload': {
    define: underQuota(completeUpload),
    growthBytes: ({ parts }) => ROWS_BYTES + parts.length * ROW_BYTES,
  },
  'abort-upload': { define: abortUpload, growthBytes: NONE },

  // Of a copy; the command that follows resolves claims that are there already.
  'claim-links': {
    define: claimLinks,
    growthBytes: ({ blobIds }) => ROWS_BYTES + blobIds.length * ROW_BYTES,
  },
  'release-links': { define: releaseLinks, growthBytes: NONE },
  'release-parts': { define: releaseParts, growthBytes: NONE },
  'settle-claims': { define: applyClaimVerdicts, growthBytes: NONE },
  'condemn-blobs': { define: markBlobs, growthBytes: NONE },
  'release-manifest-page': { define: releaseManifestPage, growthBytes: NONE },
  'erase-blobs': { define: eraseBlobs, growthBytes: NONE },
  // Bounded rows, of what is there already.
  'note-debts': { define: recordRepairs, growthBytes: NONE },
  'settle-debts': { define: resolveRepairs, growthBytes: NONE },
  'note-audit': { define: noteAudit, growthBytes: NONE },
  'note-scan': { define: noteScan, growthBytes: NONE },
  'learn-history': { define: learnHistory, growthBytes: NONE },
  'assert-links': { define: assertLinks, growthBytes: NONE },
  'note-asserted': { define: noteAsserted, growthBytes: NONE },
  'confirm-history': { define: confirmHistory, growthBytes: NONE },
  'finish-outbox': { define: finishOutbox, growthBytes: NONE },
  'expire-uploads': { define: expireUploads, growthBytes: NONE },
  'forget-completed-uploads': { define: forgetCompletedUploads, growthBytes: NONE },
  // Bounded by storedOutcomesBytesMax, which may be as much as the reserve.
  'keep-answer': {
    define: keepAnswer,
    growthBytes: NONE,
    reserveBytes: () => ROWS_BYTES,
  },
  'forget-tokens': { define: forgetTokens, growthBytes: NONE },
  'forget-jobs': { define: forgetJobs, growthBytes: NONE },
  'close-bucket': { define: closeBucket, growthBytes: NONE },
  'step-closing': { define: stepClosing, growthBytes: NONE },
  'empty-bucket': { define: emptyBucket, growthBytes: NONE },
  // As those of clients: its markers are as many as there are keys.
  'step-lifecycle': {
    define: stepLifecycle,
    growthBytes: NONE,
    reserveBytes: ({ page }) =>
      (page?.items ?? []).filter(({ isMarked = false }) => isMarked).length * MARKER_BYTES,
  },
  'take-events': { define: takeEvents, growthBytes: NONE },
  'set-account-quota': { define: setAccountQuota, growthBytes: NONE },
  'grant-quota': { define: grantQuota, growthBytes: NONE },
  'note-quota-lease': { define: noteQuotaLease, growthBytes: NONE },
  'end-quota-phase': { define: endQuotaPhase, growthBytes: NONE },
  'note-soft-quota': { define: noteSoftQuota, growthBytes: NONE },
  'check-room': { define: checkRoom, growthBytes: NONE },
  'open-quota-lease': { define: openQuotaLease, growthBytes: NONE },
  'set-quota-lease': { define: setQuotaLease, growthBytes: NONE },
  'shrink-quota-lease': { define: shrinkQuotaLease, growthBytes: NONE },
  'close-quota-lease': { define: closeQuotaLease, growthBytes: NONE },
  'rewrap-keys': { define: rewrapKeys, growthBytes: NONE },
  'set-master-keys': { define: setMasterKeys, growthBytes: NONE },
  // Of one day each, and bounded (PRICE_LISTS_MAX).
  'set-price-list': { define: setPriceList, growthBytes: NONE },
  // Some numbers, where others are already.
  'add-traffic': { define: addTraffic, growthBytes: NONE },
  'close-usage': { define: closeUsage, growthBytes: NONE },
  'note-orphaned': { define: noteOrphaned, growthBytes: NONE },
  'note-usage-closed': { define: noteUsageClosed, growthBytes: NONE },
  'mend-usage': { define: mendUsage, growthBytes: NONE },
  'mend-account': { define: mendAccount, growthBytes: NONE },
  'begin-month': { define: beginMonth, growthBytes: NONE },
  'close-invoices': {
    define: closeInvoices,
    growthBytes: ({ invoices }) => invoices.length * ROWS_BYTES,
  },
  'end-month': { define: endMonth, growthBytes: NONE },
  tick: { define: tick, growthBytes: NONE },
};

type AskRules = 'find-protected' | 'find-removable' | 'find-expirable' | 'preview-lifecycle';

/** All queries but those that ask the rules of deletion. */
const queries: Omit<Queries, AskRules> = {
  'get-access-key': getAccessKey,
  'list-access-keys': listKeysOfAccount,
  'get-principal': getPrincipal,
  'read-identities': readIdentities,
  'get-key-uses': getKeyUses,
  'get-account': getAccount,
  'identity-changes': findIdentityChanges,
  'find-account': findAccount,
  'tenancy-changes': findTenancyChanges,
  'read-tenancy': readTenancy,
  'find-tenancy': findTenancy,
  'list-mails': listMails,
  'list-account-removals': listAccountRemovals,
  'get-account-removal': getAccountRemoval,
  'list-accounts': listAccounts,
  'find-name': findName,
  'list-names': listNames,

  'get-bucket': getBucket,
  'get-version': getVersion,
  'get-versions': getVersions,
  'list-objects': listObjects,
  'list-versions': listVersions,
  'find-moves': findMoves,
  'get-upload': getUpload,
  'list-uploads': listUploads,
  'list-parts': listParts,
  'get-manifest-pages': getManifestPages,
  'get-bodies': getBodies,
  'get-pieces': getPieces,
  'get-blobs': getBlobs,

  'get-history': getHistory,
  'list-claims': listClaims,
  'list-outbox': listOutbox,
  'list-ended-links': listEndedLinks,
  'list-ended-uploads': listEndedUploads,
  'list-condemned': listMarkedBlobs,
  'list-debts': listRepairs,
  'get-debts': getRepairs,
  'count-debts': countRepairs,
  'get-audit': getAudit,
  'get-scan': getScan,
  'list-blobs': listBlobs,
  'list-pending-claims': listPendingClaims,
  'resolve-claims': resolveClaims,
  'list-stale-uploads': listStaleUploads,
  'list-completed-uploads': listCompletedUploads,
  'get-kept-outcome': getStoredOutcome,
  'list-kept-tokens': listStoredTokens,
  'list-jobs': listJobs,
  'count-jobs': countJobs,
  'count-kept': countOutcomes,
  'get-job': getJob,
  'list-open-jobs': listOpenJobs,
  'list-ended-jobs': listEndedJobs,
  'list-surplus-jobs': listSurplusJobs,
  'list-due-lifecycles': listDueLifecycles,
  'lifecycle-status': lifecycleStatus,
  'list-events': listEvents,
  'list-wrapped-keys': listWrappedKeys,
  'get-master-keys': getMasterKeys,
  'list-open-usage': listOpenUsage,
  'list-unmetered': listUnmetered,
  'list-usages': listUsages,
  'sum-usages': sumUsages,
  'count-usages': countUsages,
  'sum-day': sumDay,
  'list-current-usages': listCurrentUsages,
  'sum-current-usages': sumCurrentUsages,
  'get-usage-closed': getUsageClosed,
  'recount-usage': recountUsage,
  'recount-account': recountAccount,
  'list-price-lists': listPriceLists,
  'list-invoices': listInvoices,
  'get-invoices': getInvoices,
  'count-usage': countUsage,
  'get-account-quota': getAccountQuota,
  'list-account-quotas': listAccountQuotas,
  'get-held': getHeld,
  'get-held-of-accounts': getHeldOfAccounts,
  'get-held-by-bucket': getHeldByBucket,
  'count-composed-only': countComposedOnly,
  'find-compositions': findCompositions,

  'check-rows': checkRows,
  'check-unlinked': checkUnlinked,
  'check-counters': checkCounters,
  'get-links': getLinks,
  'find-strays': findOrphans,
  'find-users': findUsers,
  'find-holders': findHolders,
  'list-bodies': listBodies,
  'list-pieces': listPieces,
  'get-piece-ids': getPieceIds,
  'count-pending': countPending,
};

/** Passes these rules of deletion to every command and query that asks whether a version may go. No other place passes any. */
export function createMetadataMachine(
  rules: DeleteRules,
  metering: Metering = DEFAULT_METERING,
): StateMachine {
  const specs = Object.entries(commands).map(
    ([name, { define }]) => [name, define(rules, metering)] as const,
  );
  return {
    commands: Object.fromEntries(specs),
    queries: {
      ...queries,
      'find-protected': findProtected(rules),
      'find-removable': findRemovable(rules),
      'find-expirable': findExpirable(rules),
      'preview-lifecycle': previewLifecycle(rules),
    } satisfies Queries,
    bucketGuard,
    history: historyRow,
  };
}

/** Bytes that a command adds for good, and whether they may be of the reserve; 0 for an unknown command. */
export function growthOf(name: string, command: unknown): { bytes: number; isForFullDisk: boolean } {
  const row = commands[name as keyof Commands];
  const bytes = row?.growthBytes(command as never) ?? 0;
  if (bytes > 0 || row?.reserveBytes === undefined) return { bytes, isForFullDisk: false };
  return { bytes: row.reserveBytes(command as never), isForFullDisk: true };
}

/** Of a server, which meters by its settings. */
export function createMeteredMachine(metering: Metering): StateMachine {
  return createMetadataMachine(DELETE_RULES, metering);
}

export const metadataMachine: StateMachine = createMetadataMachine(DELETE_RULES);
