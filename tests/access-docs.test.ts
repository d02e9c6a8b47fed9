// The part of docs/access.md that lists what policies may name, and what operations need, is written by this test (`vitest -u`)
// from the tables of the code; what people have written around it stays.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { OPERATIONS } from '../src/gateway/s3/registry.ts';
import { ACTIONS, type ActionRow, RESOURCE_FORMS, S3_REQUEST_KEYS } from '../src/policy/actions.ts';
import {
  CONDITION_KEYS,
  type ConditionKeyRow,
  GLOBAL_KEYS,
  IDENTITY_KEYS,
  S3_KEYS,
  VENDOR_KEYS,
} from '../src/policy/condition-keys.ts';
import { REQUESTS } from './support/objects/operation-requests.ts';

const PAGE = join(import.meta.dirname, '..', 'docs', 'access.md');
const BEGIN = '<!-- Made by tests/access-docs.test.ts, down to the end mark -->\n';
const END = '<!-- end -->\n';

const code = (text: string) => `\`${text}\``;
const list = (names: readonly string[]) => names.map(code).join(', ');
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |\n`).join('');

const ACTIONS_HEAD = `## Actions

What policies may name. Names of actions are the same in any case; \`*\` and \`?\` stand for a part of one. A resource is

${Object.entries(RESOURCE_FORMS)
  .map(([type, form]) => `- ${type}: ${code(form)}\n`)
  .join('')}
An action of \`any\` is allowed on \`*\` alone. Every action has the [global condition keys](#condition-keys); every one of S3 has
${list(S3_REQUEST_KEYS)} as well.
`;

const SERVICES = [
  ['s3', 'S3'],
  ['iam', 'IAM'],
  ['sts', 'STS'],
  ['holdfast', "The operator's"],
] as const;

function describeAction({ action, resources, keys }: ActionRow): string[] {
  const own = action.startsWith('s3:') ? keys.filter((key) => !S3_REQUEST_KEYS.includes(key)) : keys;
  return [code(action), resources.join(', '), list(own)];
}

function describeActions(): string {
  const sections = SERVICES.map(([service, title]) => {
    const rows = ACTIONS.filter(({ action, isInert }) => action.startsWith(`${service}:`) && !isInert);
    return `\n### ${title}\n\n${table(['Action', 'Resource', 'Condition keys'], rows.map(describeAction))}`;
  });
  const inert = ACTIONS.filter(({ isInert }) => isInert).map(({ action }) => action);
  return `${ACTIONS_HEAD}${sections.join('')}
Policies that are written for AWS may name these too, for which nothing here asks: ${list(inert)}.
`;
}

const KEYS_HEAD = `
## Condition keys

Names of keys are the same in any case. One that ends in \`/\` is a family: behind it stands the key of a tag. A key without a
value in a request does not match, but for the operators that end in \`IfExists\`, those that negate, and \`Null\`.

A value of more than 8,192 characters, which only a header can be, is held against no pattern (\`StringLike\`, \`ArnLike\` and those that
negate): a condition of a statement that denies holds then, and one of a statement that allows does not. So it is with operators of
numbers and dates where a request has something else (\`1e9\`, \`0x1F\`, nothing between the quotes), also with those that negate. Numbers
are compared exactly, to a thousand digits.

Headers are compared as the text that they say in UTF-8.

A header of grants (\`s3:x-amz-grant-*\`) is a list of grantees, which operators of texts compare in one spelling: a policy's
\`id=CANONICAL-ID\` and \`id="CANONICAL-ID"\` are the same, blanks mean nothing, nor does the order of what \`StringEquals\` names.
What a statement allows must be the whole list, as with AWS, and so must what \`StringNotEquals\` spares in a statement that denies.
What a statement denies may be any one of the grantees. An account has an id and an e-mail address: a statement that denies the one
denies every grant by the other kind of name, because nobody looks up whose it is. No key has the ACLs of documents: to keep
somebody from all of them deny \`s3:PutObjectAcl\` and \`s3:PutBucketAcl\` without a condition.
`;

