// Usage of accounts and buckets by day, and its recount, for `holdfast usage`.
import type { FastifyInstance } from 'fastify';
import { OPERATORS } from '../../../accounts/present-places.ts';
import { nextTurn } from '../../../base/async/next-turn.ts';
import { sortInSteps } from '../../../base/async/sort-in-steps.ts';
import { finishInTurns } from '../../../base/async/steps.ts';
import { AppError } from '../../../types/errors.ts';
import { dateOf, dayOf, parseDate } from '../../../types/months.ts';
import { parseBucketName } from '../../../types/names.ts';
import { METERED_NOTHING, type UsageDay, type UsageFigures } from '../../../types/usage.ts';
import {
  booleanOf,
  type FieldsOf,
  inputOf,
  listOf,
  numberOf,
  objectOf,
  oneOf,
  optional,
  textOf,
} from '../../http/json-schemas.ts';
import { lookUpBucket } from '../../s3/buckets/bucket-cache.ts';
import type { OperatorContext } from '../operator-context.ts';
import { Recount, type RecountStep, type WrongCounter } from '../recount-usages.ts';

interface ShownDay extends UsageFigures {
  day: string;
  isClosed: boolean;
}

type AccountTotal = UsageFigures & { account: string };

interface Days {
  account: string;
  from?: string;
  to?: string;
  bucket?: string;
}

interface PageAsked {
  page?: number;
  size?: number;
}

const FIGURE_NAMES = Object.keys(METERED_NOTHING) as (keyof UsageFigures)[];
const FIGURES = Object.fromEntries(FIGURE_NAMES.map((name) => [name, numberOf()])) as FieldsOf<UsageFigures>;
const TAGS = ['usage'];
const DAYS_DEFAULT = 31;
const DAYS_MAX = 400;
const PAGE_SIZE = 100;
const PAGE_SIZE_MAX = 1000;
const WHOLE = { type: 'integer', minimum: 1, maximum: 1_000_000_000 } as const;

function dayIn(field: 'from' | 'to', text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const day = parseDate(text);
  if (day === undefined) throw wrong(field, 'must be a day, as 2026-11-05');
  return day;
}

function wrong(field: string, problem: string): AppError {
  return new AppError('ValidationError', { message: `${field} ${problem}`, fields: { [field]: problem } });
}

function figuresOf(usage: UsageFigures): UsageFigures {
  return Object.fromEntries(FIGURE_NAMES.map((name) => [name, usage[name]])) as unknown as UsageFigures;
}

function shownOf(usage: UsageDay): ShownDay {
  return { day: dateOf(usage.day), isClosed: usage.isClosed, ...figuresOf(usage) };
}

/** Closed days of the range, and today where it is in it. */
async function readDays(
  { usages, accounts, metadata, clock }: OperatorContext,
  { account, from, to, bucket }: Days,
): Promise<{ days: ShownDay[] }> {
  const { accountId } = (await accounts.find(account)).account;
  const today = dayOf(clock.wallMs());
  const toDay = dayIn('to', to) ?? today;
  const fromDay = dayIn('from', from) ?? toDay - DAYS_DEFAULT + 1;
  if (toDay - fromDay >= DAYS_MAX) throw wrong('from', `must be ${DAYS_MAX} days before the end at most`);
  const name = bucket === undefined ? undefined : parseBucketName(bucket);
  if (bucket !== undefined && name === undefined) throw wrong('bucket', 'must be the name of a bucket');
  // Under its name of today or of then.
  const present = name && (await lookUpBucket(metadata, name))?.record.bucketId;
  const isAsked = (usage: UsageDay) =>
    name === undefined || usage.bucketName === name || (present !== undefined && usage.bucketId === present);
  const range = { fromDay, toDay };
  const closed =
    name === undefined
      ? await usages.byAccount([accountId], range)
      : await usages.byBucket(accountId, { ...range, isWanted: isAsked });
  const isNow = today >= fromDay && today <= toDay;
  const ofBucket = name === undefined ? undefined : isAsked;
  const open = isNow ? await usages.currentOf(accountId, OPERATORS, ofBucket) : undefined;
  if (name !== undefined && closed.length === 0 && open === undefined && present === undefined)
    throw new AppError('NoSuchEntity', { message: 'There is no bucket of that name.' });
  const now = open === undefined ? [] : [{ ...open, day: today, accountId, isClosed: false }];
  return { days: [...closed, ...now].map(shownOf) };
}

