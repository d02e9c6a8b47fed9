// The text that a start prints for people; the log has the same facts for machines.

export interface BannerFacts {
  version: string;
  endpoint: string;
  /** Absolute. */
  dataDir: string;
  credentialsFile: string;
  isFirstStart: boolean;
  /** Absent when nobody but a log file would read them. */
  credentials?: { accessKey: string; secretKey: string };
  /** Of a self-signed certificate: its file and SHA-256 fingerprint. */
  certificate?: { file: string; fingerprint: string };
}

/** First a line with version and address; at the first start also credentials and lines to paste. */
export function formatBanner(facts: BannerFacts): string {
  const lines = [`Holdfast ${facts.version}, data in ${facts.dataDir}, is running at ${facts.endpoint}`];
  if (facts.certificate !== undefined) {
    lines.push(
      `Certificate ${facts.certificate.file}, self-signed, SHA-256 fingerprint ${facts.certificate.fingerprint}`,
    );
  }
  if (!facts.isFirstStart) return [...lines, `Root credentials: ${facts.credentialsFile}`, ''].join('\n');
  return [...lines, '', ...credentialLines(facts), '', ...clientLines(facts), ''].join('\n');
}

function credentialLines({ credentials, credentialsFile }: BannerFacts): string[] {
  if (credentials === undefined) return [`The access key and the secret key are in ${credentialsFile}`];
  return [
    `Access key  ${credentials.accessKey}`,
    `Secret key  ${credentials.secretKey}`,
    `Both are kept in ${credentialsFile} and not shown again.`,
  ];
}

function clientLines({ endpoint, credentials, credentialsFile, certificate }: BannerFacts): string[] {
  // Where the secret must not be printed, the lines take it from the file when they are pasted.
  const fromFile = (name: string) =>
    `"$(sed -n 's/.*"${name}": "\\(.*\\)".*/\\1/p' ${quote(credentialsFile)})"`;
  const accessKey = credentials?.accessKey ?? fromFile('accessKey');
  const secretKey = credentials === undefined ? fromFile('secretKey') : quote(credentials.secretKey);
  const trust = (flag: string) => (certificate === undefined ? '' : ` ${flag}${quote(certificate.file)}`);
  return [
    'For the AWS CLI and restic:',
    `  export AWS_ACCESS_KEY_ID=${accessKey} AWS_SECRET_ACCESS_KEY=${secretKey}`,
    `  export AWS_ENDPOINT_URL=${endpoint} AWS_DEFAULT_REGION=us-east${trust('AWS_CA_BUNDLE=')}`,
    '  aws s3 mb s3://backups',
    '  aws s3 sync ~/Documents s3://backups/documents',
    `  restic${trust('--cacert ')} -r s3:${endpoint}/restic init`,
    'For rclone:',
    `  rclone config create holdfast s3 provider=Other endpoint=${endpoint} region=us-east access_key_id=${accessKey} secret_access_key=${secretKey}`,
    // It fails over the one for the AWS CLI.
    `  ${certificate === undefined ? '' : 'env -u AWS_CA_BUNDLE '}rclone${trust('--ca-cert ')} sync ~/Documents holdfast:backups/documents`,
  ];
}

/** For a shell, when it needs it. */
function quote(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
