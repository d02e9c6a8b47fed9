// holdfast policy explain: whether a user, group or role may do something, and which statement of which policy says so. The
// server decides (AWS "SimulatePrincipalPolicy"), and nothing is done. The policy of the bucket is looked at where the keys may read it.
import { Refusal } from '../../base/refusal.ts';
import { childOf, type XmlElement } from '../../base/xml/parse-xml.ts';
import {
  type CliContext,
  type ConnectOptions,
  connectIdentity,
  type IdentityConnection,
} from '../connect.ts';
import { formatAnswer, formatForeign } from '../format.ts';
import { S3Refusal } from '../s3-client.ts';
import { field, jsonOf } from './answers.ts';
import { isGroup, type Place, type PolicyTexts, readPolicyTexts, statementAt } from './policy-texts.ts';
import { membersOf } from './query-client.ts';

export interface ExplainOptions extends ConnectOptions {
  as: string;
  action: string[];
  resource?: string[];
  /** `key=value`; a key may come again with another value. */
  context?: string[];
}

/** Gives the exit code: 0 where all is allowed, 1 where something is not. */
export async function explainPolicy(context: CliContext, options: ExplainOptions): Promise<number> {
  const entries = contextEntries(options.context ?? []);
  const { resource: resources = [] } = options;
  const connection = await connectIdentity(context, options);
  // It is about callers, and a group is none.
  const bucketPolicy: BucketPolicy = isGroup(options.as) ? {} : await readBucketPolicy(connection, resources);
  const results = await connection.query.list('SimulatePrincipalPolicy', 'EvaluationResults', {
    PolicySourceArn: options.as,
    ActionNames: options.action,
    ResourceArns: resources.length === 0 ? undefined : resources,
    ContextEntries: entries,
    ResourcePolicy: bucketPolicy.text,
  });
  const decisions = results.flatMap(decisionsOf);
  const ids = new Set(decisions.flatMap(({ statements }) => statements.map(({ id }) => id)));
  const texts = new Map(
    await readPolicyTexts(connection.query, { arn: options.as, isWanted: (id) => ids.has(id) }),
  );
  if (bucketPolicy.text !== undefined) texts.set(BUCKET_POLICY_ID, bucketPolicy.text);
  const notes = bucketPolicy.unread === undefined ? [] : [bucketPolicy.unread];
  const forPeople = () => [...decisions.map((decided) => describe(decided, texts)), ...notes].join('\n\n');
  const answer = { EvaluationResults: results.map(jsonOf), BucketPolicy: bucketPolicy.text ?? null };
  context.print(formatAnswer(options, answer, forPeople));
  return decisions.every(({ decision }) => decision === 'allowed') ? 0 : 1;
}

/** As the API takes it: one entry for each key, with its values. */
function contextEntries(pairs: readonly string[]): Record<string, string>[] | undefined {
  const values = new Map<string, string[]>();
  for (const pair of pairs) {
    const equals = pair.indexOf('=');
    if (equals <= 0) throw new Refusal(`--context takes key=value, not "${pair}"`);
    const key = pair.slice(0, equals);
    values.set(key, [...(values.get(key) ?? []), pair.slice(equals + 1)]);
  }
  if (values.size === 0) return undefined;
  return [...values].map(([ContextKeyName, list]) => ({
    ContextKeyName,
    ContextKeyType: list.length > 1 ? 'stringList' : 'string',
    ...Object.fromEntries(list.map((value, index) => [`ContextKeyValues.member.${index + 1}`, value])),
  }));
}

/** As the API names the one that is given to it. */
const BUCKET_POLICY_ID = 'ResourcePolicy';

interface BucketPolicy {
  /** Absent: there is none, or it cannot be read. */
  readonly text?: string;
  /** What people are told where it could not be read. */
  readonly unread?: string;
}

