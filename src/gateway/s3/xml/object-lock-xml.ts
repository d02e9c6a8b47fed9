// The documents of object lock: the configuration of a bucket (service 2.4), retention and legal hold of a version. They are
// taken with and without a namespace.
import type { Steps } from '../../../base/async/steps.ts';
import { parseIsoDate } from '../../../base/text/iso-dates.ts';
import { childOf, textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import { xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import { AppError } from '../../../types/errors.ts';
import type { Retention } from '../../../types/protection.ts';
import { type DefaultRetention, RETENTION_PERIOD_MAX } from '../../../types/retention.ts';
import { invalidArgument } from '../request/arguments.ts';
import { RETENTION_MODES } from '../request/object-lock.ts';
import { s3Document } from '../request/vendor.ts';
import { readXmlBody } from './xml-body.ts';

const INTEGER = /^[+-]?\d{1,18}$/;

// ---- of a bucket ----

/** `none`: no rule; `cleared`: the rule of a configuration that was cleared, with nothing in its elements. */
export type GivenRule =
  | { kind: 'none' }
  | { kind: 'cleared' }
  | { kind: 'rule'; retention: DefaultRetention };

/** The body of PutObjectLockConfiguration. MalformedXML, InvalidRetentionPeriod, InvalidArgument for too long a period. */
export function* parseObjectLockBody(body: Uint8Array): Steps<GivenRule> {
  return yield* readXmlBody(body, 'ObjectLockConfiguration', (root) => {
    if (textOf(root, 'ObjectLockEnabled') !== 'Enabled') throw new XmlError('not ObjectLockEnabled');
    const rule = childOf(root, 'Rule');
    if (rule === undefined) return { kind: 'none' };
    const retention = childOf(rule, 'DefaultRetention');
    if (retention === undefined) throw new XmlError('a Rule without DefaultRetention');
    return parseDefaultRetention(retention);
  });
}

function parseDefaultRetention(element: XmlElement): GivenRule {
  refuseEventHolds(element, 'DefaultEventHold');
  const [mode, days, years] = ['Mode', 'Days', 'Years'].map((name) => textOf(element, name));
  const isNamed = mode !== undefined && (days !== undefined || years !== undefined);
  if (isNamed && !mode && !days && !years) return { kind: 'cleared' };
  if (days !== undefined && years !== undefined) throw new XmlError('Days and Years');
  if (days !== undefined)
    return { kind: 'rule', retention: { mode: parseMode(mode), days: parsePeriod('days', days) } };
  return { kind: 'rule', retention: { mode: parseMode(mode), years: parsePeriod('years', years) } };
}

function parsePeriod(unit: 'days' | 'years', text = ''): number {
  if (!INTEGER.test(text)) throw new XmlError(`${unit} of ${text}`);
  const period = Number(text);
  if (period <= 0) {
    const message = 'Default retention period must be a positive integer value.';
    throw new AppError('InvalidRetentionPeriod', { message });
  }
  if (period <= RETENTION_PERIOD_MAX[unit]) return period;
  const name = unit === 'days' ? 'Days' : 'Years';
  throw invalidArgument({ name, value: text, message: 'Default retention period too large.' });
}

/** Of a bucket with a lock. Cleared, it shows the elements of a rule with nothing in them (service 4.1, extensions 5). */
export function objectLockDocument(lock: { defaultRetention?: DefaultRetention; isCleared?: true }): string {
  const { defaultRetention, isCleared } = lock;
  const { mode = '', days, years } = defaultRetention ?? {};
  const hasRule = defaultRetention !== undefined || isCleared === true;
  const shownDays = years === undefined ? xmlText('Days', days ?? '') : '';
  const rule = xmlElement('DefaultRetention', xmlText('Mode', mode), shownDays, xmlText('Years', years));
  return s3Document(
    'ObjectLockConfiguration',
    xmlText('ObjectLockEnabled', 'Enabled'),
    hasRule ? xmlElement('Rule', rule) : '',
  );
}

// ---- of a version ----

/** The body of PutObjectRetention; null takes the retention away. MalformedXML. */
export function* parseRetentionBody(body: Uint8Array): Steps<Retention | null> {
  return yield* readXmlBody(body, 'Retention', (root) => {
    for (const name of ['EventHold', 'EventHoldDuration']) refuseEventHolds(root, name);
    const [mode, until] = ['Mode', 'RetainUntilDate'].map((name) => textOf(root, name));
    if (!mode && !until) return null;
    const untilMs = parseIsoDate(until ?? '');
    if (untilMs === undefined) throw new XmlError(`RetainUntilDate of ${until}`);
    return { mode: parseMode(mode), untilMs };
  });
}

export function retentionDocument({ mode, untilMs }: Retention): string {
  return s3Document(
    'Retention',
    xmlText('Mode', mode),
    xmlText('RetainUntilDate', new Date(untilMs).toISOString()),
  );
}

/** The body of PutObjectLegalHold: whether it is on. MalformedXML. */
export function* parseLegalHoldBody(body: Uint8Array): Steps<{ isOn: boolean }> {
  return yield* readXmlBody(body, 'LegalHold', (root) => {
    const status = textOf(root, 'Status');
    if (status !== 'ON' && status !== 'OFF') throw new XmlError(`Status of ${status}`);
    return { isOn: status === 'ON' };
  });
}

export function legalHoldDocument({ isOn }: { isOn: boolean }): string {
  return s3Document('LegalHold', xmlText('Status', isOn ? 'ON' : 'OFF'));
}

function parseMode(text: string | undefined): Retention['mode'] {
  const mode = RETENTION_MODES.find((each) => each === text);
  if (mode === undefined) throw new XmlError(`Mode of ${text}`);
  return mode;
}

/** What is passed over here would be a lock that somebody relies on. NotImplemented. */
function refuseEventHolds(parent: XmlElement, name: string): void {
  if (childOf(parent, name) !== undefined) throw new AppError('NotImplemented');
}
