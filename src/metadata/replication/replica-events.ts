// Branches of the protocol that a replica has taken: for metrics, and for the simulation, which must see each of them.

export type ReplicaEvent =
  | 'takeover'
  | 'opened'
  | 'stepped-down'
  | 'log-cut'
  | 'snapshot-sent'
  | 'snapshot-taken'
  | 'quarantined'
  | 'swap-lost'
  | 'voters-changed'
  | 'request-found'
  | 'removed'
  /** R22: one pass is over; and two replicas were found to differ. */
  | 'verified'
  | 'state-differs';
