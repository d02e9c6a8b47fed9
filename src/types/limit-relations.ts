// How the numbers of limits.ts relate: asserted when the program begins, so that none is changed alone.
import { assert } from '../base/assert.ts';
import { EVENT_CONSUMERS } from './events.ts';
import { LIMITS } from './limits.ts';

assert(
  LIMITS.requestAgeMaxMs + 2 * LIMITS.shardTimeKeptMs < LIMITS.blobIdAgeMaxMs,
  'a request ends before its blob id is refused (R25)',
);
assert(
  LIMITS.requestAgeMaxMs + 2 * LIMITS.shardTimeKeptMs < LIMITS.linkIdAgeMaxMs,
  'a request ends before its claim is dropped (R28)',
);
assert(
  LIMITS.readerRevalidateMs < LIMITS.readingGraceMs,
  'readers re-validate within the reading grace (R33)',
);
assert(
  LIMITS.orphanAfterMs > LIMITS.sweepAfterMs && LIMITS.orphanAfterMs > LIMITS.blobIdAgeMaxMs,
  'what the sweep may still take is no damage (R32)',
);
assert(
  LIMITS.dropSuspectMs > 2 * LIMITS.chunkRequestMaxMs,
  'who drops waits less for a disk that hangs than it goes on without it',
);
assert(LIMITS.jobKeptMs > LIMITS.idempotencyTokenKeptMs, 'a token leads to a job that is still there');
assert(
  2 * LIMITS.jobHoldMs < LIMITS.jobStallTimeoutMs && LIMITS.jobStallTimeoutMs < LIMITS.jobStalledMs,
  'a driver that goes on is not taken for one that has left',
);
assert(
  LIMITS.jobStallTimeoutMs + LIMITS.jobLookMs < 5 * 1000,
  'a job that its driver has left goes on within five seconds',
);
assert(
  LIMITS.requestIdKeptMs <= LIMITS.tokenlessJobKeptMs && LIMITS.tokenlessJobKeptMs < LIMITS.jobKeptMs,
  'a client that is answered again with the job that it began finds it (R18), and none is shown for longer than those that may be asked for',
);
assert(
  4 * LIMITS.storedOutcomesPerAccountBytesMax <= LIMITS.storedOutcomesBytesMax &&
    4 * LIMITS.tokenlessOutcomesPerAccountBytesMax <= LIMITS.tokenlessOutcomesBytesMax,
  'one account leaves room for what is kept of others',
);
assert(
  64 * LIMITS.outcomesAtLeastBytes <= LIMITS.storedOutcomesPerAccountBytesMax &&
    64 * LIMITS.outcomesAtLeastBytes <= LIMITS.tokenlessOutcomesBytesMax,
  'what accounts have in a full shard is little: it takes hundreds of them to double it',
);
assert(
  // An id is 32 characters, and two more bytes around them.
  4 * 64 * LIMITS.moveVersionsMax <= LIMITS.outcomesAtLeastBytes &&
    4 * 2 * LIMITS.moveErrorsKeptBytesMax <= LIMITS.outcomesAtLeastBytes,
  'an account has room for some of the largest outcomes and jobs, however full the shard is',
);
assert(
  4 * LIMITS.jobsShownBytesMax <= LIMITS.tokenlessOutcomesPerAccountBytesMax,
  'jobs that are kept to be shown leave their account room for others',
);
// An id is 32 characters, and two more bytes around them.
assert(
  64 * LIMITS.moveVersionsMax + LIMITS.jobsPerAccountMax * 2 * LIMITS.moveErrorsKeptBytesMax <
    LIMITS.storedOutcomesPerAccountBytesMax / 16,
  'the largest outcome is a small part of what may be kept, and so is what jobs under way may still add to it',
);
assert(
  // Each error takes 128 bytes and its texts.
  128 * LIMITS.moveErrorsUnderTokenMax <= LIMITS.moveErrorsUnderTokenBytesMax &&
    4000 * 2 * LIMITS.moveErrorsUnderTokenBytesMax <= LIMITS.storedOutcomesPerAccountBytesMax,
  'an account may repeat some thousands of renames under tokens in a day, whatever they meet',
);
assert(
  2 * LIMITS.moveErrorsKeptBytesMax < LIMITS.jobsShownBytesMax,
  'the job that ended last is shown, whatever it has met',
);
assert(LIMITS.chunkPutsBytesMax < LIMITS.commitQueueBytesMax, 'chunks wait before their store refuses them');
assert(
  LIMITS.bodyStalledMs < Math.min(LIMITS.bodyBufferWaitMaxMs, LIMITS.requestWaitMaxMs),
  'a stalled body goes before one that waits is refused',
);
assert(
  LIMITS.bodyIdleMs < LIMITS.bodyStalledMs,
  'what can be fetched again goes before the body that it is of',
);
assert(
  8 * LIMITS.piecesGivenMax * LIMITS.quickReadMs < LIMITS.bodyStalledMs,
  'who becomes eight times as slow with several pieces in hand is not taken for one who stands still',
);
assert(LIMITS.sealBlockBytes <= LIMITS.bodyShareBytesMin, 'all bodies at work may hold a piece each');
assert(
  LIMITS.strangerShareWeight * (LIMITS.accountShareWeight + 1 + LIMITS.signerShareWeight) ===
    LIMITS.accountShareWeight * LIMITS.signerShareWeight,
  "a stranger's address that is alone has the same part, whether accounts share with it or only addresses",
);
assert(LIMITS.bodiesWaitingMax < LIMITS.requestsInFlightMax, 'bodies are refused before all requests are');
assert(
  LIMITS.refusedBodyIdleMaxMs < LIMITS.refusedBodyDrainMaxMs,
  'a client that stands still is left before one that sends',
);
assert(LIMITS.chunkBytesMin <= LIMITS.bodyShareBytesMin, 'a body has room for a piece');
assert(
  // Of one thread where there are two. A copy reads and writes.
  (LIMITS.requestsInFlightMax / 2) * (LIMITS.chunksInFlightPerBody + 1 + LIMITS.readAheadChunks) <
    LIMITS.callsInFlightMax,
  'chunk calls of all requests in flight leave a line of threads room',
);
assert(
  LIMITS.requestsInFlightMax < LIMITS.tlsConnectionsMax && LIMITS.tlsConnectionsMax <= LIMITS.connectionsMax,
  'idle connections keep no request out',
);
assert(LIMITS.pipelinedRequestsMax < LIMITS.requestsInFlightMax, 'one connection keeps no other out');
assert(
  16 * LIMITS.pipelinedRequestsMax <= LIMITS.pipelinedWaitingMax,
  'a few connections do not use up the places of requests that wait',
);
assert(
  16 * LIMITS.headerBytesMax <= LIMITS.unfinishedHeadsBytesMax,
  'a few long heads do not use up the room of those that are not complete',
);
assert(LIMITS.intakeQueueBytesMax <= LIMITS.intakeQueuesBytesMax, 'one queue fits into all of them');
assert(LIMITS.metadataAnswerMaxMs < LIMITS.requestIdKeptMs, 'outcomes outlive retries (R18)');
assert(
  LIMITS.commitGroupBytesMax <= LIMITS.overlayBytesMax &&
    LIMITS.overlayBytesMax + LIMITS.entryBytesMax < LIMITS.commitQueueBytesMax,
  'shards say busy before the store does',
);
assert(
  2 * LIMITS.coordinatorCallMaxMs < LIMITS.memberLeaseMs &&
    2 * LIMITS.coordinatorCallMaxMs < LIMITS.jobLeaseMs,
  'a lease outlives a call that failed and the next one',
);
/** Of one entry, for each thing that happens. */
const eventsBytes = LIMITS.eventBytesMax * EVENT_CONSUMERS.length;
assert(
  // Two keys, and 1 KiB for all else.
  2 * LIMITS.keyBytesMax + 1024 <= LIMITS.eventBytesMax,
  'an event has room for the keys of a rename',
);
assert(
  LIMITS.moveBytesMax + LIMITS.moveKeyBytesMax + 2 * LIMITS.moveKeysMax * eventsBytes < LIMITS.entryBytesMax,
  'a key moves in one entry, and what one step moves does',
);
// Keys stand in rows escaped, and in each of four; a row of versions is below one MiB.
assert(
  LIMITS.moveBytesMax + 1024 * 1024 + LIMITS.moveStepVersionsMax * 2 * (4 * LIMITS.keyBytesMax + 256) <
    LIMITS.entryBytesMax,
  'what one step moves of a key is one entry',
);
// Each piece of a version is a use in its row, which may move, and a link that ends. Rows have the key in theirs, escaped.
assert(
  LIMITS.deleteItemsMin *
    (512 * (LIMITS.manifestSegmentsInlineMax + LIMITS.appendCountMax) + 8 * LIMITS.keyBytesMax) <
    LIMITS.entryBytesMax,
  'the fewest items of a delete are one entry',
);
assert(
  2 * LIMITS.deleteBytesMax + LIMITS.deleteObjectsKeysMax * (8 * LIMITS.keyBytesMax + eventsBytes) <
    LIMITS.entryBytesMax,
  'what a delete takes is one entry',
);
assert(
  LIMITS.copiesSyncedMin <= LIMITS.copiesDefault,
  'what is acknowledged is no more than what is written',
);
assert(
  LIMITS.lastCopyPatienceMs < LIMITS.copyLateMs && LIMITS.copyLateMs < LIMITS.chunkRequestMaxMs,
  'a late copy is written elsewhere before its request ends',
);
assert(
  LIMITS.copySilentMaxMs >= 3 * LIMITS.copyLateMs,
  'two disks of a node are late when it counts as silent',
);
assert(
  [LIMITS.copyLateMs, LIMITS.copySilentMaxMs, LIMITS.copiesAttemptMaxMs].every(
    (ms) => ms % LIMITS.copyLookMs === 0,
  ),
  'what is counted in looks is whole looks',
);
assert(
  LIMITS.copySilentMaxMs < LIMITS.chunkRequestMaxMs,
  'a disk that hangs is given up before its request ends',
);
assert(LIMITS.chunkWaitLeastMs > LIMITS.copyLateMs, 'a stand-in for a late copy has time');
assert(
  LIMITS.chunkRequestMaxMs < LIMITS.copiesAttemptMaxMs,
  'an attempt outlives the requests it began with',
);
assert(
  LIMITS.chunkInspectMaxMs < LIMITS.chunkRequestMaxMs && LIMITS.chunkRequestMaxMs < LIMITS.chunkPullMaxMs,
  'a disk answers before it is waited for no more',
);
assert(LIMITS.chunkBytesMax < LIMITS.chunkVerifyBytesMax, 'a chunk can be verified');
assert(
  LIMITS.chunkInspectMaxMs + LIMITS.chunkReadMaxMs < LIMITS.chunkRequestMaxMs,
  'who asks for a chunk that cannot be read hears so',
);
assert(
  // libuv has four threads by default (UV_THREADPOOL_SIZE).
  LIMITS.chunkReadsUnansweredMax <= LIMITS.chunkReadsAtOnceMax && LIMITS.chunkReadsAtOnceMax < 4,
  'a drive that hangs keeps not all threads',
);
assert(LIMITS.unreadChunkAgainMs > 2 * LIMITS.chunkReadMaxMs, 'what is tried again has had its time');
assert(LIMITS.chunkBatchBytesMax < LIMITS.chunkOrdersBytesMax, 'an order can be taken');
assert(LIMITS.chunkBatchIdsMax < LIMITS.chunkScanRowsMax, 'a page of chunks is found in one walk');
assert(
  // Numbers of disks have two bytes; the rest of the value is for the disks. In base64.
  (LIMITS.partitionCount * (3 + 2 * 2 * LIMITS.previousOwnersMax + 2 * 5) + 34 * LIMITS.retiredDisksMax) *
    (4 / 3) <
    LIMITS.coordinatorValueBytesMax / 2,
  'half of the placement map is left for its disks, whatever has changed (R34)',
);
assert(LIMITS.lateCopiesBytesMax >= LIMITS.chunkBytesMax, 'one late copy may always go on');
assert(
  LIMITS.chunkConnectionsPerNode < LIMITS.chunkServerConnectionsMax,
  'one client keeps no other from a node',
);
// Monotonic clocks drift by less than 5 % each (protocol 1.1).
assert(
  LIMITS.identityServeMs * 1.05 < LIMITS.gatewayTrackedMs * 0.95,
  'a gateway that renews nothing any more has stopped to serve from its cache (R46)',
);
assert(LIMITS.identityAskMs < LIMITS.revocationWaitMaxMs, 'gateways ask while a revocation waits for them');
assert(LIMITS.chunkBytesMax % LIMITS.sealBlockBytes === 0, 'chunks hold whole pieces');
assert(LIMITS.manifestSegmentsInlineMax <= LIMITS.manifestPageSegments, 'a page holds what a version may');
assert(
  LIMITS.putBytesMax <= LIMITS.partBytesMax && LIMITS.partBytesMax <= LIMITS.objectBytesMax,
  'sizes nest',
);
assert(
  LIMITS.partSegmentsMax >= LIMITS.partBytesMax / LIMITS.partBytesMin + 2,
  'the largest range of an object of the smallest parts is one part',
);
assert(LIMITS.entryBytesMax < LIMITS.rpcMessageBytesMax, 'an entry travels in one message');
assert(LIMITS.ticketRefreshMs * 2 < LIMITS.ticketAgeMaxMs, 'the ticket of an idle connection is good (R48)');
assert(
  LIMITS.shardQueueMax < LIMITS.callsInFlightMax,
  'a shard says busy for itself before its node does for all',
);
// What a Complete reads of its parts it writes again as a manifest, and a little more.
assert(2 * LIMITS.uploadPartsBytesMax <= LIMITS.entryBytesMax, 'a Complete is one entry');
// Each piece of a composition is a use in a page, a link and the row of its blob.
assert(2 * 512 * LIMITS.composeSegmentsMax <= LIMITS.entryBytesMax, 'a composition is one entry');
assert(
  // A Component with the longest key, of three-byte characters as references, a version id and two ETags.
  LIMITS.composeOriginalsMax * (8 * LIMITS.keyBytesMax) <= LIMITS.composeBodyBytesMax,
  'a request for the largest composition fits',
);
assert(LIMITS.bodiesPerCallBytesMax <= LIMITS.sealBlockBytes, 'bodies of one call are one piece');
assert(
  LIMITS.refusedBodyDrainBytesMax >= 2 * LIMITS.completeBodyBytesMax,
  'who sends a document that is too long by little reads why: a connection that is closed on a sender may lose the answer',
);
assert(
  LIMITS.moveKeysBesideOthersMax <= LIMITS.moveKeysMax,
  'a small step of a rename is no larger than others',
);
assert(
  LIMITS.moveStepBytesMax <= LIMITS.moveBytesMax,
  'what is found for a step is no more than it may move',
);
// Each segment is a use, too; a key is in the rows of its versions four times.
assert(
  512 * (LIMITS.manifestSegmentsInlineMax + LIMITS.appendCountMax) + 8 * LIMITS.keyBytesMax <
    LIMITS.moveBytesMax,
  'a version of one key is never too much for a step of a rename',
);
assert(
  Number.isInteger(Math.log2(LIMITS.cachedRowsMax)),
  'the place of a row in memory is some bits of a hash (metadata/engine/cached-rows.ts)',
);
