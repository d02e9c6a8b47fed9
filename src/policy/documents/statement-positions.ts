// Where the statements of a document stand in its text, for explanations.
import { type Position, positionOf, readJson } from './read-json.ts';

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
  return (list.kind === 'array' ? list.items : [list]).flatMap((statement) =>
    statement.kind === 'object'
      ? [{ start: positionOf(text, statement.at), end: positionOf(text, statement.end) }]
      : [],
  );
}
