// The part of the table of metrics (prom-telemetry.ts) that says how a cluster is: what `holdfast cluster status` shows and
// raises alarms about. Who does not know a figure does not tell it: those of one process in the cluster are absent elsewhere.

export const CLUSTER_METRICS = {
  holdfast_disk_state: {
    kind: 'gauge',
    help: '1 for each disk of the cluster: serving, away (no node serves it), new (in no placement map yet), removed (in none any more); whether it is staying, draining (on request) or absent (given up until it returns); node: who serves it, or did last. Only the node that places disks reports it.',
    labels: ['disk', 'node', 'state', 'leave'],
  },
  holdfast_disk_partitions: {
    kind: 'gauge',
    help: 'Partitions that a disk owns (owned), and that it owned before a change that is not done (pending): a drained disk is done with when both are 0 and no copies are missing. Only the node that places disks reports it.',
    labels: ['disk', 'hold'],
  },
  holdfast_disk_capacity_bytes: {
    kind: 'gauge',
    help: 'The last reported capacity of a disk, by which it gets its share of partitions. Only the node that places disks reports it.',
    labels: ['disk'],
  },
  holdfast_missed_disks: {
    kind: 'gauge',
    help: 'Disks that are away and are needed: they stay in the cluster, or may have chunks alone. Only the node that places disks reports it.',
  },
  holdfast_placement_owner_nodes: {
    kind: 'gauge',
    help: 'Storage nodes with disks that own partitions. Only the node that places disks reports it.',
  },
  holdfast_placement_copies: { kind: 'gauge', help: 'Owners that each partition is to have.' },
  holdfast_disk_full_below_bytes: {
    kind: 'gauge',
    help: 'With less room than this a disk of a storage node takes no whole new chunks: its reserve, and twice a chunk; without a disk, of the data folder of a single node, likewise, or of a metadata node: it takes nothing that grows.',
    labels: ['disk'],
  },
  holdfast_disk_scarce_below_bytes: {
    kind: 'gauge',
    help: 'With less room than this the same will soon be full.',
    labels: ['disk'],
  },
  holdfast_node_disks: {
    kind: 'gauge',
    help: 'Disks that a storage node is to serve, by state: serving, silent (it does not say what it holds), unserved (it cannot be opened, or has failed).',
    labels: ['state'],
  },
  holdfast_silent_disks: {
    kind: 'gauge',
    help: 'Disks that a node serves, and that did not answer this metadata node when its shards last asked them.',
  },
  holdfast_chunk_writes_refused: {
    kind: 'gauge',
    help: '1 while too few disks, or disks of too few storage nodes, take new chunks for any to be stored: the others are full, away or do not answer; else 0. Gateways report it, each by its own recent writes, else by the answers of disks.',
  },
  holdfast_chunk_taking_nodes: {
    kind: 'gauge',
    help: 'Storage nodes with a disk that takes new chunks. Gateways report it, each as it finds.',
  },
  holdfast_cluster_shards: {
    kind: 'gauge',
    help: 'Shards of the cluster; as many are open as holdfast_shards has with the role primary, on all metadata nodes together.',
  },
  holdfast_unsettled_shards: {
    kind: 'gauge',
    help: 'Shards that nobody holds yet (no-nodes), that have fewer voters than they should (few-voters), whose voters are being changed (changing: those of before are still needed), or that have two voters in one zone though another zone has none (crowded: a voter moves once all of the shard are there). Only the node that places shards reports it.',
    labels: ['why'],
  },
  holdfast_lacking_metadata_nodes: {
    kind: 'gauge',
    help: 'Metadata nodes that would have to be added for each shard to have its voters: those that drain or are removed do not count. Only the node that places shards reports it.',
  },
  holdfast_shards_with_differing_replicas: {
    kind: 'gauge',
    help: 'Shards led here whose replicas were found to differ, and not to be the same again since.',
  },
  holdfast_shards_compared_timestamp_seconds: {
    kind: 'gauge',
    help: 'When all replicas of the shards led here had last been compared, in seconds since 1970; absent before that.',
  },
  holdfast_shards_unconfirmed: {
    kind: 'gauge',
    help: 'Shards led here that were recovered and free nothing until the operator confirms it.',
  },
  holdfast_shards_unanswered: {
    kind: 'gauge',
    help: 'Shards led here that did not say how far they have audited (audit), of which history they are (history), or what copies they lack (debts), when last asked: they are missing in the figures of that.',
    labels: ['question'],
  },
  holdfast_audits_awaited: {
    kind: 'gauge',
    help: 'Shards led here that have not looked yet at where their chunks lie since the last change of owners.',
  },
  holdfast_repair_chunks_per_second: {
    kind: 'gauge',
    help: 'How many fewer chunks wait for repair each second, of the shards that this node leads, over the last minutes.',
  },
  holdfast_etcd_silent_seconds: {
    kind: 'gauge',
    help: 'For how long etcd has not answered this process of a cluster, which asks it every few seconds.',
  },
} as const;
