// Runs one load generator, a process of its own, to its end, with its progress on one line of stderr.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { LoadMessage, LoadResult, LoadSpec } from './spec.ts';

const say = (text: string) => process.stderr.write(text);

export function generate(spec: LoadSpec): Promise<LoadResult> {
  const label = `${spec.workload} ${spec.sizeBytes} B x${spec.concurrency} ${spec.target.endpoint}`;
  const child = spawn(process.execPath, [join(import.meta.dirname, 'generator.ts'), JSON.stringify(spec)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    let result: LoadResult | undefined;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const message = JSON.parse(line) as LoadMessage;
      if (message.kind === 'result') result = message.result;
      else {
        const { phase, operationCount, errorCount, seconds } = message;
        say(`\r${label}: ${phase} ${seconds.toFixed(0)} s, ${operationCount} done, ${errorCount} errors   `);
      }
    });
    child.once('close', (code) => {
      say('\n');
      if (result === undefined) return reject(new Error(`the generator ended with code ${code}: ${label}`));
      for (const error of result.errors) say(`  error: ${error}\n`);
      resolve(result);
    });
  });
}
