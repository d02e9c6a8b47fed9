// holdfast account sub import: sub-accounts of a spreadsheet, as CSV with a head. What is there already by its e-mail address is
// left alone, so that the same file may be given again. Every row is reported; one that is wrong keeps no other from its turn.
import { readFile } from 'node:fs/promises';
import { parse } from 'csv-parse/sync';
import { ownValue } from '../base/own-value.ts';
import { Refusal } from '../base/refusal.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatForeign, formatTable } from './format.ts';
import { type OperatorClient, OperatorRefusal } from './operator-client.ts';
import { askAll, type SubAccount } from './sub-account-commands.ts';

/** Columns, as a spreadsheet may call them: case, blanks, underscores and hyphens do not count. */
const COLUMNS: Readonly<Record<string, keyof Row>> = {
  name: 'name',
  company: 'name',
  email: 'email',
  mail: 'email',
  accountemail: 'email',
  password: 'password',
  control: 'control',
  controlaccountid: 'control',
  state: 'state',
  trialdays: 'trialDays',
  trialquotatb: 'trialQuotaTB',
  storagetb: 'storageTB',
  purchasedstoragetb: 'storageTB',
  quota: 'quota',
  address1: 'address1',
  address: 'address1',
  city: 'city',
  zip: 'zip',
  country: 'country',
  phone: 'mainPhone',
  mainphone: 'mainPhone',
  vatnumber: 'vatNumber',
  contactemail: 'contactEmail',
  billingemail: 'billingEmail',
};
const ROWS_MAX = 100_000;
const FILE_BYTES_MAX = 64 * 1024 * 1024;

interface Row {
  name?: string;
  email?: string;
  password?: string;
  control?: string;
  state?: string;
  trialDays?: string;
  trialQuotaTB?: string;
  storageTB?: string;
  quota?: string;
  address1?: string;
  city?: string;
  zip?: string;
  country?: string;
  mainPhone?: string;
  vatNumber?: string;
  contactEmail?: string;
  billingEmail?: string;
}

export interface ImportedRow {
  /** Of the file, the head being line 1. */
  line: number;
  email: string;
  outcome: 'made' | 'there-already' | 'would-be-made' | 'wrong';
  id?: number;
  accessKey?: string;
  secretKey?: string;
  reason?: string;
}

export interface ImportOptions extends ConnectOptions {
  dryRun?: boolean;
  control?: string;
}

export async function importSubAccounts(
  context: CliContext,
  file: string,
  options: ImportOptions,
): Promise<void> {
  const rows = readRows(await readCsv(file));
  const client = await connect(context, options);
  const known = new Map<string, number>();
  const query = {};
  for (const { id, accountEmail } of await askAll<SubAccount>(client, '/sub-accounts', query))
    known.set(accountEmail.toLowerCase(), id);
  const imported: ImportedRow[] = [];
  for (const row of rows) imported.push(await importRow(client, row, known, options));
  context.print(formatAnswer(options, imported, () => reportOf(imported)));
  const wrong = imported.filter(({ outcome }) => outcome === 'wrong').length;
  const others = options.dryRun === true ? 'nothing was made' : 'the others are done';
  if (wrong > 0) throw new Refusal(`${wrong} of ${rows.length} rows are wrong; ${others}`);
}

async function readCsv(file: string): Promise<string> {
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new Refusal(`${file} cannot be read: ${cause instanceof Error ? cause.message : ''}`);
  });
  if (bytes.length > FILE_BYTES_MAX) throw new Refusal(`${file} has more than ${FILE_BYTES_MAX} bytes`);
  return bytes.toString('utf8');
}

/** The rows, each with its line in the file. Throws {@link Refusal}. */
export function readRows(text: string): (Row & { line: number })[] {
  const head = text.slice(0, text.search(/\r|\n|$/));
  // Spreadsheets of some countries separate by semicolons.
  const delimiter = head.includes(';') && !head.includes(',') ? ';' : ',';
  let records: { record: string[]; info: { lines: number } }[];
  try {
    records = parse(text, {
      delimiter,
      bom: true,
      info: true,
      trim: true,
      skip_empty_lines: true,
      relax_column_count: true,
    }) as unknown as typeof records;
  } catch (cause) {
    throw new Refusal(`the file is not CSV: ${cause instanceof Error ? cause.message : ''}`);
  }
  const [first, ...others] = records;
  if (first === undefined) throw new Refusal('the file has no row');
  if (others.length > ROWS_MAX) throw new Refusal(`the file has more than ${ROWS_MAX} rows`);
  const columns = first.record.map((title) => columnOf(title));
  for (const needed of ['name', 'email'] as const)
    if (!columns.includes(needed)) throw new Refusal(`the file has no column ${needed}`);
  return others.map(({ record, info }) => {
    const row: Row & { line: number } = { line: info.lines };
    for (const [at, column] of columns.entries()) {
      const value = record[at];
      if (value !== undefined && value !== '') row[column] = value;
    }
    return row;
  });
}

