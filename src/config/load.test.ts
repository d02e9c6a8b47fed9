import { describe, expect, test } from 'vitest';
import { loadConfig, printableConfig, SettingsError } from './load.ts';
import { SETTINGS } from './schema.ts';
import type { SettingRow } from './setting-row.ts';
import { parseSetting } from './values.ts';

function problemsOf(sources: Parameters<typeof loadConfig>[0]): readonly string[] {
  try {
    loadConfig(sources);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

describe('defaults', () => {
  test('no source at all gives a server on loopback', () => {
    const config = loadConfig({});
    expect(config.dataDir).toBe('./data');
    expect(config.listen).toEqual({ host: '127.0.0.1', port: 9000 });
    expect(config.domain).toEqual([]);
    expect(config.tls).toEqual({ mode: 'off', cert: undefined, key: undefined, names: [] });
    expect(config.root).toEqual({ accessKey: undefined, secretKey: undefined });
    expect(config.drainTimeoutMs).toBe(30_000);
    expect(config.storage.readingGraceMs).toBe(600_000);
    expect(config.storage.inlineBodyMaxBytes).toBe(65_536);
    expect(config.memory.bodyBufferBytes).toBe(128 * 1024 * 1024);
    expect(config.codec.workers).toBe('auto');
    expect(config.shards).toBe(64);
    expect(config.metadata.forceLoopback).toBe(false);
  });

  test('the result is frozen to the bottom', () => {
    const config = loadConfig({});
    for (const part of [config, config.storage, config.listen, config.domain, config.tls.names]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  test.each(SETTINGS.map((row) => [row.key, row] as const))(
    '%s has a valid default',
    (_, row: SettingRow) => {
      if (row.default !== undefined) expect(parseSetting(row, row.default)).toHaveProperty('value');
      expect(row.key).toMatch(/^[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)?$/);
    },
  );
});

describe('precedence', () => {
  const file = { name: 'holdfast.json', text: '{"listen": "f:1", "storage": {"readingGrace": "3s"}}' };

  test('flag over environment over file over default', () => {
    const env = { HOLDFAST_LISTEN: 'e:2' };
    expect(loadConfig({ file }).listen.host).toBe('f');
    expect(loadConfig({ file, env }).listen.host).toBe('e');
    expect(loadConfig({ file, env, flags: { listen: 'g:3' } }).listen.host).toBe('g');
    expect(loadConfig({ file, env }).storage.readingGraceMs).toBe(3000);
  });

  test('an empty variable is not set', () => {
    expect(loadConfig({ file, env: { HOLDFAST_LISTEN: '' } }).listen.host).toBe('f');
  });
});

describe('refused', () => {
  test('unknown variables, with the nearest known one', () => {
    expect(problemsOf({ env: { HOLDFAST_DATADIR: 'x', PATH: '/bin' } })).toEqual([
      'HOLDFAST_DATADIR is not a known setting; did you mean HOLDFAST_DATA_DIR?',
    ]);
  });

  test('unknown keys of the file, with the nearest known one', () => {
    const text = '{"storage": {"readinGrace": "3s"}, "zzzzzzzz": 1}';
    expect(problemsOf({ file: { name: 'h.json', text } })).toEqual([
      'h.json: storage.readinGrace is not a known setting; did you mean storage.readingGrace?',
      'h.json: zzzzzzzz is not a known setting',
    ]);
  });

  test('a file that is not a JSON object', () => {
    expect(problemsOf({ file: { name: 'h.json', text: '{' } })[0]).toMatch(/^h\.json: is not JSON: /);
    expect(problemsOf({ file: { name: 'h.json', text: '[]' } })).toEqual([
      'h.json: must be a JSON object of settings',
    ]);
  });

  test('every problem at once, each with its source', () => {
    const problems = problemsOf({
      flags: { listen: 'nowhere' },
      env: { HOLDFAST_TLS_MODE: 'on' },
      file: { name: 'h.json', text: '{"domain": 5}' },
    });
    expect(problems).toEqual([
      '--listen must be HOST:PORT, not "nowhere"',
      'h.json: domain must be a list of strings',
      'HOLDFAST_TLS_MODE must be one of off, self-signed, files, not "on"',
    ]);
  });

  test('settings that contradict one another', () => {
    expect(problemsOf({ flags: { 'tls.mode': 'files', 'tls.cert': 'c.pem' } })).toEqual([
      'tls.mode files needs tls.cert and tls.key',
    ]);
    expect(problemsOf({ flags: { 'tls.cert': 'c.pem' } })).toEqual([
      'tls.cert and tls.key are only used with tls.mode files',
    ]);
    expect(problemsOf({ env: { HOLDFAST_ROOT_ACCESS_KEY: 'AKIA' } })).toEqual([
      'root.accessKey and root.secretKey must be set together',
    ]);
  });
});

describe('secrets', () => {
  const env = { HOLDFAST_ROOT_ACCESS_KEY: 'an-access-key', HOLDFAST_ROOT_SECRET_KEY: 'a-secret-key' };

  test('are loaded and not printed', () => {
    const config = loadConfig({ env });
    expect(config.root).toEqual({ accessKey: 'an-access-key', secretKey: 'a-secret-key' });
    const printed = JSON.stringify(printableConfig(config));
    expect(printed).toContain('"root.secretKey":"(secret)"');
    expect(printed).not.toContain('a-secret-key');
    expect(printed).not.toContain('an-access-key');
  });

  test('do not show in messages', () => {
    const text = '{"root": {"accessKey": 4711, "secretKey": 4712}}';
    const message = problemsOf({ file: { name: 'h.json', text } }).join('\n');
    expect(message).toContain('root.secretKey must be a string');
    expect(message).not.toContain('471');
  });
});
