import { expect, test } from 'vitest';
import type { ItemKind, SettingKind, SettingRow } from './setting-row.ts';
import { parseJsonSetting, parseSetting } from './values.ts';

const row = (kind: SettingKind, more: Partial<SettingRow> = {}): SettingRow => ({
  key: 'x',
  kind,
  help: '',
  ...more,
});
const list = (items: ItemKind) => row('list', { items });

test.each<[SettingRow, string, unknown]>([
  [row('text'), 'a b', 'a b'],
  [row('path'), './x', './x'],
  [row('bytes'), '4MiB', 4 * 1024 * 1024],
  [row('bytes'), '1 TiB', 1024 ** 4],
  [row('bytes'), '512', 512],
  [row('bytes'), '7B', 7],
  [row('duration'), '250ms', 250],
  [row('duration'), '30s', 30_000],
  [row('duration'), '10min', 600_000],
  [row('duration'), '2h', 7_200_000],
  [row('duration'), '31d', 2_678_400_000],
  [row('duration'), '0', 0],
  [row('integer'), '64', 64],
  [row('integer', { auto: true }), 'auto', 'auto'],
  [row('bytes', { never: true }), 'never', 0],
  [row('boolean'), 'true', true],
  [row('boolean'), 'false', false],
  [row('choice', { choices: ['a', 'b'] }), 'b', 'b'],
  [list('hostName'), '', []],
  [list('path'), '/Mnt/One, /mnt/two', ['/Mnt/One', '/mnt/two']],
  [list('domainName'), 'S3.example.com,localhost,4u.example', ['s3.example.com', 'localhost', '4u.example']],
  [
    list('hostName'),
    ' S3.example.com , localhost,::1,10.0.0.1',
    ['s3.example.com', 'localhost', '::1', '10.0.0.1'],
  ],
  [list('networkRange'), '10.0.0.0/8,fd00::/8,192.168.1.1', ['10.0.0.0/8', 'fd00::/8', '192.168.1.1']],
  [list('publicName'), 'https://s3.example.com,s3:9000', ['https://s3.example.com', 's3:9000']],
  [row('hostPort'), '127.0.0.1:9000', { host: '127.0.0.1', port: 9000 }],
  [row('hostPort'), '[::1]:0', { host: '::1', port: 0 }],
  [row('hostPort'), 'LOCALHOST:65535', { host: 'localhost', port: 65_535 }],
])('%o reads %s', (setting, text, value) => {
  expect(parseSetting(setting, text)).toEqual({ value });
});

test.each<[SettingRow, string, string]>([
  [row('text'), '', 'must not be empty'],
  [row('bytes'), '4MB', 'must be a whole number with a unit (B, KiB, MiB, GiB, TiB), not "4MB"'],
  [row('bytes'), '1.5GiB', 'must be a whole number with a unit (B, KiB, MiB, GiB, TiB), not "1.5GiB"'],
  [
    row('bytes'),
    '1constructor',
    'must be a whole number with a unit (B, KiB, MiB, GiB, TiB), not "1constructor"',
  ],
  [row('bytes', { max: 65_536 }), '65537', 'must be at most 64KiB, not 65537'],
  [row('duration'), '30', 'must be a whole number with a unit (ms, s, min, h, d), not "30"'],
  [row('duration', { min: 1000 }), '999ms', 'must be at least 1s, not 999ms'],
  [row('integer'), '-1', 'must be a whole number, not "-1"'],
  [row('integer', { auto: true, max: 4 }), '5', 'must be at most 4, not 5'],
  [row('bytes', {}), 'never', expect.stringMatching(/^must be a whole number with a unit/)],
  [
    row('bytes', { never: true }),
    'no',
    expect.stringMatching(/^must be never or a whole number with a unit/),
  ],
  [row('integer', { auto: true }), 'many', 'must be auto or a whole number, not "many"'],
  [row('boolean'), 'yes', 'must be true or false, not "yes"'],
  [row('choice', { choices: ['a', 'b'] }), 'c', 'must be one of a, b, not "c"'],
  [list('hostName'), 'ok,-bad', 'has an item that is not a host name or address: "-bad"'],
  [list('networkRange'), '10.0.0.0/33', 'has an item that is not an address or CIDR range: "10.0.0.0/33"'],
  [list('networkRange'), '10.0.0.256', 'has an item that is not an address or CIDR range: "10.0.0.256"'],
  [
    list('publicName'),
    'https://h/path',
    'has an item that is not HOST, HOST:PORT or an http(s) URL without a path: "https://h/path"',
  ],
  [row('hostPort'), '9000', 'must be HOST:PORT, not "9000"'],
  [row('hostPort'), 'h:65536', 'must be HOST:PORT, not "h:65536"'],
  [row('hostPort'), '[nope]:1', 'must be HOST:PORT, not "[nope]:1"'],
])('%o refuses %s', (setting, text, problem) => {
  expect(parseSetting(setting, text)).toEqual({ problem });
});

test('the JSON file may use numbers, booleans and arrays where they fit', () => {
  expect(parseJsonSetting(row('bytes'), 4096)).toEqual({ value: 4096 });
  expect(parseJsonSetting(row('integer'), 3)).toEqual({ value: 3 });
  expect(parseJsonSetting(row('integer'), 3.5)).toHaveProperty('problem');
  expect(parseJsonSetting(row('boolean'), true)).toEqual({ value: true });
  expect(parseJsonSetting(list('hostName'), ['a', 'b'])).toEqual({ value: ['a', 'b'] });
  expect(parseJsonSetting(list('hostName'), ['a', 5])).toEqual({ problem: 'must be a list of strings' });
  expect(parseJsonSetting(row('duration'), 30)).toEqual({ problem: 'must be a string' });
  expect(parseJsonSetting(row('text'), null)).toEqual({ problem: 'must be a string' });
});
