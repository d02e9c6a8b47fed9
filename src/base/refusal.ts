// The error of a program that stops for a reason that the person who started it can fix. Not for requests: those end in
// AppError.

/** Its message is all there is to say: printed as it is, without a stack, and the program exits with `exitCode`. */
export class Refusal extends Error {
  override name = 'Refusal';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
