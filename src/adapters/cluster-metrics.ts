// The part of the table of metrics (prom-telemetry.ts) that says how a cluster is: what `holdfast cluster status` shows and
// raises alarms about. Who does not know a figure does not tell it: those of one process in the cluster are absent elsewhere.

export const CLUSTER_METRICS = {
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
