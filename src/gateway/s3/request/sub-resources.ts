// The closed list of sub-resources that S3 and its extensions know, in scope or not (s3-behaviour
// "Known sub-resources"). A request that names one which its operation does not claim is refused; other query keys are not.

/** Names that choose an operation. Two of them at once are a contradiction. */
const SELECTORS = [
  'abac',
  'accelerate',
  'acl',
  'analytics',
  'annotation',
  'append',
  'attributes',
  'compliance',
  'compose',
  'cors',
  'delete',
  'encryption',
  'intelligent-tiering',
  'inventory',
  'legal-hold',
  'lifecycle',
  'location',
  'logging',
  'metadataAnnotationTable',
  'metadataConfiguration',
  'metadataInventoryTable',
  'metadataJournalTable',
  'metadataTable',
  'metrics',
  'notification',
  'object-lock',
  'ownershipControls',
  'policy',
  'policyStatus',
  'publicAccessBlock',
  'renameObject',
  'replication',
  'requestPayment',
  'restore',
  'retention',
  'select',
  'session',
  'tagging',
  'torrent',
  'uploads',
  'versioning',
  'versions',
  'website',
] as const;

/** Names that say more about an operation, beside a selector or without one. */
const QUALIFIERS = ['force_delete', 'partNumber', 'uploadId', 'versionId'] as const;

export const SELECTOR_SUB_RESOURCES: ReadonlySet<string> = new Set(SELECTORS);
export const KNOWN_SUB_RESOURCES: ReadonlySet<string> = new Set([...SELECTORS, ...QUALIFIERS]);

/** Parameters that operations read beside them; an operation that does not know one of these passes it over. */
export const OTHER_PARAMETERS: ReadonlySet<string> = new Set([
  'bucket-region',
  'continuation-token',
  'delimiter',
  'encoding-type',
  'fetch-owner',
  'id',
  'key-marker',
  'list-type',
  'marker',
  'max-buckets',
  'max-keys',
  'max-parts',
  'max-uploads',
  'part-number-marker',
  'prefix',
  'select-type',
  'start-after',
  'upload-id-marker',
  'version-id-marker',
]);
