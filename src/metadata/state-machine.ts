// The commands and queries that the shard engine runs: one row each, complete by type.

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
import { setAccount } from './accounts/set-account.ts';
import { assertLinks } from './blobs/assert-links.ts';
import { claimLinks } from './blobs/claim-links.ts';
import { condemnBlobs } from './blobs/condemn-blobs.ts';
import { confirmHistory, learnHistory, noteAsserted } from './blobs/confirm-history.ts';
import { eraseBlobs } from './blobs/erase-blobs.ts';
import { findOrphans } from './blobs/find-orphans.ts';
import { findUsers } from './blobs/find-users.ts';
import { getBlobs, getBodies, getManifestPages, getPieces } from './blobs/get-blobs.ts';
import { getHistory, listClaims } from './blobs/get-history.ts';
import { historyRow } from './blobs/history.ts';
import { countDebts, getAudit, getDebts, listBlobs, listDebts } from './blobs/list-debts.ts';
import { noteAudit } from './blobs/note-audit.ts';
import { noteDebts } from './blobs/note-debts.ts';
import { releaseLinks } from './blobs/release-links.ts';
import { settleClaims } from './blobs/settle-claims.ts';
import { settleDebts } from './blobs/settle-debts.ts';
import { activateName } from './buckets/activate-name.ts';
import { beginRename } from './buckets/begin-rename.ts';
import { getBucket, setBucketConfig } from './buckets/bucket-config.ts';
import { bucketGuard } from './buckets/buckets.ts';
import { closeBucket } from './buckets/close-bucket.ts';
import { createBucket } from './buckets/create-bucket.ts';
import { deleteBucket } from './buckets/delete-bucket.ts';
import { emptyBucket } from './buckets/empty-bucket.ts';
import { endRename } from './buckets/end-rename.ts';
import { findName, listNames } from './buckets/find-names.ts';
import { findProtected } from './buckets/find-protected.ts';
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
import { finishOutbox } from './jobs/finish-outbox.ts';
import { forgetJobs } from './jobs/forget-jobs.ts';
import { countJobs, getJob, listJobs } from './jobs/list-jobs.ts';
import { listEndedJobs, listOpenJobs, listSurplusJobs } from './jobs/list-open-jobs.ts';
import {
  listCompletedUploads,
  listCondemned,
  listEndedLinks,
  listEndedUploads,
  listOutbox,
  listPendingClaims,
  resolveClaims,
} from './list-queues.ts';
import { listWrappedKeys } from './master-keys/list-wrapped-keys.ts';
import { rewrapKeys } from './master-keys/rewrap-keys.ts';
import { beginKeyMove } from './moves/begin-key-move.ts';
import { beginMove } from './moves/begin-move.ts';
import { findMoves } from './moves/find-moves.ts';
import { holdMove } from './moves/hold-move.ts';
import { moveKey } from './moves/move-key.ts';
import { stepKeyMove } from './moves/step-key-move.ts';
import { stepMove } from './moves/step-move.ts';
import { countKept } from './outcomes/count-kept.ts';
import { forgetTokens } from './outcomes/forget-tokens.ts';
import { getKeptOutcome } from './outcomes/get-kept-outcome.ts';
import { listKeptTokens } from './outcomes/list-kept-tokens.ts';
import { getScan, noteScan } from './scans/scans.ts';
import type { DefinedCommand } from './schema/define-command.ts';
import { tick } from './tick.ts';
import { abortUpload } from './uploads/abort-upload.ts';
import { commitPart } from './uploads/commit-part.ts';
import { completeUpload } from './uploads/complete-upload.ts';
import { createUpload } from './uploads/create-upload.ts';
import { expireUploads } from './uploads/expire-uploads.ts';
import { forgetCompletedUploads } from './uploads/forget-completed-uploads.ts';
import { getUpload, listParts } from './uploads/get-upload.ts';
import { listStaleUploads } from './uploads/list-stale-uploads.ts';
import { listUploads } from './uploads/list-uploads.ts';
import { releaseParts } from './uploads/release-parts.ts';
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
import { setTags } from './versions/set-tags.ts';

type Commands = { [N in CommandName]: DefinedCommand<CommandOf<N>, OutcomeOf<N>> };
/** All but the engine's own. */
type Queries = { [N in Exclude<QueryName, 'check-outcomes'>]: QuerySpec<QueryOf<N>, ResultOf<N>> };

