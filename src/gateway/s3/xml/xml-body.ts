// The root element of an operation's XML body, and its elements as the operation needs them: every departure from the
// schema is MalformedXML. Size and digests were checked before (pipeline, step 8). All of it is done in short steps,
// because a body may have several MiB.
import type { Steps } from '../../../base/async/steps.ts';
import { parseXmlInSteps, textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';

const BOUNDS = {
  depthMax: LIMITS.xmlDepthMax,
  nodesMax: LIMITS.xmlNodesMax,
  attributesMax: LIMITS.xmlAttributesMax,
  textUnitsMax: LIMITS.xmlTextUnitsMax,
};
/** Elements of a list that are read in one step, of a few children each. */
const ELEMENTS_PER_STEP = 500;

/** Reads a body with `read`, which may throw XmlError itself. */
export function* readXmlBody<T>(
  body: Uint8Array,
  rootName: string,
  read: (root: XmlElement) => T | Steps<T>,
): Steps<T> {
  try {
    const root = yield* parseXmlInSteps(body, BOUNDS);
    if (root.name !== rootName) throw new XmlError(`${root.name} instead of ${rootName}`);
    const value = read(root);
    return isSteps(value) ? yield* value : value;
  } catch (error) {
    if (error instanceof XmlError) throw new AppError('MalformedXML', { cause: error });
    throw error;
  }
}

/** What `read` makes of each element of a list; `perStep` of them in one step. */
export function* readEach<T>(
  elements: readonly XmlElement[],
  read: (element: XmlElement) => T,
  perStep = ELEMENTS_PER_STEP,
): Steps<T[]> {
  const values: T[] = [];
  for (const element of elements) {
    if (values.length > 0 && values.length % perStep === 0) yield;
    values.push(read(element));
  }
  return values;
}

/** The text of a child that must be there. */
export function requiredText(parent: XmlElement, name: string): string {
  const text = textOf(parent, name);
  if (text === undefined) throw new XmlError(`no ${name} in ${parent.name}`);
  return text;
}

function isSteps<T>(value: T | Steps<T>): value is Steps<T> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value && 'next' in value;
}
