// What the pages for operators tell them to type and to open is there: commands of the program with their options, units,
// services, volumes and files of deploy/, and what links lead to.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../support/run/root.ts';
import { expectCommand, readCompose } from '../support/servers/deploy-files.ts';

const DOCS = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
const PAGES = ['README.md', ...DOCS.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)];
const OPERATORS = [
  'README.md',
  'docs/operations.md',
  'docs/growing.md',
  'docs/disasters.md',
  'docs/security.md',
  'docs/backup.md',
  'docs/upgrade.md',
  'docs/failed-disk.md',
  'docs/sizing.md',
  'docs/logs.md',
  ...PAGES.filter((page) => page.startsWith('docs/backup/')),
];
const HELP_MAX_MS = 120_000;

/** Commands that have others below them. */
const GROUPS = [
  'cluster',
  'shard',
  'account',
  'keys',
  'clock',
  'user',
  'group',
  'role',
  'policy',
  'key',
  'mfa',
];
/** A word of the name of a command; names and placeholders of things are none. */
const COMMAND_WORD = /^[a-z]+(-[a-z]+)*$/;

const read = (page: string) => readFileSync(join(ROOT, page), 'utf8');
const all = OPERATORS.map(read).join('\n');

/** As the page's own links name a heading. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Whatever is typed as `holdfast ...`: in a line of an example, behind other programs too, or in the text. */
function commandLines(text: string): string[] {
  const blocks = [...text.matchAll(/^ *```\n([\s\S]*?)^ *```/gm)].map(([, block = '']) =>
    block.replaceAll('\\\n', ' '),
  );
  const lines = blocks.flatMap((block) =>
    [
      ...block.matchAll(
        /^ *(?:\$ |npx |runuser -u holdfast -- |docker compose .* exec holdfast )?holdfast (?!holdfast)(.+)$/gm,
      ),
    ].map(([, line = '']) => line),
  );
  const composed = [
    ...text
      .replaceAll('\\\n', ' ')
      .matchAll(
        /docker compose run --rm[^`\n]* (?:tool|init|metadata-1) ((?:cluster|shard|metadata|status) [^`\n]+)/g,
      ),
  ].map(([, line = '']) => line);
  const prose = text.replace(/^ *```[\s\S]*?^ *```/gm, '');
  const inline = [...prose.matchAll(/`(?:[^`]*-- )?holdfast ([a-z][^`]*)`/g)].map(([, line = '']) =>
    line.replace(/\s+/g, ' '),
  );
  return [...lines, ...composed, ...inline].map((line) => line.replace(/ #.*| >.*|;.*/, '').trim());
}

/** Name and options; undefined: it names no command in particular. */
function commandOf(line: string): string[] | undefined {
  const words = line.split(/\s+/);
  const [first = '', second = ''] = words;
  if (!COMMAND_WORD.test(first) || (GROUPS.includes(first) && !COMMAND_WORD.test(second))) return undefined;
  const options = words.filter((word) => word.startsWith('--') && word !== '--version');
  return [...words.slice(0, GROUPS.includes(first) ? 2 : 1), ...options];
}

test.each(PAGES)('links of %s lead somewhere', (page) => {
  const text = read(page).replace(/^```[\s\S]*?^```/gm, '');
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  for (const link of links.filter((one) => !/^https?:/.test(one))) {
    const [path = '', anchor] = link.split('#');
    const file = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path);
    expect([link, existsSync(file)]).toEqual([link, true]);
    if (anchor !== undefined && file.endsWith('.md'))
      expect([...anchorsOf(readFileSync(file, 'utf8'))], link).toContain(anchor);
  }
});

describe('for operators', () => {
  test('commands and their options exist in the program', { timeout: HELP_MAX_MS }, () => {
    const commands = commandLines(all).flatMap((line) => commandOf(line) ?? []);
    expect(commands.length).toBeGreaterThan(50);
    const found = new Set(commandLines(all).map((line) => commandOf(line)?.join(' ')));
    for (const command of found) if (command !== undefined) expectCommand(command.split(' '));
    // It would notice.
    expect(commandOf('cluster drian NODE')).toEqual(['cluster', 'drian']);
    expect(() => expectCommand(['cluster', 'drian'])).toThrow();
  });

  test('units exist in deploy/systemd', () => {
    const named = [...all.matchAll(/\b(holdfast-(?:metadata|storage|gateway)(?:@\d)?)(?=[\s`'.,]|$)/g)].map(
      ([, name = '']) => name,
    );
    const units = [...new Set(named)].map((name) => `${name.replace(/@\d$/, '@')}.service`);
    expect(new Set(units).size).toBe(3);
    for (const unit of units)
      expect([unit, existsSync(join(ROOT, 'deploy', 'systemd', unit))]).toEqual([unit, true]);
  });

  test('services and volumes exist in the compose files', () => {
    const { name, services, volumes = {} } = readCompose('compose.cluster.yaml');
    const verbs =
      /docker compose (?:up -d|stop|start|rm -sf|up -d --force-recreate|run --rm(?: --\S+)*) ((?:[a-z]+(?:-\d)? ?)+)/g;
    const named = [...all.matchAll(verbs)].flatMap(([, words = '']) => words.trim().split(' '));
    const told = new Set(named.filter((word) => /-\d$|^(tool|init|certs)$/.test(word)));
    expect(told.size).toBeGreaterThan(5);
    // The one that is added.
    told.delete('storage-4');
    for (const service of told) expect(Object.keys(services)).toContain(service);
    const used = [...all.matchAll(new RegExp(`${name}_([a-z]+-\\d)`, 'g'))].map(([, volume = '']) => volume);
    expect(used.length).toBeGreaterThan(5);
    for (const volume of used) expect(Object.keys(volumes)).toContain(volume);
    expect(all).toContain(`${readCompose('compose.yaml').name}_data`);
  });

  test('files of deploy are there', () => {
    const named = [...all.matchAll(/(?<![\w/])deploy\/[\w./@-]*\w/g)].map(([path]) => path);
    // Made by the first commands.
    const given = new Set(named.filter((path) => !path.startsWith('deploy/secrets')));
    expect(given.size).toBeGreaterThan(10);
    for (const path of given) expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
  });
});
