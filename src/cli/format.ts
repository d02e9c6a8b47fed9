// Text for people: tables, sizes, durations. Machines ask with --json.

/** An answer for a machine or for people. */
export function formatAnswer(options: { json?: boolean }, answer: object, forPeople: () => string): string {
  return options.json === true ? JSON.stringify(answer, undefined, 2) : forPeople();
}

/** Columns as wide as their widest cell; the last one is left ragged. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const BYTE_UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** `1.2 GiB`: three digits, the unit that leaves at least one before the point. */
export function formatBytes(sizeBytes: number): string {
  let unit = 0;
  let value = sizeBytes;
  while (value >= 1024 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${BYTE_UNITS[unit]}`;
}

/** `1,234,567` */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** The two largest units: `3 d 4 h`. */
export function formatDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const from = parts.findIndex(([value]) => value > 0);
  if (from < 0) return '0 s';
  return parts
    .slice(from, from + 2)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ');
}

/** `2026-01-02T03:04:05Z` */
export function formatTime(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 19)}Z`;
}

/** Text that clients have chosen, for a terminal: control characters are shown and not obeyed. */
export function formatForeign(text: string): string {
  return text.replace(/\p{Cc}/gu, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

/**
 * What a command prints, for a terminal and for programs that read lines: control characters that do not end or indent lines, and
 * Unicode's ends of lines, are spelt as JSON spells them. They stand in strings of JSON alone, so that a document which is printed
 * means what it did.
 */
export function formatPrinted(text: string): string {
  const controls = /\r(?!\n)|[^\P{Cc}\t\r\n]|\p{Zl}|\p{Zp}/gu;
  return text.replace(controls, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The id of a node or disk as tables and messages show it: how it begins names it to a command, too. */
export function formatId(id: string): string {
  return id.slice(0, 8);
}

/** As `name=value`, text quoted, because keys may hold anything. */
export function formatPlace(place: object): string {
  const fields = Object.entries(place).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? JSON.stringify(value) : value}`,
  );
  return fields.join(' ');
}
