// Errors of the catalogue as S3's XML. One of three renderers; the others are JSON (operator API) and the messages
// between processes.
import { XML_DECLARATION, xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import type { AppError } from '../../../types/errors.ts';
import { redactElement, redactError } from '../../http/redact.ts';

export interface ErrorPlace {
  /** The path of the request, as sent. */
  resource: string;
  requestId: string;
  hostId: string;
}

/** The document, declaration included; of what came only what redact.ts lets through. */
export function errorXml(error: AppError, place: ErrorPlace): string {
  const { message, fields } = redactError(error);
  const elements = Object.entries(fields).map(([name, value]) => xmlText(name, value));
  return (
    XML_DECLARATION +
    xmlElement(
      'Error',
      xmlText('Code', error.code),
      xmlText('Message', message),
      ...elements,
      xmlText('Resource', redactElement(place.resource)),
      xmlText('RequestId', place.requestId),
      xmlText('HostId', place.hostId),
    )
  );
}
