// Logs and metrics as the inner layers see them.

/** The subset of pino that we use. Fields first, then the fixed event name. Never key material or bodies. */
export interface Logger {
  debug(fields: object, event: string): void;
  info(fields: object, event: string): void;
  warn(fields: object, event: string): void;
  error(fields: object, event: string): void;
}

/** Metric names begin with holdfast_; labels come from closed sets only (style 5). */
export interface TelemetryPort {
  count(name: string, labels?: Readonly<Record<string, string>>, by?: number): void;
  observe(name: string, value: number, labels?: Readonly<Record<string, string>>): void;
  gauge(name: string, value: number, labels?: Readonly<Record<string, string>>): void;
  /** All figures of one gauge: what it had besides vanishes. None: nobody knows it here any more. */
  gaugeAll(name: string, figures: readonly Figure[]): void;
}

export interface Figure {
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}
