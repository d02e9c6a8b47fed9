// Errors between threads, as plain data: what callers branch on, and for the log what happened on the other side.
import { BrokenInvariant } from '../../base/assert.ts';
import { Refusal } from '../../base/refusal.ts';
import { ChunkUnread } from '../../types/chunk-refusals.ts';
import { AppError, type ErrorCode, type ErrorFields } from '../../types/errors.ts';

export interface ErrorFigure {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /** Of an AppError. */
  readonly app?: {
    readonly code: ErrorCode;
    readonly status: number;
    readonly fields: ErrorFields;
    readonly headers: Readonly<Record<string, string>>;
  };
  /** Stack of its cause. */
  readonly cause?: string;
}

export function encodeError(error: unknown): ErrorFigure {
  const { name, message, stack = message, cause } = error instanceof Error ? error : new Error(String(error));
  return {
    name,
    message,
    stack,
    ...(error instanceof AppError && {
      app: { code: error.code, status: error.status, fields: error.fields, headers: error.headers },
    }),
    ...(cause !== undefined && {
      cause: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
    }),
  };
}

/** An error of the same class where anybody asks for its class, with the stack of the other thread. */
export function reviveError({ name, message, stack, app, cause: causeStack }: ErrorFigure): Error {
  const cause = causeStack === undefined ? undefined : causeOf(causeStack);
  if (app !== undefined) {
    if (name === 'ChunkUnread') return new ChunkUnread(cause);
    const { code, ...options } = app;
    return new AppError(code, { message, ...options, ...(cause && { cause }) });
  }
  if (name === 'Refusal') return new Refusal(message);
  const isInvariant = name === 'BrokenInvariant' || name === 'OtherBytes';
  const error = isInvariant ? new BrokenInvariant(message) : new Error(message);
  error.stack = stack;
  if (cause !== undefined) error.cause = cause;
  return error;
}

function causeOf(stack: string): Error {
  const cause = new Error(stack.split('\n', 1)[0] ?? '');
  cause.stack = stack;
  return cause;
}
