// `holdfast fsck` in the server: one full comparison at a time, which its client watches, and which ends when nobody does
// any more. It changes nothing: what the background workers do not free is damage, and damage must be examined before
// anything is written over it.

import type { Logger } from '../ports/telemetry.ts';
import { AppError } from '../types/errors.ts';
import type { Finding, FindingKind, Pending } from '../types/findings.ts';
import { compareAll } from './compare-all.ts';
import { type FsckDeps, type FsckOptions, type FsckProgress, FsckRun } from './run.ts';

/** Nobody has looked for this long: the tool that asked is gone. */
const LEASE_MS = 30_000;
const FINDINGS_PAGE = 1000;

export interface FsckReport {
  id: number;
  state: 'running' | 'done' | 'cancelled' | 'failed';
  readData: boolean;
  /** Monotonic time that it has taken. */
  tookMs: number;
  progress: FsckProgress;
  /** How many of each kind were found. */
  counts: Partial<Record<FindingKind, number>>;
  /** From the one asked for, a page of them; the first 10,000 are kept. */
  findings: Finding[];
  /** Work on its way, once all is compared. */
  pending: Pending[];
  /** Why it failed. */
  problem?: string;
}

export interface Fsck {
  /** Begins one and gives its number. Throws AppError OperationAborted while another runs. */
  begin(options: FsckOptions): number;
  /** How it stands, with findings from `from` on. Throws AppError NoSuchEntity for another than the last one. */
  look(id: number, from: number): FsckReport;
  cancel(id: number): void;
  /** Cancels what runs, and resolves when it has ended. */
  stop(): Promise<void>;
}

interface Job {
  id: number;
  run: FsckRun;
  abort: AbortController;
  state: FsckReport['state'];
  startedAtMs: number;
  endedAtMs?: number;
  lookedAtMs: number;
  problem?: string;
  ended: Promise<void>;
}

export function createFsck(deps: FsckDeps & { log: Logger }): Fsck {
  const { clock, log } = deps;
  let last: Job | undefined;

  function jobOf(id: number): Job {
    if (last?.id !== id) throw new AppError('NoSuchEntity', { message: 'There is no such comparison.' });
    last.lookedAtMs = clock.monotonicMs();
    return last;
  }

  async function compare(job: Job): Promise<void> {
    const leasing = keepLease(job);
    try {
      await compareAll(job.run);
      job.state = 'done';
    } catch (error) {
      job.state = job.abort.signal.aborted ? 'cancelled' : 'failed';
      job.problem = error instanceof Error ? error.message : String(error);
      if (job.state === 'failed') log.error({ err: error }, 'fsck-failed');
    }
    job.endedAtMs = clock.monotonicMs();
    job.abort.abort();
    await leasing;
    const { findings, progress } = job.run;
    log.info({ state: job.state, ...progress, findings: findings.length }, 'fsck-ended');
  }

  async function keepLease(job: Job): Promise<void> {
    const { signal } = job.abort;
    while (!signal.aborted) {
      await clock.sleep(LEASE_MS / 4, signal);
      if (clock.monotonicMs() - job.lookedAtMs > LEASE_MS) job.abort.abort();
    }
  }

  return {
    begin(options) {
      if (last?.state === 'running') {
        throw new AppError('OperationAborted', { message: 'A comparison is under way.' });
      }
      const abort = new AbortController();
      const nowMs = clock.monotonicMs();
      const run = new FsckRun(deps, options, abort.signal);
      const ended = Promise.resolve();
      const job: Job = {
        id: (last?.id ?? 0) + 1,
        run,
        abort,
        ended,
        state: 'running',
        startedAtMs: nowMs,
        lookedAtMs: nowMs,
      };
      last = job;
      job.ended = compare(job);
      return job.id;
    },
    look(id, from) {
      const { run, state, startedAtMs, endedAtMs, problem } = jobOf(id);
      return {
        id,
        state,
        readData: run.options.readData,
        progress: { ...run.progress },
        tookMs: Math.round((endedAtMs ?? clock.monotonicMs()) - startedAtMs),
        counts: Object.fromEntries(run.counts),
        findings: run.findings.slice(from, from + FINDINGS_PAGE),
        pending: [...run.pending.values()],
        ...(problem !== undefined && { problem }),
      };
    },
    cancel: (id) => jobOf(id).abort.abort(),
    async stop() {
      last?.abort.abort();
      await last?.ended;
    },
  };
}
