// Metrics as Prometheus reads them. The table below is the whole list of what the server measures: a name or label
// that is not in it is a mistake of ours, said once in the log and otherwise ignored. Labels come from closed sets
// only: never a bucket, a key or an account. What each figure means stands in its help text.
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { must } from '../../base/assert.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { CLUSTER_METRICS } from './cluster-metrics.ts';

/** Metrics of a thread, as data: those of several are added up. */
export type MetricFigures = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

interface MetricRow {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels?: readonly string[];
  readonly buckets?: readonly number[];
  /** Of a gauge that several threads have: which of theirs is shown. Absent: their sum. */
  readonly ofThreads?: 'max' | 'min';
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export const METRICS = {
  holdfast_s3_requests_total: {
    kind: 'counter',
    help: 'S3 requests answered, by operation and by the class of their outcome.',
    labels: ['operation', 'outcome'],
  },
  holdfast_s3_request_duration_seconds: {
    kind: 'histogram',
    help: 'From the head of a request to the last byte of its answer.',
    labels: ['operation', 'outcome'],
    buckets: SECONDS,
  },
  holdfast_s3_signatures_total: {
    kind: 'counter',
    help: 'S3 requests answered, by the version of their signature: SigV2, SigV4, or none that was good.',
    labels: ['version'],
  },
  holdfast_s3_received_bytes_total: {
    kind: 'counter',
    help: 'Bytes of request bodies.',
    labels: ['operation'],
  },
  holdfast_s3_sent_bytes_total: { kind: 'counter', help: 'Bytes of answer bodies.', labels: ['operation'] },
  holdfast_traffic_flushed_timestamp_seconds: {
    kind: 'gauge',
    help: 'When all that requests count for was written down last (metering.flushInterval).',
    ofThreads: 'min',
  },
  holdfast_traffic_lost_calls_total: {
    kind: 'counter',
    help: 'Requests that are in no usage record, because a shard did not answer for ten minutes, or of too many buckets.',
  },
  holdfast_usage_waiting_days: {
    kind: 'gauge',
    help: 'Days (UTC) that are over and not closed yet, of the shard that is furthest behind: no record shows them.',
  },
  holdfast_requests_in_flight: { kind: 'gauge', help: 'Requests being served now, this one included.' },
  holdfast_requests_shed_total: {
    kind: 'counter',
    help: 'Requests refused for want of room, by what there was too much of: connections, requests, unsent answers (answers), bodies that wait for memory or are read whole (bodies), requests whose senders are not known (unproved), stored outcomes of earlier requests (kept); and whose share was used up: that of the tenant who asked (tenant), or what there is for everybody (all).',
    labels: ['reason', 'share'],
  },
  holdfast_connections_yielded_total: {
    kind: 'counter',
    help: 'Idle connections that were closed to make room for others: of the tenant that holds most.',
  },
  holdfast_event_loop_delay_seconds: {
    kind: 'gauge',
    help: 'How late the event loop was in the last 5 to 10 s, and everything with it that this process does: the longest delay (max), and what 99 of 100 looks stayed below (p99).',
    labels: ['statistic'],
    ofThreads: 'max',
  },
  holdfast_body_buffer_bytes: { kind: 'gauge', help: 'Memory that bodies in flight hold now.' },
  holdfast_bodies_waiting: { kind: 'gauge', help: 'Bodies that wait for memory now.' },
  holdfast_body_buffer_bytes_max: { kind: 'gauge', help: 'Memory that bodies in flight may hold.' },
  holdfast_kv_commit_group_size: {
    kind: 'histogram',
    help: 'Commits that shared one synced write.',
    labels: ['store'],
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  },
  holdfast_kv_commit_duration_seconds: {
    kind: 'histogram',
    help: 'Of one synced write, from its hand-over to the committer thread.',
    labels: ['store'],
    buckets: SECONDS,
  },
  holdfast_kv_commit_bytes_total: { kind: 'counter', help: 'Bytes of synced writes.', labels: ['store'] },
  holdfast_rpc_frames_total: {
    kind: 'counter',
    help: 'Frames sent to other nodes, by what they carry: calls, replies, messages between replicas.',
    labels: ['kind'],
  },
  holdfast_rpc_received_frames_total: {
    kind: 'counter',
    help: 'Frames that came from other nodes, by what they carry.',
    labels: ['kind'],
  },
  holdfast_rpc_dropped_messages_total: {
    kind: 'counter',
    help: 'Messages between replicas that were not sent: the node is unreachable, its queue is full, or the message is too large.',
    labels: ['reason'],
  },
  holdfast_rpc_refused_total: {
    kind: 'counter',
    help: 'Streams that were refused because their caller is no member of the cluster, or means another node.',
  },
  holdfast_repair_entries: {
    kind: 'gauge',
    help: 'Pieces of data with a chunk that is not on all of its disks, of the shards that this node leads, by the copies of the chunk that has fewest; unknown: to be looked at.',
    labels: ['copies'],
  },
  holdfast_chunks_to_repair: {
    kind: 'gauge',
    help: 'Chunks that wait for repair, likewise.',
    labels: ['copies'],
  },
  holdfast_repair_left_seconds: {
    kind: 'gauge',
    help: 'How long the repair of what waits will take at the pace of the last minutes; infinite while nothing gets on.',
  },
  holdfast_repair_copies_total: { kind: 'counter', help: 'Copies of chunks that were made by repair.' },
  holdfast_repair_bytes_total: { kind: 'counter', help: 'Bytes of these copies.' },
  holdfast_repair_dropped_copies_total: {
    kind: 'counter',
    help: 'Copies that were dropped because they lay elsewhere than they should, all others being proven.',
  },
  holdfast_lost_chunks: {
    kind: 'gauge',
    help: 'Chunks of live data that no disk has: data is lost unless a disk comes back. On a single node, which has no other copies: those known to be damaged or missing.',
  },
  holdfast_lost_chunks_found_total: {
    kind: 'counter',
    help: 'How often a repair has found a chunk on no disk; each time it looks. On a single node: chunks that were found missing, by readers and by fsck, each once.',
  },
  holdfast_audited_chunks_total: {
    kind: 'counter',
    help: 'Chunks of which it was looked whether they are on their disks.',
  },
  holdfast_damaged_chunks_found_total: {
    kind: 'counter',
    help: 'Copies that a disk has found damaged, or cannot read, of data that lives. On a single node: chunks that were found damaged, by readers, scrub and fsck, each once.',
  },
  holdfast_damaged_chunks_repaired_total: {
    kind: 'counter',
    help: 'Of these, those that were replaced and removed.',
  },
  holdfast_orphan_chunks_dropped_total: {
    kind: 'counter',
    help: 'Copies of chunks that no commit can claim any more, dropped by the sweep.',
  },
  holdfast_worker_failures_total: {
    kind: 'counter',
    help: 'Units of background work that failed and will be tried again.',
    labels: ['worker'],
  },
  holdfast_shards: {
    kind: 'gauge',
    help: 'Shards that a metadata node holds, by what it is to each: primary, follower, candidate, opening.',
    labels: ['role'],
  },
  holdfast_replicas: {
    kind: 'gauge',
    help: 'Replicas of a metadata node, by state: live, installing, quarantined, removed, superseded.',
    labels: ['state'],
  },
  holdfast_replica_lag_entries: {
    kind: 'gauge',
    help: 'Entries that all replicas of the shards led here lack, together.',
  },
  holdfast_replica_lag_entries_max: {
    kind: 'gauge',
    help: 'Entries that the replica furthest behind lacks, of those of the shards led here.',
  },
  holdfast_replicas_unheard: {
    kind: 'gauge',
    help: 'Replicas of shards led here that have not answered their primary.',
  },
  holdfast_replica_unapplied_entries: {
    kind: 'gauge',
    help: 'Entries in the logs of this node that its state does not show yet.',
  },
  holdfast_shards_behind_registry: {
    kind: 'gauge',
    help: 'Replicas that have seen more of etcd than it has now: it was set back.',
  },
  holdfast_shards_with_doubted_clock: {
    kind: 'gauge',
    help: 'Shards whose clock differs from that of a majority, as their primary here finds.',
  },
  holdfast_audited_placement_version: {
    kind: 'gauge',
    help: 'The placement map by which all shards led here have looked at where their chunks lie; 0: some have not yet; absent: none is led here.',
  },
  holdfast_audits_under_way: { kind: 'gauge', help: 'Shards led here that look at where their chunks lie.' },
  holdfast_placement_version: { kind: 'gauge', help: 'The newest placement map that this node knows.' },
  holdfast_placement_audit_from: {
    kind: 'gauge',
    help: 'The version of the last change of owners: audits of older ones do not count.',
  },
  holdfast_placement_pending_partitions: {
    kind: 'gauge',
    help: 'Partitions with former owners that may have chunks alone, because a change is not done.',
  },
  holdfast_placement_disks: {
    kind: 'gauge',
    help: 'Disks of the placement map: staying, draining (on request), absent (given up until they return).',
    labels: ['leave'],
  },
  holdfast_leaving_voters: {
    kind: 'gauge',
    help: 'Voters of shards on metadata nodes that drain (draining) or are removed (gone), which wait for others in their place. Only the node that places shards reports it.',
    labels: ['leave'],
  },
  holdfast_replica_events_total: {
    kind: 'counter',
    help: 'What has happened to replicas of this node: takeover, opened, stepped-down, log-cut, snapshot-sent, snapshot-taken, quarantined, swap-lost, voters-changed, request-found, removed, verified, state-differs.',
    labels: ['event'],
  },
  holdfast_objects: { kind: 'gauge', help: 'Current versions stored, without delete markers.' },
  holdfast_object_bytes: { kind: 'gauge', help: 'Bytes of all stored versions, as clients see them.' },
  holdfast_buckets: { kind: 'gauge', help: 'Buckets of all accounts.' },
  holdfast_jobs: {
    kind: 'gauge',
    help: 'Jobs that shards keep: under-way, and of those that are done or refused the newest, up to a day after their end.',
    labels: ['kind', 'state'],
  },
  holdfast_outcome_bytes: {
    kind: 'gauge',
    help: 'What shards led here keep of requests that are over, of those that answer: outcomes under tokens (tokens), and jobs of renamed prefixes without one (tokenless).',
    labels: ['of'],
  },
  holdfast_outcome_bytes_max: {
    kind: 'gauge',
    help: 'The same of the shard that keeps most of it (tokens, tokenless): requests are refused where it is as much as may be.',
    labels: ['of'],
  },
  holdfast_accounts_above_soft_quota: {
    kind: 'gauge',
    help: 'Accounts that hold more than a soft bound of their quota, as the primary of the system shard has found at its last look.',
  },
  holdfast_soft_quota_passed_total: {
    kind: 'counter',
    help: 'Times that a soft bound was passed, of an account or of a bucket.',
    labels: ['of'],
  },
  holdfast_lifecycle_examined_total: {
    kind: 'counter',
    help: 'Versions, delete markers and uploads that lifecycle has looked at.',
  },
  holdfast_lifecycle_actions_total: {
    kind: 'counter',
    help: 'What lifecycle has done: objects expired (expire), delete markers made (make-marker) and removed (remove-marker), noncurrent versions removed (remove-noncurrent), uploads aborted (abort-upload), versions removed whose compliance retention has ended (end-retention).',
    labels: ['action'],
  },
  holdfast_lifecycle_kept_total: {
    kind: 'counter',
    help: 'Versions that were due by lifecycle, and that retention or a hold keeps.',
  },
  holdfast_lifecycle_passes_total: {
    kind: 'counter',
    help: 'Passes of lifecycle through a bucket that have ended.',
  },
  holdfast_lifecycle_lag_seconds: {
    kind: 'gauge',
    help: 'For how long the bucket has been due whose lifecycle is most behind, of the shards that are led here; 0: none is.',
  },
  holdfast_chunks: { kind: 'gauge', help: 'Chunks stored.' },
  holdfast_chunk_bytes: { kind: 'gauge', help: 'Bytes of chunks stored.' },
  holdfast_pending_reclaim_bytes: {
    kind: 'gauge',
    help: 'Bytes of deleted data that the file system has not got back yet.',
  },
  holdfast_disk_free_bytes: {
    kind: 'gauge',
    help: 'Room left on the file system of the data folder, or of a disk of a storage node.',
    labels: ['disk'],
  },
  holdfast_disk_bytes: {
    kind: 'gauge',
    help: 'Size of the file system of the data folder, or of a disk of a storage node.',
    labels: ['disk'],
  },
  holdfast_disk_chunks: { kind: 'gauge', help: 'Chunks on a disk of a storage node.', labels: ['disk'] },
  holdfast_disk_chunk_bytes: { kind: 'gauge', help: 'Bytes of these chunks.', labels: ['disk'] },
  holdfast_disk_pending_reclaim_bytes: {
    kind: 'gauge',
    help: 'Bytes of dropped chunks that the file system of a disk has not got back yet.',
    labels: ['disk'],
  },
  holdfast_disk_quarantined_chunks: {
    kind: 'gauge',
    help: 'Quarantined chunks of a disk: damaged copies that are kept until there are enough intact ones.',
    labels: ['disk'],
  },
  holdfast_disk_damaged_chunks_total: {
    kind: 'counter',
    help: 'Copies on a disk that were found damaged, by any reader.',
    labels: ['disk'],
  },
  holdfast_disk_unread_chunks: {
    kind: 'gauge',
    help: 'Copies on a disk that could not be read again and again, and are not known to be lost.',
    labels: ['disk'],
  },
  holdfast_disk_unread_chunks_total: {
    kind: 'counter',
    help: 'How often a copy on a disk could not be read without being known to be lost, by any reader.',
    labels: ['disk'],
  },
  holdfast_disk_scrub_progress_ratio: {
    kind: 'gauge',
    help: 'How much of a disk the pass of its scrub has read; 1 between passes. Without a disk: of the data folder of a single node.',
    labels: ['disk'],
  },
  holdfast_disk_direct_writes: {
    kind: 'gauge',
    help: '1 where large chunks are written past the page cache, 0 where the file system cannot do that; absent where they lie in the database.',
    labels: ['disk'],
  },
  holdfast_disk_scrub_found_chunks: {
    kind: 'gauge',
    help: 'Damaged copies that this pass, or the last one, has found.',
    labels: ['disk'],
  },
  holdfast_disk_scrub_ended_timestamp_seconds: {
    kind: 'gauge',
    help: 'When the last pass of the scrub of a disk ended, in seconds since 1970.',
    labels: ['disk'],
  },
  ...CLUSTER_METRICS,
} as const satisfies Readonly<Record<string, MetricRow>>;

export interface PromTelemetry extends TelemetryPort {
  /** Adds a function that brings gauges up to date before each scrape. */
  onScrape(collect: () => Promise<void>): void;
  /** Adds metrics of another thread, which are asked for at each scrape. */
  addThreads(read: () => Promise<readonly MetricFigures[]>): void;
  scrape(): Promise<{ contentType: string; text: string }>;
  /** What a scrape would show of this thread alone. */
  figures(): Promise<MetricFigures>;
}

type Labels = Readonly<Record<string, string>>;

/** What was counted since the last scrape: the library is slow to find a counter by its labels. */
interface Count {
  readonly metric: Counter;
  readonly labels: Labels;
  pending: number;
}

/** What a gauge was set to since the last scrape, likewise. */
interface Gauged {
  readonly metric: Gauge;
  readonly labels: Labels;
  pending: number | undefined;
}

function keyOf(name: string, labels: Labels): string {
  let key = name;
  for (const label in labels) key += `\n${label}\n${labels[label]}`;
  return key;
}

/** A gauge that nobody has set is absent: the library would show a gauge that has no labels as 0. */
function withoutValue(gauge: Gauge): Gauge {
  gauge.reset();
  gauge.remove({});
  return gauge;
}

/** `ofProcess`: with what is measured of the whole process, and of its main thread by Node. Default true. */
export function createPromTelemetry(deps: { log: Logger; ofProcess?: boolean }): PromTelemetry {
  const registry = new Registry();
  if (deps.ofProcess !== false) collectDefaultMetrics({ register: registry, prefix: 'holdfast_' });
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  for (const [name, row] of Object.entries<MetricRow>(METRICS)) {
    const options = {
      name,
      help: row.help,
      labelNames: [...(row.labels ?? [])],
      registers: [registry],
      aggregator: row.ofThreads ?? ('sum' as const),
    };
    if (row.kind === 'counter') counters.set(name, new Counter(options));
    else if (row.kind === 'gauge') gauges.set(name, withoutValue(new Gauge(options)));
    else histograms.set(name, new Histogram({ ...options, buckets: [...(row.buckets ?? SECONDS)] }));
  }
  const counts = new Map<string, Count>();
  /** By name, and of each by its labels. */
  const gauged = new Map<string, Map<string, Gauged>>();
  const reported = new Set<string>();
  const collectors: (() => Promise<void>)[] = [];
  let readThreads: (() => Promise<readonly MetricFigures[]>) | undefined;

  async function bringUpToDate(): Promise<void> {
    await Promise.all(collectors.map((collect) => collect()));
    for (const each of counts.values()) {
      each.metric.inc(each.labels, each.pending);
      each.pending = 0;
    }
    for (const each of [...gauged.values()].flatMap((figures) => [...figures.values()])) {
      if (each.pending !== undefined) each.metric.set(each.labels, each.pending);
      each.pending = undefined;
    }
  }

  /** Measuring must never end a request: what cannot be counted is reported once. */
  function record<Metric>(
    metrics: ReadonlyMap<string, Metric>,
    name: string,
    act: (metric: Metric) => void,
  ): void {
    try {
      act(must(metrics.get(name), 'not in the table of metrics, or there as another kind'));
    } catch (error) {
      if (reported.has(name)) return;
      reported.add(name);
      deps.log.error({ metric: name, err: error }, 'metric-refused');
    }
  }

  function count(name: string, labels: Labels = {}, by = 1): void {
    const key = keyOf(name, labels);
    const known = counts.get(key);
    if (known !== undefined) {
      known.pending += by;
      return;
    }
    record(counters, name, (metric) => {
      metric.inc(labels, by);
      counts.set(key, { metric, labels, pending: 0 });
    });
  }

  function gauge(name: string, value: number, labels: Labels = {}): void {
    const key = keyOf(name, labels);
    const known = gauged.get(name)?.get(key);
    if (known !== undefined) {
      known.pending = value;
      return;
    }
    record(gauges, name, (metric) => {
      metric.set(labels, value);
      const figures = gauged.get(name) ?? new Map<string, Gauged>();
      gauged.set(name, figures.set(key, { metric, labels, pending: undefined }));
    });
  }

  return {
    count,
    observe: (name, value, labels: Labels = {}) =>
      record(histograms, name, (metric) => metric.observe(labels, value)),
    gauge,
    gaugeAll: (name, figures) =>
      record(gauges, name, (metric) => {
        gauged.delete(name);
        withoutValue(metric);
        for (const { value, labels = {} } of figures) metric.set(labels, value);
      }),
    onScrape(collect) {
      collectors.push(collect);
    },
    addThreads(read) {
      readThreads = read;
    },
    async scrape() {
      await bringUpToDate();
      const { contentType } = registry;
      if (readThreads === undefined) return { contentType, text: await registry.metrics() };
      const all = [await registry.getMetricsAsJSON(), ...(await readThreads())];
      return { contentType, text: await AggregatorRegistry.aggregate(all).metrics() };
    },
    async figures() {
      await bringUpToDate();
      return registry.getMetricsAsJSON();
    },
  };
}

/** A gauge without labels. undefined: it is not known here, and absent. */
export function gaugeIfKnown(telemetry: TelemetryPort, name: string, value: number | undefined): void {
  telemetry.gaugeAll(name, value === undefined ? [] : [{ value }]);
}
