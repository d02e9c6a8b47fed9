// What people paste to use a key with a bucket: for restic, rclone and the AWS CLI. cmd/banner.ts has the same for the root
// account, without a bucket.

export interface ClientFacts {
  readonly endpoint: string;
  /** To trust beside the usual ones: a self-signed certificate. */
  readonly certificateFile: string | undefined;
  readonly bucket: string;
  /** Of the remote and of the profile. */
  readonly name: string;
  readonly accessKey: string;
  readonly secretKey: string;
  /** The key may not delete restic's locks. */
  readonly keepsLocks: boolean;
}

/** As the names of answers: lines of a program in one text, without the last line end. */
export interface ClientLines {
  readonly restic: string;
  readonly rclone: string;
  readonly aws: string;
}

const REGION = 'us-east';
const KEEPS_LOCKS =
  '# This key may not delete locks, which restic then tries for 15 minutes behind each backup: --policy restic allows that alone.';

export function clientLines(facts: ClientFacts): ClientLines {
  const { endpoint, certificateFile, bucket, name, accessKey, secretKey, keepsLocks } = facts;
  const trusted = certificateFile === undefined ? undefined : quote(certificateFile);
  const restic = [
    `export AWS_ACCESS_KEY_ID=${accessKey} AWS_SECRET_ACCESS_KEY=${quote(secretKey)}`,
    `export AWS_DEFAULT_REGION=${REGION} RESTIC_REPOSITORY=s3:${endpoint}/${bucket}`,
    ...(trusted === undefined ? [] : [`export RESTIC_CACERT=${trusted}`]),
    ...(keepsLocks ? [KEEPS_LOCKS] : []),
  ];
  const rclone = [
    `[${name}]`,
    'type = s3',
    'provider = Other',
    `endpoint = ${endpoint}`,
    `region = ${REGION}`,
    `access_key_id = ${accessKey}`,
    `secret_access_key = ${secretKey}`,
    // It would make the bucket, or ask whether it is there, before each upload.
    'no_check_bucket = true',
    ...(trusted === undefined ? [] : [`# rclone --ca-cert ${trusted}`]),
  ];
  const aws = [
    `aws configure set profile.${name}.aws_access_key_id ${accessKey}`,
    `aws configure set profile.${name}.aws_secret_access_key ${quote(secretKey)}`,
    `aws configure set profile.${name}.region ${REGION}`,
    `aws configure set profile.${name}.endpoint_url ${endpoint}`,
    ...(trusted === undefined ? [] : [`aws configure set profile.${name}.ca_bundle ${trusted}`]),
  ];
  return { restic: restic.join('\n'), rclone: rclone.join('\n'), aws: aws.join('\n') };
}

/** The lines under a title for each program. */
export function formatClientLines(
  lines: ClientLines,
  { name, bucket }: { name: string; bucket: string },
): string {
  const indented = (text: string) => text.replace(/^/gm, '  ');
  return [
    'For restic, then `restic init` once and `restic backup FOLDER`:',
    indented(lines.restic),
    `For rclone, in rclone.conf, then \`rclone copy FOLDER ${name}:${bucket}\`:`,
    indented(lines.rclone),
    `For the AWS CLI, then \`aws --profile ${name} s3 cp FILE s3://${bucket}\`:`,
    indented(lines.aws),
  ].join('\n');
}

/** For a shell, when it needs it. */
function quote(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
