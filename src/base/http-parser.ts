// The one inner of Node's HTTP parser that is used here, by whoever takes bodies as they were read of their sockets. Tests with
// bodies of known length, over TCP and TLS, hold it: a new Node has to pass them.

/** Where the parser has what it calls with each piece of a body (kOnBody of Node's HTTPParser). */
const ON_BODY = 3;

export interface BodyParser {
  [ON_BODY]?: unknown;
}

/** Parses a part of a body whose reader has it already: the parser counts its bytes, and gives nobody a copy. */
export function countBody(parser: BodyParser, part: Buffer, parse: (bytes: Buffer) => void): void {
  const onBody = parser[ON_BODY];
  parser[ON_BODY] = undefined;
  try {
    parse(part);
  } finally {
    parser[ON_BODY] = onBody;
  }
}
