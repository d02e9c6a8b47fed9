// The commands and queries that the shard engine runs: one row each, complete by type.
import { DELETE_RULES, type DeleteRules } from '../model/delete-blocker.ts';
import type { CommandName, CommandOf, OutcomeOf, QueryName, QueryOf, ResultOf } from '../ports/metadata.ts';
import type { QuerySpec, StateMachine } from '../ports/state-machine.ts';
import { bucketGuard } from './buckets.ts';
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
import { findStrays } from './checks/find-strays.ts';
import { findUsers } from './checks/find-users.ts';
import { abortUpload } from './commands/abort-upload.ts';
import { activateName } from './commands/activate-name.ts';
import { addAccessKey } from './commands/add-access-key.ts';
import { appendVersion } from './commands/append-version.ts';
import { assertLinks } from './commands/assert-links.ts';
import { beginKeyMove } from './commands/begin-key-move.ts';
import { beginMove } from './commands/begin-move.ts';
import { beginRename } from './commands/begin-rename.ts';
import { changeAccessKey } from './commands/change-access-key.ts';
import { claimLinks } from './commands/claim-links.ts';
import { closeBucket } from './commands/close-bucket.ts';
import { commitPart } from './commands/commit-part.ts';
import { commitVersion } from './commands/commit-version.ts';
import { completeUpload } from './commands/complete-upload.ts';
import { composeVersion } from './commands/compose-version.ts';
import { condemnBlobs } from './commands/condemn-blobs.ts';
import { confirmHistory, learnHistory, noteAsserted } from './commands/confirm-history.ts';
import { createAccount } from './commands/create-account.ts';
import { createBucket } from './commands/create-bucket.ts';
import { createUpload } from './commands/create-upload.ts';
import { deleteAccount } from './commands/delete-account.ts';
import { deleteBucket } from './commands/delete-bucket.ts';
import { deleteVersions } from './commands/delete-versions.ts';
import { emptyBucket } from './commands/empty-bucket.ts';
import { endRename } from './commands/end-rename.ts';
import { eraseBlobs } from './commands/erase-blobs.ts';
import { expireUploads } from './commands/expire-uploads.ts';
import { finishOutbox } from './commands/finish-outbox.ts';
import { foldVersion } from './commands/fold-version.ts';
import { forgetCompletedUploads } from './commands/forget-completed-uploads.ts';
import { forgetJobs } from './commands/forget-jobs.ts';
import { forgetName } from './commands/forget-name.ts';
import { forgetTokens } from './commands/forget-tokens.ts';
import { holdMove } from './commands/hold-move.ts';
import { moveKey } from './commands/move-key.ts';
import { noteAudit } from './commands/note-audit.ts';
import { noteDebts } from './commands/note-debts.ts';
import { recommitVersion } from './commands/recommit-version.ts';
import { releaseLinks } from './commands/release-links.ts';
import { releaseManifestPage } from './commands/release-manifest-page.ts';
import { releaseParts } from './commands/release-parts.ts';
import { renameBucket } from './commands/rename-bucket.ts';
import { reserveName } from './commands/reserve-name.ts';
import { rewrapKeys } from './commands/rewrap-keys.ts';
import { setAccount } from './commands/set-account.ts';
import { setTags } from './commands/set-tags.ts';
import { setVersioning } from './commands/set-versioning.ts';
import { settleClaims } from './commands/settle-claims.ts';
import { settleDebts } from './commands/settle-debts.ts';
import { stepClosing } from './commands/step-closing.ts';
import { stepKeyMove } from './commands/step-key-move.ts';
import { stepMove } from './commands/step-move.ts';
import { tick } from './commands/tick.ts';
import type { DefinedCommand } from './define-command.ts';
import { historyRow } from './history.ts';
import { countComposedOnly, findCompositions } from './queries/count-composed-only.ts';
import { countKept } from './queries/count-kept.ts';
import { countUsage } from './queries/count-usage.ts';
import {
  findAccount,
  getAccessKey,
  getAccount,
  listAccounts,
  listKeysOfAccount,
} from './queries/find-accounts.ts';
import { findIdentityChanges } from './queries/find-identity-changes.ts';
import { findMoves } from './queries/find-moves.ts';
import { findName, getBucket, listNames } from './queries/find-names.ts';
import { getBlobs, getBodies, getManifestPages, getPieces } from './queries/get-blobs.ts';
import { getHistory, listClaims } from './queries/get-history.ts';
import { getKeptOutcome } from './queries/get-kept-outcome.ts';
import { getUpload, listParts } from './queries/get-upload.ts';
import { getVersion, getVersions } from './queries/get-version.ts';
import { countDebts, getAudit, getDebts, listBlobs, listDebts } from './queries/list-debts.ts';
import { countJobs, getJob, listJobs } from './queries/list-jobs.ts';
import { listKeptTokens } from './queries/list-kept-tokens.ts';
import { listObjects } from './queries/list-objects.ts';
import { listEndedJobs, listOpenJobs, listSurplusJobs } from './queries/list-open-jobs.ts';
import {
  listCompletedUploads,
  listCondemned,
  listEndedLinks,
  listEndedUploads,
  listOutbox,
  listPendingClaims,
  resolveClaims,
} from './queries/list-queues.ts';
import { listStaleUploads } from './queries/list-stale-uploads.ts';
import { listUploads } from './queries/list-uploads.ts';
import { listVersions } from './queries/list-versions.ts';
import { listWrappedKeys } from './queries/list-wrapped-keys.ts';
import { lookForKept } from './queries/look-for-kept.ts';

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
  'set-versioning': setVersioning,
  'commit-version': commitVersion,
  'recommit-version': recommitVersion,
  'compose-version': composeVersion,
  'append-version': appendVersion,
  'fold-version': foldVersion,
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
  'rewrap-keys': rewrapKeys,
  tick,
};

/** All that ask nothing of any rule. */
const queries: Omit<Queries, 'look-for-kept'> = {
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
  'list-wrapped-keys': listWrappedKeys,
  'count-usage': countUsage,
  'count-composed-only': countComposedOnly,
  'find-compositions': findCompositions,

  'check-rows': checkRows,
  'check-unlinked': checkUnlinked,
  'check-counters': checkCounters,
  'get-links': getLinks,
  'find-strays': findStrays,
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
    queries: { ...queries, 'look-for-kept': lookForKept(rules) } satisfies Queries,
    bucketGuard,
    history: historyRow,
  };
}

export const metadataMachine: StateMachine = createMetadataMachine(DELETE_RULES);