/** Of the bucket that all resources are of. */
async function readBucketPolicy(
  { s3 }: IdentityConnection,
  resources: readonly string[],
): Promise<BucketPolicy> {
  const buckets = new Set(resources.map((arn) => /^arn:aws:s3:::([^/*?$]+)(?:\/|$)/.exec(arn)?.[1]));
  const [bucket] = buckets;
  if (bucket === undefined || buckets.size > 1) return {};
  try {
    const answer = await s3.open({ method: 'GET', bucket, query: { policy: '' } });
    return { text: await answer.text() };
  } catch (error) {
    if (!(error instanceof S3Refusal)) throw error;
    if (error.status === 404) return {};
    const unread = `The policy of bucket ${bucket} was not looked at: ${error.message}`;
    return { unread };
  }
}

interface MatchedStatement {
  readonly id: string;
  readonly type: string;
  readonly start: Place | undefined;
  readonly end: Place | undefined;
}

interface Decided {
  readonly action: string;
  readonly resource: string;
  readonly decision: string;
  readonly statements: readonly MatchedStatement[];
  readonly missing: readonly string[];
  readonly isBeyondBoundary: boolean;
}

/** One for each resource, where there are several. */
function decisionsOf(result: XmlElement): Decided[] {
  const boundary = childOf(result, 'PermissionsBoundaryDecisionDetail');
  const common = {
    action: field(result, 'EvalActionName'),
    isBeyondBoundary: boundary !== undefined && field(boundary, 'AllowedByPermissionsBoundary') === 'false',
  };
  const read = (from: XmlElement, names: { resource: string; decision: string }): Decided => ({
    ...common,
    resource: field(from, names.resource),
    decision: field(from, names.decision),
    statements: membersOf(from, 'MatchedStatements').map((statement) => ({
      id: field(statement, 'SourcePolicyId'),
      type: field(statement, 'SourcePolicyType'),
      start: placeOf(statement, 'StartPosition'),
      end: placeOf(statement, 'EndPosition'),
    })),
    missing: membersOf(from, 'MissingContextValues').map(({ text }) => text),
  });
  const specific = membersOf(result, 'ResourceSpecificResults');
  if (specific.length > 1) {
    const names = { resource: 'EvalResourceName', decision: 'EvalResourceDecision' };
    return specific.map((each) => read(each, names));
  }
  return [read(result, { resource: 'EvalResourceName', decision: 'EvalDecision' })];
}

const DECISIONS: Readonly<Record<string, string>> = {
  allowed: 'allowed',
  explicitDeny: 'denied: a statement denies it',
  implicitDeny: 'denied: no statement allows it',
};

function describe(
  { action, resource, decision, statements, missing, isBeyondBoundary }: Decided,
  texts: PolicyTexts,
): string {
  const head = `${action} on ${resource}: ${DECISIONS[decision] ?? decision}`;
  const lines = statements.map(
    ({ id, type, start, end }) => `  by ${id} (${type})${describeStatement(texts.get(id), { start, end })}`,
  );
  const notes = [
    ...(isBeyondBoundary ? ['  the permissions boundary does not allow it'] : []),
    ...(missing.length === 0 ? [] : [`  not given, and asked for by conditions: ${missing.join(', ')}`]),
  ];
  return [head, ...lines, ...notes].map(formatForeign).join('\n');
}

function placeOf(statement: XmlElement, name: string): Place | undefined {
  const position = childOf(statement, name);
  return position && { line: Number(field(position, 'Line')), column: Number(field(position, 'Column')) };
}

/** Its Sid, else all of it; where the text is not known, where it stands. */
function describeStatement(
  text: string | undefined,
  { start, end }: Pick<MatchedStatement, 'start' | 'end'>,
): string {
  if (start === undefined || end === undefined) return '';
  const statement = text === undefined ? undefined : statementAt(text, { start, end });
  return `, statement ${statement ?? `in line ${start.line}, column ${start.column}`}`;
}
