// The two documents of Veeam's Smart Object Storage API (SOSAPI 1.0), which tell a backup program what it writes to: what the
// store can do, and how much room it has. The API has no other calls: they are read as objects (sos-objects.ts).
import { escapeXml, XML_DECLARATION, xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { StoreCapacity } from './capacity.ts';

/** SOSAPI has these two values in quotes. */
const quoted = (name: string, value: string) => xmlElement(name, `"${escapeXml(value)}"`);

/**
 * What Veeam does without a recommendation: they are said so that nobody looks for them. Its limit of parallel tasks has a default
 * of none, and is left out.
 */
const RECOMMENDATIONS = xmlElement(
  'SystemRecommendations',
  xmlText('S3ConcurrentTaskLimit', 64),
  xmlText('S3MultiObjectDeleteLimit', LIMITS.deleteObjectsKeysMax),
  xmlText('KbBlockSize', 1024),
);

/**
 * UploadSessions would have the store say where to send each backup, which one endpoint needs not. IAMSTS would have Veeam make
 * users and sessions for its agents by the IAM and STS endpoints that it is told; none of that has been tried with Veeam.
 */
export function systemDocument({ version }: { version: string }): string {
  return (
    XML_DECLARATION +
    xmlElement(
      'SystemInfo',
      quoted('ProtocolVersion', '1.0'),
      quoted('ModelName', `Holdfast ${version}`),
      xmlElement(
        'ProtocolCapabilities',
        xmlText('CapacityInfo', true),
        xmlText('UploadSessions', false),
        xmlText('IAMSTS', false),
      ),
      RECOMMENDATIONS,
    )
  );
}

/** In bytes. What is kept in reserve counts as used: the two parts are the whole. */
export function capacityDocument({ totalBytes, availableBytes }: StoreCapacity): string {
  return (
    XML_DECLARATION +
    xmlElement(
      'CapacityInfo',
      xmlText('Capacity', totalBytes),
      xmlText('Available', availableBytes),
      xmlText('Used', totalBytes - availableBytes),
    )
  );
}