const commands: Commands = {
  'create-account': createAccount,
  'set-account': setAccount,
  'delete-account': deleteAccount,
  'add-access-key': addAccessKey,
  'change-access-key': changeAccessKey,
  'reserve-name': reserveName,
  'activate-name': activateName,
  'begin-rename': beginRename,
  'end-rename': endRename,
  'forget-name': forgetName,

  'create-bucket': createBucket,
  'delete-bucket': deleteBucket,
  'rename-bucket': renameBucket,
  'set-bucket-config': setBucketConfig,
  'commit-version': commitVersion,
  'recommit-version': recommitVersion,
  'compose-version': composeVersion,
  'append-version': appendVersion,
  'fold-version': compactVersion,
  'delete-versions': deleteVersions,
  'set-tags': setTags,
  'move-key': moveKey,
  'begin-move': beginMove,
  'begin-key-move': beginKeyMove,
  'step-move': stepMove,
  'step-key-move': stepKeyMove,
  'hold-move': holdMove,
  'create-upload': createUpload,
  'commit-part': commitPart,
  'complete-upload': completeUpload,
  'abort-upload': abortUpload,

  'claim-links': claimLinks,
  'release-links': releaseLinks,
  'release-parts': releaseParts,
  'settle-claims': settleClaims,
  'condemn-blobs': condemnBlobs,
  'release-manifest-page': releaseManifestPage,
  'erase-blobs': eraseBlobs,
  'note-debts': noteDebts,
  'settle-debts': settleDebts,
  'note-audit': noteAudit,
  'note-scan': noteScan,
  'learn-history': learnHistory,
  'assert-links': assertLinks,
  'note-asserted': noteAsserted,
  'confirm-history': confirmHistory,
  'finish-outbox': finishOutbox,
  'expire-uploads': expireUploads,
  'forget-completed-uploads': forgetCompletedUploads,
  'forget-tokens': forgetTokens,
  'forget-jobs': forgetJobs,
  'close-bucket': closeBucket,
  'step-closing': stepClosing,
  'empty-bucket': emptyBucket,
  'take-events': takeEvents,
  'rewrap-keys': rewrapKeys,
  tick,
};

/** All that ask nothing of any rule. */
const queries: Omit<Queries, 'find-protected'> = {
  'get-access-key': getAccessKey,
  'list-access-keys': listKeysOfAccount,
  'get-account': getAccount,
  'identity-changes': findIdentityChanges,
  'find-account': findAccount,
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
  'list-condemned': listCondemned,
  'list-debts': listDebts,
  'get-debts': getDebts,
  'count-debts': countDebts,
  'get-audit': getAudit,
  'get-scan': getScan,
  'list-blobs': listBlobs,
  'list-pending-claims': listPendingClaims,
  'resolve-claims': resolveClaims,
  'list-stale-uploads': listStaleUploads,
  'list-completed-uploads': listCompletedUploads,
  'get-kept-outcome': getKeptOutcome,
  'list-kept-tokens': listKeptTokens,
  'list-jobs': listJobs,
  'count-jobs': countJobs,
  'count-kept': countKept,
  'get-job': getJob,
  'list-open-jobs': listOpenJobs,
  'list-ended-jobs': listEndedJobs,
  'list-surplus-jobs': listSurplusJobs,
  'list-events': listEvents,
  'list-wrapped-keys': listWrappedKeys,
  'count-usage': countUsage,
  'count-composed-only': countComposedOnly,
  'find-compositions': findCompositions,

  'check-rows': checkRows,
  'check-unlinked': checkUnlinked,
  'check-counters': checkCounters,
  'get-links': getLinks,
  'find-strays': findOrphans,
  'find-users': findUsers,
  'list-bodies': listBodies,
  'list-pieces': listPieces,
  'get-piece-ids': getPieceIds,
  'count-pending': countPending,
};

/** The one place where it is said by which rules versions may go: every command and query that asks has these. */
export function createMetadataMachine(rules: DeleteRules): StateMachine {
  const specs = Object.entries(commands).map(([name, define]) => [name, define(rules)] as const);
  return {
    commands: Object.fromEntries(specs),
    queries: { ...queries, 'find-protected': findProtected(rules) } satisfies Queries,
    bucketGuard,
    history: historyRow,
  };
}

export const metadataMachine: StateMachine = createMetadataMachine(DELETE_RULES);
