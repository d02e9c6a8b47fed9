// Where the statements of a document stand in its text, for explanations.
import { type Position, readJson } from './read-json.ts';

export interface StatementPosition {
  /** Of its brace. */
  readonly start: Position;
  /** Behind its brace. */
  readonly end: Position;
}

/** By the index of the statement. Of a text that compiles; throws JsonFault for what is no JSON. */
export function positionsOfStatements(text: string): StatementPosition[] {
  const { value } = readJson(text);
  const list = value.kind === 'object' ? value.members.get('Statement') : undefined;
  if (list === undefined) return [];
  const positionOf = createLines(text);
  return (list.kind === 'array' ? list.items : [list]).flatMap((statement) =>
    statement.kind === 'object' ? [{ start: positionOf(statement.at), end: positionOf(statement.end) }] : [],
  );
}

/** Of indices that ascend: the text is looked at once. */
function createLines(text: string): (at: number) => Position {
  let line = 1;
  let lineStart = 0;
  let nextEnd = text.indexOf('\n');
  return (at) => {
    while (nextEnd !== -1 && nextEnd < at) {
      line++;
      lineStart = nextEnd + 1;
      nextEnd = text.indexOf('\n', lineStart);
    }
    return { line, column: at - lineStart + 1 };
  };
}
