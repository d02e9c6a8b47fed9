// One source file as the tidy checks see it: its imports, names it uses, functions and exports.
// Parsing only; what is allowed stands in rules.ts, what is compared in checks.ts.
import { dirname, join } from 'node:path/posix';
import { parseSync } from 'oxc-parser';

export interface Import {
  readonly specifier: string;
  /** Imported names; `*` for a whole namespace or a dynamic import. Empty for an import for its effect. */
  readonly names: readonly string[];
}

export interface FunctionSize {
  readonly name: string;
  /** Without the lines of functions named inside of it. */
  readonly lineCount: number;
}

export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly lineCount: number;
  readonly imports: readonly Import[];
  /** Files that it names in a string, as worker entries are: resolved like an import. */
  readonly namedFiles: readonly string[];
  /** Dotted names as written: `Date.now`, `console`, and `new Date()` without arguments. */
  readonly uses: ReadonlySet<string>;
  readonly functions: readonly FunctionSize[];
  readonly hasDefaultExport: boolean;
  /** True when it has `export *`, or nothing but exports of other files. */
  readonly isBarrel: boolean;
  /** True when it declares nothing that exists at run time, but plain constants. */
  readonly hasCode: boolean;
}

/** Any node of the tree: a type and whatever fields that type has. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const FUNCTION_TYPES = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

export function parseSource(path: string, text: string): SourceFile {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const body = program.body as unknown as readonly Node[];
  const seen = { imports: [] as Import[], namedFiles: [] as string[], uses: new Set<string>() };
  const functions: FunctionSize[] = [];
  visit(program as unknown as Node, undefined, (node, parent) => {
    collectImport(node, seen.imports);
    collectUses(node, parent, seen.uses);
    if (node.type === 'Literal' && typeof node.value === 'string' && /\.(ts|mjs)$/.test(node.value)) {
      seen.namedFiles.push(join(dirname(path), node.value));
    }
    if (FUNCTION_TYPES.has(node.type) && node.body !== null) {
      functions.push({ name: functionName(node, parent), lineCount: ownLineCount(node, text) });
    }
  });
  return {
    path,
    text,
    lineCount: text.split('\n').length - (text.endsWith('\n') ? 1 : 0),
    ...seen,
    functions,
    hasDefaultExport: body.some(
      (node) => node.type === 'ExportDefaultDeclaration' || exportsName(node, 'default'),
    ),
    isBarrel: isBarrel(body),
    hasCode: body.some(isCode),
  };
}

function visit(
  node: Node,
  parent: Node | undefined,
  see: (node: Node, parent: Node | undefined) => void,
): void {
  see(node, parent);
  for (const child of children(node)) visit(child, node, see);
}

function children(node: Node): Node[] {
  return Object.values(node).flat().filter(isNode);
}

function isNode(field: unknown): field is Node {
  return typeof field === 'object' && field !== null && typeof (field as Node).type === 'string';
}

function collectImport(node: Node, imports: Import[]): void {
  const source = node.source as Node | null | undefined;
  if (typeof source?.value !== 'string') return;
  const specifiers = (node.specifiers as readonly Node[] | undefined) ?? [];
  const names = specifiers.map(
    (specifier) => ((specifier.imported ?? specifier.local) as Node | undefined)?.name,
  );
  const isWhole = node.type !== 'ImportDeclaration' && node.type !== 'ExportNamedDeclaration';
  const hasNamespace = specifiers.some((specifier) => specifier.type !== 'ImportSpecifier');
  imports.push({ specifier: source.value, names: isWhole || hasNamespace ? ['*'] : (names as string[]) });
}

function collectUses(node: Node, parent: Node | undefined, uses: Set<string>): void {
  if (node.type === 'MemberExpression') {
    const name = dottedName(node);
    if (name !== undefined) uses.add(name.replace(/^globalThis\./, ''));
  }
  if (node.type === 'NewExpression' && (node.arguments as readonly Node[]).length === 0) {
    const callee = node.callee as Node;
    if (callee.type === 'Identifier') uses.add(`new ${callee.name}()`);
  }
  // A property of that name is somebody else's: only the free name counts.
  const isProperty =
    parent?.type === 'MemberExpression' && parent.property === node && parent.computed !== true;
  const isKey = parent?.type === 'Property' && parent.key === node;
  const isMember = parent?.type === 'MethodDefinition' || parent?.type.startsWith('TS') === true;
  if (node.type === 'Identifier' && !isProperty && !isKey && !isMember) uses.add(node.name as string);
}

/** `a.b.c`, or undefined where a link is not a plain name. */
function dottedName(node: Node): string | undefined {
  if (node.type === 'Identifier') return node.name as string;
  if (node.type !== 'MemberExpression' || node.computed === true) return undefined;
  const object = dottedName(node.object as Node);
  return object === undefined ? undefined : `${object}.${(node.property as Node).name}`;
}

function functionName(node: Node, parent: Node | undefined): string {
  const named = (node.id ?? parent?.id ?? parent?.key) as Node | null | undefined;
  if (typeof named?.name === 'string') return named.name;
  const callee = parent?.type === 'CallExpression' ? dottedName(parent.callee as Node) : undefined;
  return callee === undefined ? '(anonymous)' : `(argument of ${callee})`;
}

/**
 * Lines of a function without those of functions named inside of it: a factory that closes over its state is read one
 * inner function at a time, as a class is read by methods. Callbacks have no name and count in full.
 */
function ownLineCount(outer: Node, text: string): number {
  const countLines = (node: Node) => text.slice(node.start, node.end).split('\n').length;
  const inner = (node: Node): number => {
    let lineCount = 0;
    for (const child of children(node)) {
      const isNamed = FUNCTION_TYPES.has(child.type) && isNamedByParent(child, node);
      lineCount += isNamed ? countLines(child) - 1 : inner(child);
    }
    return lineCount;
  };
  return countLines(outer) - inner(outer);
}

function isNamedByParent(node: Node, parent: Node): boolean {
  if (node.type === 'FunctionDeclaration') return true;
  return ['VariableDeclarator', 'Property', 'MethodDefinition', 'PropertyDefinition'].includes(parent.type);
}

function exportsName(node: Node, name: string): boolean {
  const specifiers = (node.specifiers as readonly Node[] | undefined) ?? [];
  return specifiers.some((specifier) => (specifier.exported as Node | undefined)?.name === name);
}

function isBarrel(body: readonly Node[]): boolean {
  if (body.some((node) => node.type === 'ExportAllDeclaration')) return true;
  const isReexport = (node: Node) => node.type === 'ExportNamedDeclaration' && node.declaration === null;
  return body.some(isReexport) && body.every((node) => isReexport(node) || node.type === 'ImportDeclaration');
}

function isCode(node: Node): boolean {
  const declared = (node.declaration as Node | null | undefined) ?? node;
  return declared.type === 'FunctionDeclaration' || declared.type === 'ClassDeclaration';
}