function describeKeys(title: string, rows: readonly ConditionKeyRow[]): string {
  const cells = rows.map(({ name, type, hasMany, help }) => [
    code(name),
    hasMany ? `${type}, several` : type,
    help,
  ]);
  return `\n### ${title}\n\n${table(['Key', 'Type', 'Value'], cells)}`;
}

const OPERATIONS_HEAD = `
## What operations need

What stands in the second column must be allowed, on the object or bucket that it is about: of a copy s3:GetObject on the source.
What stands in the third must not be denied to callers of the bucket's account; others must be allowed that, too. Where a bucket
keeps no versions, AppendObject and ComposeObject are refused to whom s3:DeleteObject is denied. DeleteObjects is decided for each
key by itself. MoveBucket is for the bucket's account alone, and so are the operations on its policy; what the caller's own policies
deny by the old name they must deny by the new one, and allow no more by that; of s3:PutBucketPolicy and s3:PutBucketAcl, which are
asked of the new name, because policy and list come along, only those policies have a say. MoveObject asks for the actions
of versions where the bucket has or had some; and what has an access control list that is not \`private\` moves for nobody to whom
s3:PutObjectAcl is denied at the destination ([extensions.md](extensions.md)).

`;

/** By names of operations, those with more than one form together. */
function describeOperations(): string {
  const rows = REQUESTS.toSorted((a, b) =>
    a.operation < b.operation ? -1 : a.operation > b.operation ? 1 : 0,
  );
  return table(
    ['Operation', 'Actions', 'Not denied'],
    rows.map(({ operation, form, needs, othersNeed = [] }) => [
      [operation, form].filter(Boolean).join(' '),
      needs.length === 0 ? 'none' : list(needs),
      list(othersNeed),
    ]),
  );
}

const SECTIONS = [
  ['Global', GLOBAL_KEYS],
  ['Of S3', S3_KEYS],
  ['Of IAM and STS', IDENTITY_KEYS],
  ['Other names', VENDOR_KEYS],
] as const;

function makeSections(): string {
  const keys = SECTIONS.map(([title, rows]) => describeKeys(title, rows)).join('');
  return `${describeActions()}${KEYS_HEAD}${keys}${OPERATIONS_HEAD}${describeOperations()}`;
}

test('docs/access.md lists actions, condition keys and what operations need', async () => {
  const written = readFileSync(PAGE, 'utf8');
  const [from, to] = [written.indexOf(BEGIN), written.indexOf(END)];
  expect([from > 0, to > from], 'the page has the marks').toEqual([true, true]);
  await expect(
    `${written.slice(0, from)}${BEGIN}\n${makeSections()}\n${written.slice(to)}`,
  ).toMatchFileSnapshot(PAGE);
});

test('every row of the tables is in those sections once, and nothing that is in none', () => {
  const made = makeSections();
  const part = (from: string, to: string) => made.slice(made.indexOf(from), made.indexOf(to));
  const named = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name).sort();
  const actions = part('\n### S3', '\n## Condition keys');
  const inTables = named(actions, /^\| `([a-z0-9]+:[A-Za-z]+)` \|/gm);
  const inert = named(actions.slice(actions.indexOf('for which nothing here asks')), /`(s3:[A-Za-z]+)`/g);
  expect([...inTables, ...inert].sort()).toEqual(ACTIONS.map(({ action }) => action).sort());
  const keys = named(part('\n## Condition keys', '\n## What operations need'), /^\| `([^`]+)` \|/gm);
  expect(keys).toEqual(CONDITION_KEYS.map(({ name }) => name).sort());
  const operations = new Set(
    named(made.slice(made.indexOf('\n## What operations need')), /^\| ([A-Z]\w+)/gm),
  );
  operations.delete('Operation');
  expect([...operations]).toEqual(OPERATIONS.map(({ name }) => name).sort());
});
