// The metrics of a process as a monitoring system reads them, and what the table of metrics does not have.
import { createPromTelemetry, type PromTelemetry } from '../../../src/platform/telemetry/prom-telemetry.ts';

export function countedTelemetry(): {
  telemetry: PromTelemetry;
  /** What was told and is not in the table. */
  refused: object[];
  /** Lines of the text that begin so, without these beginnings. */
  linesOf(name: string): Promise<string[]>;
} {
  const refused: object[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (fields: object) => void refused.push(fields) };
  const telemetry = createPromTelemetry({ log });
  return {
    telemetry,
    refused,
    async linesOf(name) {
      const { text } = await telemetry.scrape();
      const lines = text
        .split('\n')
        .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
      return lines.map((line) => line.slice(name.length).trim());
    },
  };
}
