// Every number of the contract and of our own bounds, in one place; how they relate is in limit-relations.ts.
// Settings that an operator may change are in config/schema.ts; their bounds refer to this file.
import { COMPOSITION_LIMITS } from './composition-limits.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;
const TiB = 1024 * GiB;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const LIMITS = {
  /** Bodies from this size on are compared with quotas before they are taken in, bytes. */
  quotaCheckBytesMin: 8 * MiB,
  // Contract: service 8, s3-behaviour "Sizes", AWS "Amazon S3 multipart upload limits".
  bucketsPerAccountDefault: 1000,
  /** As AWS has it of a user: enough to exchange one for another. */
  accessKeysPerAccountMax: 2,
  /** Mails that partners order, to one sub-account or address in an hour, and of one control account in a day. */
  mailsPerHourMax: 5,
  mailsPerDayMax: 500,
  /** Wrong signatures of an access key from one address, one after the other, before the two have to wait. */
  wrongSignaturesFree: 1000,
  /** Of an account, as AWS has it (AWS "IAM and AWS STS quotas"). */
  usersMax: 5000,
  groupsMax: 300,
  rolesMax: 1000,
  managedPoliciesMax: 1500,
  groupsPerUserMax: 10,
  accessKeysPerUserMax: 2,
  mfaDevicesMax: 5000,
  mfaDevicesPerOwnerMax: 8,
  /** Of a user, group or role. */
  attachedPoliciesMax: 10,
  policyVersionsMax: 5,
  /** Inline policies of one user, group or role with their white space, which AWS does not count. */
  inlineDocumentsCharactersMax: 64 * KiB,
  /** Of a user, role or policy. */
  identityTagsMax: 50,
  keyBytesMax: 1024,
  objectBytesMax: 5 * TiB,
  putBytesMax: 5 * GiB,
  partBytesMin: 5 * MiB,
  partBytesMax: 5 * GiB,
  partCountMax: 10_000,
  userMetadataBytesMax: 2 * KiB,
  tagsMax: 10,
  /** UTF-16 units. */
  tagKeyUnitsMax: 128,
  tagValueUnitsMax: 256,
  deleteObjectsKeysMax: 1000,
  lifecycleRulesMax: 1000,
  listPageMax: 1000,
  presignedExpiryMaxSeconds: 7 * 24 * 3600,
  /** Ways of writing host and path that one signature is compared with, at most. */
  signatureSpellingsMax: 96,
  clockSkewMaxMs: 15 * MINUTE,
  completedUploadKeptMs: 7 * DAY,
  /** extensions 2.1, as AWS RenameObject has its own: printable characters. */
  idempotencyTokenCharactersMax: 64,
  idempotencyTokenKeptMs: 24 * HOUR,

  // Requests.
  /** Bytes of a bucket's name (AWS "Bucket naming rules"). */
  bucketNameCharactersMax: 63,
  /** Of one request. */
  queryParametersMax: 1024,
  headerBytesMax: 32 * KiB,
  /** 2 KiB of metadata may be 700 headers. */
  headerLinesMax: 768,
  /** What errors repeat of a request: each field, and all together as they stand in the document. */
  echoedFieldCharactersMax: 4 * KiB,
  echoedCharactersMax: 8 * KiB,
  /** What log lines repeat, each field. */
  loggedFieldCharactersMax: 1 * KiB,
  xmlBodyBytesMax: 1 * MiB,
  completeBodyBytesMax: 4 * MiB,
  deleteObjectsBodyBytesMax: 2 * MiB,
  /** Of a bucket's policy, without white space between tokens, bytes ("Bucket policies"). */
  bucketPolicyBytesMax: 20_480,
  /** Of a bucket's lifecycle rules: 1000 rules have room for 500 bytes each. */
  lifecycleBodyBytesMax: 512 * KiB,
  xmlDepthMax: 16,
  /** Elements, attributes, comments and the like: the longest part list has 50,000. */
  xmlNodesMax: 100_000,
  /** Of one element. */
  xmlAttributesMax: 32,
  /** UTF-16 units of one element's text, of an attribute, and of white space between tags. */
  xmlTextUnitsMax: 64 * KiB,
  /** Longer documents are read only if what their head says does not refuse the request. */
  shortDocumentBytesMax: 64 * KiB,
  /** Memory that a document has until its operation is over, of its size: its bytes, its text and its elements. */
  documentMemoryFactor: 4,
  /**
   * Memory of one entry of a listing, at most: a key of 1 KiB as it is read, percent-encoded, in the document, and what of
   * them the collector has not seen yet.
   */
  listedKeyMemoryBytes: 16 * KiB,
  /** Bodies of the operator API, IAM and STS whose signature needs all of them, together: the next ones are refused. */
  unverifiedBodiesBytesMax: 1 * MiB,
  /** Bodies of /api/v1, IAM and STS of senders that are known, together, until they are answered: the next ones are refused. */
  provedBodiesBytesMax: 16 * MiB,
  /** Of a JSON body of the operator API or /api/v1: what has more could keep the thread while it is parsed. */
  jsonValuesMax: 5000,
  /** From the head of a request of the operator API to the last byte of its body. */
  operatorBodyMaxMs: 5 * SECOND,
  /** Of a form of IAM or STS: the longest policy, encoded, fits. */
  identityBodyBytesMax: 256 * KiB,
  identityBodyMaxMs: 5 * SECOND,
  /** Counted in the memory for bodies while a page of a list of IAM is made: its rows, its texts, and what is written of them. */
  identityPageMemoryBytes: 4 * MiB,
  /** The same while an object or part is copied, and of each component that is composed: it may have a thousand pieces of its own. */
  sourceMemoryBytes: 512 * KiB,
  /** The same of an answer of /api/v1 to a GET, at least. */
  managementPageMemoryBytes: 4 * MiB,
  /** Of each record that its page may have: contacts as long as they may be, and the text of them. */
  managementRecordMemoryBytes: 24 * KiB,
  /** Of a form: all that stands before its file (AWS), and what may stand behind it. */
  formFieldsBytesMax: 20 * KiB,
  formRestBytesMax: 1 * MiB,
  /** From the head of a form to its file. */
  formFieldsMaxMs: 30 * SECOND,
  /** Fields of forms whose senders are not known yet, together: the next ones are refused. */
  unverifiedFormsBytesMax: 16 * MiB,
  /** Passwords that wait to be hashed or compared, one of them at a time. */
  passwordHashesWaitingMax: 64,
  chunkHeaderBytesMax: 8 * KiB,
  signedChunkBytesMax: 64 * MiB,
  /** Of aws-chunked bodies: chunks of less than so many bytes, and how many of them a body may have. */
  tinyChunkBytes: 64,
  tinyChunksMax: 16_384,
  trailerBytesMax: 8 * KiB,
  /** Of a refused upload: a part as clients make them (10 MiB) fits, so that one that sends all of it first reads its answer. */
  refusedBodyDrainBytesMax: 16 * MiB,
  /** How long a refused client that goes on sending is listened to, and one that does not. */
  refusedBodyDrainMaxMs: 30 * SECOND,
  refusedBodyIdleMaxMs: 10 * SECOND,
  requestAgeMaxMs: 23 * HOUR,
  slowAnswerAfterMs: 5 * SECOND,

  // Overload: from where on requests are answered 503 SlowDown (docs/limits.md).
  connectionsMax: 10_000,
  /** The same over TLS, of which each keeps some 150 KiB until it closes: 10,000 would take 1.5 GiB. */
  tlsConnectionsMax: 4000,
  /** Connections beyond them, whose first request is still answered before they are closed. */
  refusedConnectionsMax: 1000,
  /** Requests on one connection that wait for the answers to those before them. */
  pipelinedRequestsMax: 64,
  /** The same of all connections. */
  pipelinedWaitingMax: 4096,
  /** Memory of heads that have begun and are not complete, of all connections. */
  unfinishedHeadsBytesMax: 32 * MiB,
  requestsInFlightMax: 2048,
  /** Of one turn of the event loop, for requests to start in; the others wait for the next turns. */
  requestStartsTurnMs: 6,
  /** Answers of all connections that clients have not taken yet. */
  unsentBytesMax: 64 * MiB,
  /** Of one account, however much others have left: nobody is refused for less. */
  unsentAtLeastBytes: 4 * MiB,
  /** Bytes of bodies that have arrived on one connection and wait for their reader. */
  intakeQueueBytesMax: 256 * KiB,
  /** The same of all connections: beyond it each keeps what one read of its socket gave. */
  intakeQueuesBytesMax: 16 * MiB,
  /** What a socket or request keeps unread before it stops reading; one read gives up to 64 KiB more. */
  streamBufferBytes: 16 * KiB,
  /** Of the memory for bodies: so many times this, so many bodies at once. */
  bodyShareBytesMin: 256 * KiB,
  /**
   * Of all that is shared by tenants (docs/limits.md): an account may hold so many times what is free, a key of it so many
   * times what is free of the account's part, and an address so many times what is free of the key's part
   * (base/async/fair-share.ts).
   */
  accountShareWeight: 8,
  signerShareWeight: 9,
  addressShareWeight: 9,
  /** What these come to for an address that has proved nothing: it may hold so many times what is free. So may each where only addresses share. */
  strangerShareWeight: 4,
  /** Bodies that wait for memory before their first byte is taken. */
  bodiesWaitingMax: 256,

  // Data path.
  manifestSegmentsInlineMax: 64,
  manifestPageSegments: 256,
  partSegmentsMax: 1100,
  uploadPartsBytesMax: 8 * MiB,
  chunkBytesMin: 64 * KiB,
  chunkBytesMax: 4 * MiB,
  /** Bodies of at least so many bytes have larger chunks in a cluster. A range is read by seal blocks. */
  largeBodyBytesMin: 32 * MiB,
  /** So many times as large, up to chunkBytesMax. */
  largeChunkFactor: 4,
  sealBlockBytes: 256 * KiB,
  inlineBodyBytesMax: 256 * KiB,
  codecInlineBytesMax: 128 * KiB,
  chunksInFlightPerBody: 4,
  readAheadChunks: 4,
  chunkPutsBytesMax: 64 * MiB,
  chunkBuffersPooledBytesMax: 32 * MiB,
  bodyBufferWaitMaxMs: 15 * SECOND,
  /** A reader whose client has taken nothing for so long gives back what it can fetch again when others wait. */
  bodyIdleMs: 1 * SECOND,
  bodyStalledMs: 5 * SECOND,
  /** A reader whose client took what it was given within so long is given several pieces at once. */
  quickReadMs: 100,
  piecesGivenMax: 4,
  /** An idle shard writes its time half as often at the least, so ids are older than their minting by twice this at most. */
  shardTimeKeptMs: 20 * MINUTE,
  linkAttemptsMax: 4,

  /** Rows of metadata that are kept in memory, of one database. */
  cachedRowsMax: 8192,
  cachedRowBytesMax: 2 * KiB,
  /** More rows at once are read on another thread, and by the store alone. */
  syncReadKeysMax: 256,
  /** And more bytes, one row more at the most. */
  syncReadBytesMax: 512 * KiB,

  /** Keys of objects that were used last, of one gateway. */
  openedKeysMax: 4096,
  ...COMPOSITION_LIMITS,

  // Deletes of many versions.
  /** Items that one entry takes, whatever they are. */
  deleteItemsMin: 4,
  /** Rows of versions that one entry deletes, where it is of more items: of those of many pieces some 40 ms. */
  deleteBytesMax: 1 * MiB,
  /** Keys that one entry of DeleteObjects deletes: 1,000 of 900 bytes in one keep the thread for up to 130 ms. */
  deleteKeysBytesMax: 256 * KiB,
  /** The same in a bucket with versions, where a key costs twice as much: some 15 ms. */
  deleteVersionedKeysMax: 500,

  // Renames (MOVE).
  /** Keys of one entry. */
  moveKeysMax: 500,
  /** The same where clients wait beside it: what one of them waits for is short. */
  moveKeysBesideOthersMax: 64,
  /** Of one key, which moves in one entry: some 20 ms of the thread; with more it moves in several. */
  moveVersionsMax: 1000,
  /** Versions of one of those entries, and where clients wait beside it. */
  moveStepVersionsMax: 1000,
  moveStepVersionsBesideOthersMax: 250,
  /** Bytes of versions that one entry moves; one key at least. */
  moveBytesMax: 8 * MiB,
  /** With which a step of a prefix is full. One key at least. Of one key, what the keys of its versions' rows take of an entry. */
  moveStepBytesMax: 1 * MiB,
  /** Bytes of one key's versions below the latest, which move in one entry; with more they move in several. */
  moveKeyBytesMax: 8 * MiB,
  /**
   * Of one key that moves in several entries, where one of its versions may not move: all are looked at before the first one does.
   * With more it is refused.
   */
  moveCheckedVersionsMax: 10_000,
  moveCheckedBytesMax: 32 * MiB,
  /** Errors of a prefix rename that are stored for repeated requests. */
  moveErrorsKeptMax: 1000,
  moveErrorsKeptBytesMax: 256 * KiB,
  /** The same of one that a token leads to: it is kept for a day. How many there were is kept of each. */
  moveErrorsUnderTokenMax: 100,
  moveErrorsUnderTokenBytesMax: 32 * KiB,

  // What shards keep of requests that are over: outcomes under tokens, and jobs of prefix renames.
  /** Under tokens, of one shard, and of them those of one account; what would be more is refused. */
  storedOutcomesBytesMax: 1 * GiB,
  storedOutcomesPerAccountBytesMax: 256 * MiB,
  /** The same of jobs without a token, which go sooner: bounded by themselves, so that neither takes the other's room. */
  tokenlessOutcomesBytesMax: 256 * MiB,
  tokenlessOutcomesPerAccountBytesMax: 32 * MiB,
  /** Of either, which an account may have where the others have filled the shard. */
  outcomesAtLeastBytes: 4 * MiB,

  // Jobs that shards keep (prefix renames, emptying of deleted buckets).
  jobKeptMs: 25 * HOUR,
  /** After its end, for a job without a token: an answer may still use it. */
  tokenlessJobKeptMs: 15 * MINUTE,
  /** Of those behind it, the newest of a shard, which the operator is shown: that many, and no larger together. */
  jobsShownMax: 1000,
  jobsShownBytesMax: 8 * MiB,
  /** A job whose driver has been silent for this long is continued by the shard's own node, or by a request for it. */
  jobStallTimeoutMs: 3 * SECOND,
  /** How often the driver of a prefix rename reports to its shard while it makes no step. */
  jobHoldMs: 1 * SECOND,
  /** A driver whose client has taken nothing for so long says so no more: others drive the job on. */
  jobStalledMs: 15 * SECOND,
  /** How often a shard's own node looks for jobs that nobody drives. */
  jobLookMs: 1500,
  /** Prefix renames under way at once in one shard, and of them those of one account, so that others get their turn. */
  jobsMax: 64,
  jobsPerAccountMax: 16,
  /** The same with the only ones of accounts that have come when others had filled the shard. */
  jobsWithOnlyOnesMax: 128,

  // Events that wait for their consumers.
  /** Of one shard and consumer; beyond it the oldest go. */
  eventsKeptMax: 100_000,
  /** Those that one command removes when their consumer has taken them. */
  eventsTakenMax: 5000,
  /** Of one page. */
  eventsPageMax: 1000,
  /** Of one event: two keys, and what goes around them. */
  eventBytesMax: 3 * KiB,

  // Shards and the engine.
  /** Rows that a query has in memory at once, of each table or region that it goes through. */
  queryPageBytesMax: 2 * MiB,
  shardCountDefault: 64,
  shardCountMax: 4096,
  overlayBytesMax: 64 * MiB,
  entryBytesMax: 48 * MiB,
  shardQueueMax: 4096,
  commitGroupBytesMax: 8 * MiB,
  /** One commit at least. What a group holds is encoded in one turn, and leaves the overlays in one: some 10 ms each. */
  commitGroupRowsMax: 4096,
  commitQueueBytesMax: 128 * MiB,
  kvKeyBytesMax: 4096,
  requestIdKeptMs: 15 * MINUTE,
  witnessSyncMs: 1 * SECOND,
  /** A store of a process that ends is left as it is when it takes longer: what was answered is synced. */
  storeCloseMaxMs: 15 * SECOND,
  /** How long a gateway sends a call again for a shard that does not answer. */
  metadataPatienceMs: 7.5 * SECOND,
  /** When it answers 503. No node evaluates a call that is older than this. */
  metadataAnswerMaxMs: 9 * SECOND,
  /** Of one request: how long it waits for shards and for memory, all together, before it is answered 503. */
  requestWaitMaxMs: 9 * SECOND,
  /** Of one wait of a request that has waited for others that long. */
  requestWaitLeastMs: 1.5 * SECOND,

  // Blobs and links: R25, R28, R30, R31, R32.
  blobIdAgeMaxMs: 24 * HOUR,
  blobIdAheadMaxMs: 1 * HOUR,
  linkIdAgeMaxMs: 24 * HOUR,
  claimResolveAfterMs: 10 * MINUTE,
  readingGraceMs: 10 * MINUTE,
  readerRevalidateMs: 5 * MINUTE,
  sweepAfterMs: 24 * HOUR,
  /** A chunk that nothing leads to is damage from here on: a pass of the sweep has gone by since it might go. */
  orphanAfterMs: 27 * HOUR,

  /** A shard that does not answer the work of others rests: doubled from the first to the second. */
  shardRestMinMs: 1 * SECOND,
  shardRestMaxMs: 60 * SECOND,
  /** One that has not answered that work after so long is waited for no longer: the others have their turn. */
  shardLateMs: 2 * SECOND,

  // Chunks over machines: R34, R35, R37.
  /** Of the placement map: fixed, for chunks are found by it. */
  partitionCount: 4096,
  copiesDefault: 3,
  /** A chunk is stored once so many copies are synced, on as many nodes, where there are so many. */
  copiesSyncedMin: 2,
  lastCopyPatienceMs: 50,
  /** A copy that takes longer is written elsewhere too, while it goes on. */
  copyLateMs: 2 * SECOND,
  /** A disk, or node, that has been asked to write and has answered nothing of the kind for so long is waited for no more. */
  copySilentMaxMs: 6 * SECOND,
  /** How often the copies under way are looked at: those times are counted in looks. */
  copyLookMs: 250,
  /** What is left of a write when it has been answered, of all writes together. */
  lateCopiesBytesMax: 32 * MiB,
  copyReadHedgeMs: 150,
  /** Disks asked at once for a chunk that no owner has. */
  copySearchDisksMax: 8,
  copiesAttemptMaxMs: 15 * SECOND,
  /** A chunk of a request has so long at least, whatever the request has waited for before: for a late copy and a stand-in's. */
  chunkWaitLeastMs: 3 * SECOND,
  /** How long a read waits for the disks that may have its chunk, before it is 503. */
  copyReadMaxMs: 9 * SECOND,
  /** A disk that failed is left alone for so long, and then tried by one request. */
  diskSuspectMs: 5 * SECOND,
  /** A disk that lets a drop wait for so long in vain is left out of drops for that long: the sweep finds what it kept. */
  dropSlowMs: 1 * SECOND,
  dropSuspectMs: 30 * SECOND,
  /** How long the answer to a failed write waits for the drop of what was stored of it, which goes on. */
  abandonWaitMaxMs: 1 * SECOND,
  /** Slow answers of a disk, one after the other, before it is left alone. */
  diskSlowAnswersMax: 3,
  /** Chunks that a disk could not read, none that it could between them, before it is left alone. */
  diskUnreadChunksMax: 3,
  /** Disks that take longer are left out of usage: a scrape of metrics waits for it. */
  usageAnswerMaxMs: 3 * SECOND,
  placementWaitMaxMs: 5 * SECOND,
  /** Of one partition, by changes that no audit has been through: then its owners stay until one has. */
  previousOwnersMax: 16,
  /** Removed disks that are remembered, so that they are not taken in again. */
  retiredDisksMax: 1000,

  // Repair entries, repair and audit: R36, R39.
  /** Ranges of one repair entry, which bounds its record; more become one. */
  repairRangesMax: 32,
  repairHoldersMax: 16,
  /** Repair entries, or rows of blobs, in one page of repair or audit. */
  repairPageMax: 200,
  /** Chunks that a repair has in hand at once. */
  repairChunksMax: 512,
  /** Copies that one metadata node has on their way at once: what clients notice of a repair. */
  repairPullsMax: 2,
  /** A disk that does not answer an order, or takes no copy, rests: doubled from the first to the second; a full one to the third. */
  diskRestMinMs: 1 * SECOND,
  diskRestMaxMs: 60 * SECOND,
  diskFullRestMaxMs: 10 * SECOND,

  // Requests between machines for chunks.
  chunkRequestMaxMs: 10 * SECOND,
  /** Of a whole disk. */
  chunkRecountMaxMs: 10 * MINUTE,
  /** Of a chunk that one disk fetches from another: its request, and what goes around it. */
  chunkPullMaxMs: 20 * SECOND,
  chunkConnectMaxMs: 2 * SECOND,
  chunkIdleMaxMs: 30 * SECOND,
  /** Of one client to one node; what is more waits. */
  chunkConnectionsPerNode: 32,
  chunkRequestsWaitingMax: 1024,
  chunkServerConnectionsMax: 1024,
  /** Of one disk. */
  chunkReadsInFlightMax: 64,
  /** Of one disk: bytes of questions and orders that are under way. */
  chunkOrdersBytesMax: 8 * MiB,
  chunkBatchIdsMax: 1000,
  /** What one request of verified chunks reads before it answers for those that it has; at least one. */
  chunkInspectIdsMax: 64,
  chunkInspectBytesMax: 16 * MiB,
  chunkInspectMaxMs: 3 * SECOND,
  /** Of one disk: chunks that are read at once to be verified. */
  chunkVerifyBytesMax: 16 * MiB,
  /** Of one chunk's bytes, from when the drive is asked: then they could not be read. */
  chunkReadMaxMs: 5 * SECOND,
  /** Of one disk: reads that its drive is asked for at once, fewer than there are threads. */
  chunkReadsAtOnceMax: 3,
  /** A drive that has left so many unanswered is asked for no more until it answers one. */
  chunkReadsUnansweredMax: 2,
  /** When it has done so for so long it has failed. */
  chunkReadsHangMs: 60 * SECOND,
  /** Of one disk: chunks that could not be read and are remembered; and when such a one is tried again. */
  unreadChunksMax: 256,
  /** Of the disk of a single node: chunks that are known to be damaged or missing, and are remembered. */
  lostChunksMax: 1000,
  unreadChunkAgainMs: 60 * SECOND,
  /** Of one disk: chunks that it fetches from others at once. */
  chunkPullsMax: 8,
  /** Rows that a disk walks in one call. */
  chunkScanRowsMax: 10_000,
  chunkBatchBytesMax: 256 * KiB,
  peerHeaderBytesMax: 4 * KiB,
  /** By the wall clocks of both, which are one: proofs by the secret are for loopback only. */
  peerProofAgeMaxMs: 60 * SECOND,
  // Revocation (R46).
  /** How often a gateway asks for changes of identities. */
  identityAskMs: 1 * SECOND,
  /** How long cached identities serve after the sending of the last question that was answered. */
  identityServeMs: 9 * SECOND,
  /** For how long a gateway that has asked is believed to serve from its cache. */
  gatewayTrackedMs: 10 * SECOND,
  /** On the shard's primary; what is left of `gatewayTrackedMs` waits on the gateway that gave the command (I14). */
  revocationWaitMaxMs: 5 * SECOND,
  /** A gateway with an older position must start again. */
  identityChangesKept: 1000,
  /** Gateways that a primary knows by name. */
  gatewaysTrackedMax: 4096,

  // Disks: what is refused first when one fills up (R20).
  diskReserveShare: 0.02,
  diskReserveBytesMin: 1 * GiB,
  diskReserveBytesMax: 8 * GiB,
  /** What grows and yet is wanted on a full disk (delete markers, policies) leaves so much of the reserve. */
  diskReserveKeptShare: 1 / 2,
  /** Of small file systems, which the least reserve would fill. */
  diskReserveShareMax: 1 / 3,
  /** With less than this many reserves left an operator is warned. */
  lowSpaceAlarmFactor: 2,

  // Between processes.
  /** Of one call, reply or replica message: a whole entry fits in, with what goes around it. */
  rpcMessageBytesMax: 64 * MiB,
  /** What one frame gathers; what is larger travels in one of its own. */
  rpcFrameBytes: 256 * KiB,
  /** Of messages that one node has not taken yet; what is sent beyond it is dropped. */
  peerQueueBytesMax: 64 * MiB,
  /** Of calls that one node has not taken yet; further ones are answered busy. */
  callQueueBytesMax: 64 * MiB,
  /** Of replies that one caller has not taken yet: from there on nothing more is read from it. */
  repliesUnsentBytesMax: 16 * MiB,
  /** Calls that a node has taken and not answered; further ones are answered busy. */
  callsInFlightMax: 16_384,
  callsInFlightBytesMax: 256 * MiB,
  /** Of questions to another thread that wait for their answers; further ones are answered busy. */
  lineQuestionsBytesMax: 128 * MiB,
  /** R48: older, and a call is refused unevaluated. */
  ticketAgeMaxMs: 5 * SECOND,
  ticketRefreshMs: 1 * SECOND,
  rpcConnectMaxMs: 3 * SECOND,
  /** Between two attempts to reach a node. */
  rpcBackoffMinMs: 50,
  rpcBackoffMaxMs: 1 * SECOND,
  /** A connection on which nothing came is asked for a sign of life, and given up without one. */
  rpcKeepaliveMs: 2 * SECOND,
  /** The same at the end that was connected to: only what a caller has left behind waits for it. */
  rpcServerKeepaliveMs: 10 * SECOND,
  rpcKeepaliveTimeoutMs: 3 * SECOND,
  /** A connection without a stream: strangers, and members that have given up. */
  rpcIdleMaxMs: 30 * SECOND,
  rpcStreamsPerConnectionMax: 8,
  /** Of one node; strangers must not use up the files that a process may have open. */
  rpcConnectionsMax: 1024,
  /** How long replies that are under way are waited for when a node ends. */
  rpcDrainMaxMs: 2 * SECOND,
  clusterSecretBytesMin: 32,
  credentialsReloadMs: 10 * SECOND,
  // Between threads of one process.
  /** How often the main thread asks each of its gateway threads how it stands. */
  threadPulseMs: 1 * SECOND,
  /** Pulses in a row that a thread may leave unanswered: then the process ends, to be started anew. */
  threadPulsesMissedMax: 60,
  /** Beyond the drain of a gateway: how long a thread that ends is waited for. */
  threadEndMaxMs: 10 * SECOND,
  gatewayThreadsMax: 16,
  metadataThreadsMax: 16,
  /** Of memory.bodyBuffer, for each gateway thread. */
  threadBodyBufferBytesMin: 16 * MiB,
  // Coordination: what is asked of etcd, or of what stands for it.
  /** One call, all its tries of reads together. */
  coordinatorCallMaxMs: 1500,
  /** Between tries of what goes on by itself: doubled from the first to the second. */
  coordinatorRetryMinMs: 100,
  coordinatorRetryMaxMs: 2 * SECOND,
  /** A watch may fall silent without an error: all is read again after so long. */
  coordinatorRereadMs: 30 * SECOND,
  memberLeaseMs: 10 * SECOND,
  jobLeaseMs: 15 * SECOND,
  /** Below etcd's own bound of a request, 1.5 MiB. */
  coordinatorValueBytesMax: 1 * MiB,

  // Health and metrics of nodes, for anybody who reaches their address.
  healthConnectionsMax: 64,
  /** Until the head of a question has come. */
  healthHeaderMaxMs: 2 * SECOND,
  /** Until all of it has, and again until its answer is taken. */
  healthRequestMaxMs: 10 * SECOND,
  /** One scrape answers all callers within this time. */
  metricsKeptMs: 1 * SECOND,
  /** Answers of a gateway's metrics that are under way. */
  metricsAnswersMax: 64,
  /** Answers under way of pages that anybody may read: the documents of /api/v1. */
  publicAnswersBytesMax: 16 * MiB,

  /** One look at the disks answers all who ask for the room of the store (SOSAPI). */
  capacityKeptMs: 10 * SECOND,

  // How late the event loop of a process may be.
  /** How often it is measured; reports cover the last two measurements. */
  loopLookMs: 5 * SECOND,
  /** Later than that is logged, and an alarm for so long where it happens again. */
  loopHeldMs: 1 * SECOND,
  loopHeldShownMs: 5 * MINUTE,

  drainMaxMs: 30 * SECOND,
} as const;
