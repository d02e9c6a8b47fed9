// The text form of scenarios: blocks of directives and the output that they are expected to give. Comments and blank
// lines around blocks are kept when a file is rewritten. What directives do is in world.ts.

export interface Block {
  /** Directives, their continuation lines joined. */
  directives: string[];
  /** As written. */
  input: string[];
  expected: string[];
  /** Number of the first line, from 1. */
  line: number;
}

export type Piece = { kind: 'text'; lines: string[] } | { kind: 'block'; block: Block };

const SEPARATOR = '----';

export function parseTranscript(text: string): Piece[] {
  const pieces: Piece[] = [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  let index = 0;
  while (index < lines.length) {
    const from = index;
    const isText = (line: string | undefined) => line === '' || line?.startsWith('#');
    while (index < lines.length && isText(lines[index])) index++;
    if (index > from) pieces.push({ kind: 'text', lines: lines.slice(from, index) });
    if (index >= lines.length) break;
    const start = index;
    while (index < lines.length && lines[index] !== SEPARATOR) {
      if (lines[index] === '')
        throw new Error(`line ${start + 1}: a block needs ${SEPARATOR} below its directives`);
      index++;
    }
    const input = lines.slice(start, index++);
    const outputFrom = index;
    while (index < lines.length && lines[index] !== '') index++;
    const expected = lines.slice(outputFrom, index);
    pieces.push({ kind: 'block', block: { input, expected, directives: joinLines(input), line: start + 1 } });
  }
  return pieces;
}

export function formatTranscript(pieces: readonly Piece[]): string {
  const lines = pieces.flatMap((piece) =>
    piece.kind === 'text' ? piece.lines : [...piece.block.input, SEPARATOR, ...piece.block.expected],
  );
  return `${lines.join('\n')}\n`;
}

/** Indented lines continue the one above. */
function joinLines(input: readonly string[]): string[] {
  const directives: string[] = [];
  for (const line of input) {
    if (/^\s/.test(line) && directives.length > 0) directives.push(`${directives.pop()} ${line.trim()}`);
    else directives.push(line);
  }
  return directives;
}
