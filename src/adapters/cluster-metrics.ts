// The part of the table of metrics (prom-telemetry.ts) that says how a cluster is: what `holdfast cluster status` shows and
// raises alarms about. Who does not know a figure does not tell it: those of one process in the cluster are absent elsewhere.

export const CLUSTER_METRICS = {
  holdfast_disk_state: {
    kind: 'gauge',
    help: '1 for each disk of the cluster: serving, away (no node serves it), new (in no placement map yet), removed (in none any more); whether it is staying, draining (on request) or absent (given up until it returns); node: who serves it, or did last. Told by the node that places disks alone.',
    labels: ['disk', 'node', 'state', 'leave'],
  },
  holdfast_disk_partitions: {
    kind: 'gauge',
    help: 'Partitions that a disk owns (owned), and that it owned before a change that is not done (pending): a drained disk is done with when both are 0 and no copies are owed. Told by the node that places disks alone.',
    labels: ['disk', 'hold'],
  },
  holdfast_disk_capacity_bytes: {
    kind: 'gauge',
    help: 'The capacity that a disk has told of last: its share of partitions is by that. Told by the node that places disks alone.',
    labels: ['disk'],
  },
  holdfast_missed_disks: {
    kind: 'gauge',
    help: 'Disks that are away and are needed: they stay in the cluster, or may have chunks alone. Told by the node that places disks alone.',
  },
  holdfast_placement_owner_nodes: {
    kind: 'gauge',
    help: 'Storage nodes with disks that own partitions. Told by the node that places disks alone.',
  },
  holdfast_placement_copies: { kind: 'gauge', help: 'Owners that each partition is to have.' },
  holdfast_disk_full_below_bytes: {
    kind: 'gauge',
    help: 'With less room than this a disk of a storage node takes no new chunks.',
    labels: ['disk'],
  },
  holdfast_disk_scarce_below_bytes: {
    kind: 'gauge',
    help: 'With less room than this it will soon be full.',
    labels: ['disk'],
  },
  holdfast_node_disks: {
    kind: 'gauge',
    help: 'Disks that a storage node is to serve, by state: serving, silent (it does not say what it holds), unserved (it cannot be opened, or has failed).',
    labels: ['state'],
  },
} as const;