export async function usages(app: FastifyInstance, { context }: { context: OperatorContext }): Promise<void> {
  app.post<{ Body: PageAsked }>(
    '/usage/totals',
    {
      schema: {
        operationId: 'ListUsage',
        summary: 'See what all accounts had on the last closed day',
        tags: TAGS,
        body: inputOf<PageAsked>({
          page: optional({ ...WHOLE, description: 'From 1 on.' }),
          size: optional({
            ...WHOLE,
            description: `Accounts of a page: ${PAGE_SIZE}; ${PAGE_SIZE_MAX} at most.`,
          }),
        }),
        response: {
          200: {
            description: 'A page of accounts, by number. Those without any usage are left out.',
            ...objectOf<{ day: string | null; accounts: AccountTotal[]; total: number }>({
              day: { type: ['string', 'null'], description: 'null: no day is closed yet.' },
              accounts: listOf(objectOf<AccountTotal>({ account: textOf(), ...FIGURES })),
              total: numberOf('Of all pages.'),
            }),
          },
        },
      },
      config: { errors: ['ServiceUnavailable'] },
    },
    ({ body: { page = 1, size = PAGE_SIZE } }) => listTotals(context, { page, size }),
  );
  app.post<{ Body: Days }>(
    '/usage/find',
    {
      schema: {
        operationId: 'GetUsage',
        summary: 'See the usage of an account or of one of its buckets, by day',
        tags: TAGS,
        body: inputOf<Days>({
          account: textOf('Its id, name, e-mail address or canonical id.'),
          from: optional(textOf(`The first day. ${DAYS_DEFAULT} days when absent, ${DAYS_MAX} at most.`)),
          to: optional(textOf('The last day; today when absent.')),
          bucket: optional(textOf('Of this bucket alone.')),
        }),
        response: {
          200: {
            description:
              'Days with records, and today as it is by now. Requests that are not written down yet are not in it.',
            ...objectOf<{ days: ShownDay[] }>({
              days: listOf(
                objectOf<ShownDay>({
                  day: textOf('UTC.'),
                  isClosed: booleanOf('false: the day is not over.'),
                  ...FIGURES,
                }),
              ),
            }),
          },
        },
      },
      config: { errors: ['NoSuchEntity', 'ServiceUnavailable', 'ValidationError'] },
    },
    ({ body }) => readDays(context, body),
  );
  addRecount(app, context);
}

async function listTotals({ usages }: OperatorContext, { page, size }: Required<PageAsked>) {
  const day = await usages.lastClosedDay();
  if (day === undefined) return { day: null, accounts: [], total: 0 };
  const found = [...(await usages.totals(day))];
  const totals = await finishInTurns(
    sortInSteps(found, ([a], [b]) => (a < b ? -1 : 1)),
    nextTurn,
  );
  const bounded = Math.min(size, PAGE_SIZE_MAX);
  const accounts = totals
    .slice((page - 1) * bounded, page * bounded)
    .map(([account, figures]) => ({ account, ...figuresOf(figures) }));
  return { day: dateOf(day), accounts, total: totals.length };
}

interface RecountInput {
  bucket?: string;
  from?: string;
  repair?: boolean;
}

function addRecount(app: FastifyInstance, context: OperatorContext): void {
  app.post<{ Body: RecountInput }>(
    '/usage/recount',
    {
      schema: {
        operationId: 'RecountUsage',
        summary: 'Compare what is metered with all versions that are stored',
        description: 'Some buckets at a time: `next` of the answer goes on as `from`, until there is none.',
        tags: TAGS,
        body: inputOf<RecountInput>({
          bucket: optional(textOf('This bucket alone.')),
          from: optional(textOf('`next` of the answer before.')),
          repair: optional(booleanOf('Adds what is missing. Needs holdfast:RepairUsage, too.')),
        }),
        response: {
          200: {
            description: 'What was counted.',
            ...objectOf<RecountStep>({
              bucketCount: numberOf(),
              wrong: listOf(
                objectOf<WrongCounter>({
                  account: textOf(),
                  bucket: optional(textOf('Absent: of all buckets of the account in a shard.')),
                  of: oneOf('metered', 'held'),
                  field: textOf(),
                  missing: numberOf('By so much the counter is too low.'),
                }),
              ),
              isRepaired: booleanOf('What is wrong was mended.'),
              next: optional(textOf('Absent: all are counted.')),
            }),
          },
        },
      },
      config: {
        errors: ['NoSuchEntity', 'ServiceUnavailable', 'ValidationError'],
        needsToo: ({ body }) => ((body as RecountInput).repair === true ? ['RepairUsage'] : []),
      },
    },
    ({ body: { bucket, from, repair = false } }) => {
      const recount = new Recount(context, { repair });
      return bucket === undefined ? recount.from(from) : recount.bucket(bucket);
    },
  );
}
