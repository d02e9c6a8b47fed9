// What the operator has accepted of jumps of the clock, and what not (R19).
export interface AcceptedJumps {
  acceptedMs: number;
  /** 0: none is left. */
  grownMs: number;
}

/** Of what each shard has answered. */
export function sumOfAccepted(
  answers: readonly { kind: 'accepted' | 'grown'; jumpMs: number }[],
): AcceptedJumps {
  const largest = (wanted: string) =>
    Math.max(0, ...answers.filter(({ kind }) => kind === wanted).map(({ jumpMs }) => jumpMs));
  return { acceptedMs: largest('accepted'), grownMs: largest('grown') };
}
