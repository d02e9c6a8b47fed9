// The titles of the tests in a file, each behind those of the groups that it stands in. Tests that are always skipped, or
// only run against a server of their own (own-server-test.ts), are none.
import { parseSync } from 'oxc-parser';

interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** `group: title`. Of a title with placeholders as it is written. */
export function titlesOf(path: string, text: string): string[] {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  return titlesIn(program as unknown as Node, '');
}

function titlesIn(node: Node, group: string): string[] {
  const kind = node.type === 'CallExpression' ? kindOf(node.callee as Node) : undefined;
  if (kind === undefined) return childrenOf(node).flatMap((child) => titlesIn(child, group));
  const [first, ...rest] = node.arguments as readonly Node[];
  const title = `${group}${group && ': '}${first === undefined ? '' : textOf(first)}`;
  return kind === 'test' ? [title] : rest.flatMap((child) => titlesIn(child, title));
}

/** Of `test(…)` and `test.each(…)(…)`, and of `describe` alike. */
function kindOf(callee: Node): 'test' | 'describe' | undefined {
  if (callee.type === 'Identifier')
    return callee.name === 'test' || callee.name === 'describe' ? callee.name : undefined;
  if (callee.type !== 'CallExpression') return undefined;
  const { object, property } = callee.callee as { object?: Node; property?: Node };
  return object !== undefined && property?.name === 'each' ? kindOf(object) : undefined;
}

function textOf(node: Node): string {
  if (node.type === 'Literal') return String(node.value);
  const quasis = (node.quasis ?? []) as readonly { value: { raw: string } }[];
  return quasis.map(({ value }) => value.raw).join('…');
}

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((field): field is Node => typeof (field as Node | null)?.type === 'string');
}
