// Commands and queries that the shard engine answers itself (src/metadata/engine/shard.ts), whatever it replicates.
export interface EngineCommands {
  /**
   * The operator's word that the shard's time is right (R19). `atMostMs`: the jump that was shown to it. `jumpMs`: what was accepted,
   * 0 when there was nothing; of `grown`, which changes nothing: what has jumped by now.
   */
  'accept-time-jump': {
    command: { atMostMs: number };
    outcome: { kind: 'accepted' | 'grown'; jumpMs: number };
  };
}

export interface EngineQueries {
  /** How far the clock has jumped without the operator's word, ms; 0 when it has not. */
  'get-time-jump': { query: Record<never, never>; result: { jumpMs: number } };
}
