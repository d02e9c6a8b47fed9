import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { createJsonLog } from './json-log.ts';

function collect(level: 'debug' | 'info' | 'warn' | 'error' | 'silent') {
  const lines: string[] = [];
  const log = createJsonLog({ level, destination: { write: (line) => lines.push(line) } });
  return { log, parsed: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

test('what clients have chosen breaks no line and gives a terminal no orders', () => {
  const lines: string[] = [];
  const log = createJsonLog({ level: 'info', destination: { write: (line) => lines.push(line) } });
  // 8-bit CSI, DEL, and what is the end of a line to readline of Node and splitlines of Python.
  const key = 'a\u009b2J\u007fb\u0085c\u2028d\u2029e\u001b[1A\nä';
  log.info({ key }, 'request');
  expect(lines.join('')).toMatch(/^[^\p{Cc}\p{Zl}\p{Zp}]*\n$/u);
  expect(JSON.parse(lines.join(''))).toMatchObject({ key });
});

test('a line is JSON with time, level, event and the fields', () => {
  const { log, parsed } = collect('info');
  log.info({ requestId: 'r1', status: 200 }, 'request');
  const [line] = parsed();
  expect(line).toEqual({
    level: 'info',
    time: expect.any(String),
    requestId: 'r1',
    status: 200,
    event: 'request',
  });
  expect(new Date(String(line?.time)).toISOString()).toBe(line?.time);
});

test('lines below the level are dropped, all of them when silent', () => {
  const { log, parsed } = collect('warn');
  for (const level of ['debug', 'info', 'warn', 'error'] as const) log[level]({}, level);
  expect(parsed().map((line) => line.event)).toEqual(['warn', 'error']);
  const silent = collect('silent');
  silent.log.error({}, 'x');
  expect(silent.parsed()).toEqual([]);
});

test('an error keeps its stack, a secret is replaced', () => {
  const { log, parsed } = collect('info');
  log.error({ err: new Error('broken'), secretKey: 's3cret' }, 'worker-failed');
  const [line] = parsed();
  expect(line).toMatchObject({ err: { type: 'Error', message: 'broken', stack: expect.any(String) } });
  expect(line?.secretKey).toBe('(secret)');
});

test.each(['await log.flush()', 'log.flushNow()'])(
  'lines written before the end of the process arrive: %s',
  (flush) => {
    const module = new URL('./json-log.ts', import.meta.url).href;
    const script = `const { createJsonLog } = await import(${JSON.stringify(module)});
      const log = createJsonLog({ level: 'info' });
      for (let i = 0; i < 100; i++) log.info({ i }, 'line');
      ${flush};
      process.exit(0);`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).i);
    const sent = Array.from({ length: 100 }, (_, i) => i);
    // Who cannot wait may meet the first line behind the others.
    expect(flush.includes('await') ? lines : lines.sort((a, b) => a - b)).toEqual(sent);
  },
);

test('lines that nobody takes are lost beyond a bound, and the log says how many', async () => {
  const module = new URL('./json-log.ts', import.meta.url).href;
  const count = 100_000;
  const script = `const { createJsonLog } = await import(${JSON.stringify(module)});
    const log = createJsonLog({ level: 'info' });
    const filling = 'x'.repeat(800);
    for (let i = 0; i < ${count}; i++) log.info({ i, filling }, 'line');
    process.stderr.write('written');
    await log.flush();
    await log.flush();
    process.exit(0);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
  await once(child.stderr, 'data');
  const lines = (await text(child.stdout))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const lost = lines.filter(({ event }) => event === 'log-lines-lost');
  expect(lost).toHaveLength(1);
  const kept = lines.filter(({ event }) => event === 'line').length;
  expect(kept).toBeGreaterThan(10_000);
  expect(kept + lost[0].lines).toBe(count);
});