function columnOf(title: string): keyof Row {
  const column = ownValue(COLUMNS, title.toLowerCase().replace(/[\s_-]/g, ''));
  if (column === undefined) {
    const names = [...new Set(Object.values(COLUMNS))].join(', ');
    throw new Refusal(`the column ${JSON.stringify(title)} is not known: there are ${names}`);
  }
  return column;
}

async function importRow(
  client: OperatorClient,
  row: Row & { line: number },
  known: Map<string, number>,
  { dryRun = false, control }: ImportOptions,
): Promise<ImportedRow> {
  const { line, email = '' } = row;
  const id = known.get(email.toLowerCase());
  if (id !== undefined) return { line, email, outcome: 'there-already', id };
  try {
    const body = bodyOf(row, control);
    // A second row of the same address is reported as the first one would be.
    if (dryRun) {
      known.set(email.toLowerCase(), 0);
      return { line, email, outcome: 'would-be-made' };
    }
    const { data } = (await client.call('POST', '/sub-accounts', body)) as { data: SubAccount };
    known.set(email.toLowerCase(), data.id);
    const { accessKey, secretKey } = data;
    const keys = { ...(accessKey && { accessKey }), ...(secretKey && { secretKey }) };
    return { line, email, outcome: 'made', id: data.id, ...keys };
  } catch (error) {
    // What a row is refused for is the row's. Without an answer there is none for the next one either.
    const isRows = !(error instanceof OperatorRefusal) || error.status < 500;
    if (!(error instanceof Refusal) || !isRows) throw error;
    return { line, email, outcome: 'wrong', reason: error.message };
  }
}

/** Throws {@link Refusal} for what can be told to be wrong without the server. */
function bodyOf(row: Row & { line: number }, control: string | undefined): object {
  const { line: _, name, email, password, state = 'paid', quota, ...rest } = row;
  const { trialDays, trialQuotaTB, storageTB, control: own, ...contact } = rest;
  if (name === undefined || email === undefined) throw new Refusal('name and email are required');
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) throw new Refusal('email must be an e-mail address');
  if (state !== 'paid' && state !== 'trial') throw new Refusal('state must be paid or trial');
  if (quota !== undefined && quota !== 'hard' && quota !== 'soft')
    throw new Refusal('quota must be hard or soft');
  return {
    name,
    accountEmail: email,
    password,
    sendWelcomeEmail: password === undefined ? true : undefined,
    controlAccountId: numberIn('control', own ?? control),
    isTrial: state === 'trial',
    trialDays: numberIn('trialDays', trialDays),
    trialQuotaTB: numberIn('trialQuotaTB', trialQuotaTB),
    purchasedStorageTB: numberIn('storageTB', storageTB),
    storageQuotaType: quota === undefined ? undefined : quota === 'hard' ? 'Hard quota' : 'Soft quota',
    ...contact,
  };
}

/** Also as other countries write it: 1,5. */
function numberIn(column: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const plain = text.replace(',', '.');
  if (!/^\d{1,15}(\.\d{1,6})?$/.test(plain))
    throw new Refusal(`${column} must be a number that is not negative`);
  return Number(plain);
}

function reportOf(rows: readonly ImportedRow[]): string {
  const head = ['LINE', 'OUTCOME', 'ID', 'ACCESS KEY', 'SECRET KEY', 'E-MAIL', 'REASON'];
  const lines = rows.map(({ line, outcome, id, accessKey, secretKey, email, reason }) => [
    String(line),
    outcome.replaceAll('-', ' '),
    id === undefined || id === 0 ? '-' : String(id),
    accessKey ?? '-',
    secretKey ?? '-',
    formatForeign(email),
    formatForeign(reason ?? ''),
  ]);
  return formatTable([head, ...lines]);
}
