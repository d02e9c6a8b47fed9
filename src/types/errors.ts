// The catalogue of errors: the one place that defines an error's code, its status and its text. XML, JSON and the
// inter-node form are renderers of it (gateway/s3/xml/error-xml.ts and its likes). docs/errors.md is tested against it.
// Codes, statuses and texts: AWS "Error responses"; where they differ, docs/internals/s3-behaviour.md and extensions.md.

export interface ErrorSpec {
  status: number;
  message: string;
}

export const ERRORS = {
  AccessDenied: { status: 403, message: 'Access Denied' },
  AccountProblem: {
    status: 403,
    message: 'There is a problem with your account that prevents the operation from completing successfully.',
  },
  AuthenticationLockout: {
    status: 403,
    message: 'Too many requests with a wrong signature were sent with this access key. Try again later.',
  },
  AuthorizationHeaderMalformed: {
    status: 400,
    message: 'The authorization header that you provided is not valid.',
  },
  AuthorizationQueryParametersError: {
    status: 400,
    message: 'The authorization query parameters that you provided are not valid.',
  },
  BadDigest: {
    status: 400,
    message: 'The Content-MD5 or checksum value that you specified did not match what the server received.',
  },
  BadRequest: { status: 400, message: 'Bad Request' },
  BucketAlreadyExists: {
    status: 409,
    message:
      'The requested bucket name is not available. The bucket namespace is shared by all users of the system. Specify a different name and try again.',
  },
  BucketAlreadyOwnedByYou: {
    status: 409,
    message: 'The bucket that you tried to create already exists, and you own it.',
  },
  BucketNotEmpty: { status: 409, message: 'The bucket that you tried to delete is not empty.' },
  ConcurrentModification: {
    status: 409,
    message:
      'The request was rejected because multiple requests to change this account were submitted simultaneously. Submit your request again.',
  },
  DeleteConflict: { status: 409, message: 'The request tried to delete something that others depend on.' },
  EncryptionNotAllowed: {
    status: 400,
    message: 'Objects that are encrypted with a key of their owner cannot be part of this operation.',
  },
  EntityAlreadyExists: { status: 409, message: 'The request tried to create something that already exists.' },
  EntityTooLarge: { status: 400, message: 'Your proposed upload exceeds the maximum allowed object size.' },
  EntityTooSmall: {
    status: 400,
    message: 'Your proposed upload is smaller than the minimum allowed object size.',
  },
  ExpiredToken: { status: 400, message: 'The provided token has expired.' },
  IdempotencyParameterMismatch: {
    status: 400,
    message: 'The idempotency token was used by a request that asked for something else.',
  },
  IllegalVersioningConfigurationException: {
    status: 400,
    message: 'The versioning configuration specified in the request is invalid.',
  },
  IncompleteBody: {
    status: 400,
    message: 'You did not provide the number of bytes specified by the Content-Length HTTP header.',
  },
  IncompleteSignature: {
    status: 400,
    message: 'The request signature does not conform to the standards of the service.',
  },
  InsufficientStorage: {
    status: 507,
    message: 'There is not enough storage space to complete your request.',
  },
  InternalError: { status: 500, message: 'An internal error occurred. Try again.' },
  InvalidAccessKeyId: {
    status: 403,
    message: 'The AWS access key ID that you provided does not exist in our records.',
  },
  InvalidAction: { status: 400, message: 'The action or operation requested is invalid.' },
  InvalidArgument: { status: 400, message: 'Invalid Argument' },
  InvalidAuthenticationCode: { status: 403, message: 'Authentication code for device is not valid.' },
  InvalidBucketName: { status: 400, message: 'The specified bucket is not valid.' },
  InvalidBucketState: {
    status: 409,
    message: 'The request is not valid for the current state of the bucket.',
  },
  InvalidChunkSizeError: {
    status: 403,
    message: 'Only the last chunk is allowed to have a size less than 8192 bytes',
  },
  InvalidClientTokenId: {
    status: 403,
    message: 'The security token included in the request is invalid.',
  },
  InvalidDigest: {
    status: 400,
    message: 'The Content-MD5 or checksum value that you specified is not valid.',
  },
  InvalidEncryptionAlgorithmError: {
    status: 400,
    message: 'The Encryption request you specified is not valid. Supported value: AES256.',
  },
  InvalidInput: {
    status: 400,
    message: 'An invalid or out-of-range value was supplied for an input parameter.',
  },
  InvalidParameterValue: {
    status: 400,
    message: 'An invalid or out-of-range value was supplied for the input parameter.',
  },
  InvalidPart: {
    status: 400,
    message:
      "One or more of the specified parts could not be found. The part might not have been uploaded, or the specified entity tag might not have matched the part's entity tag.",
  },
  InvalidPartOrder: {
    status: 400,
    message:
      'The list of parts was not in ascending order. The parts list must be specified in order by part number.',
  },
  InvalidPolicyDocument: {
    status: 400,
    message: 'The content of the form does not meet the conditions specified in the policy document.',
  },
  InvalidRange: { status: 416, message: 'The requested range is not satisfiable.' },
  InvalidRequest: { status: 400, message: 'Invalid Request' },
  InvalidRetentionPeriod: {
    status: 400,
    message: 'The retention period must be a positive integer.',
  },
  InvalidStorageClass: { status: 400, message: 'The storage class that you specified is not valid.' },
  InvalidTag: { status: 400, message: 'The tag provided was not a valid tag.' },
  InvalidToken: { status: 400, message: 'The provided token is malformed or otherwise not valid.' },
  InvalidURI: { status: 400, message: "The specified URI couldn't be parsed." },
  InvalidWriteOffset: {
    status: 400,
    message: 'The write offset value that you specified does not match the current object size.',
  },
  InvalidUserType: { status: 400, message: 'The type of user that asks does not fit the operation.' },
  KeyTooLongError: { status: 400, message: 'Your key is too long.' },
  LimitExceeded: {
    status: 409,
    message: 'The request was rejected because it attempted to create resources beyond the current limits.',
  },
  MalformedACLError: {
    status: 400,
    message:
      'The ACL that you provided was not well formed or did not validate against our published schema.',
  },
  MalformedPOSTRequest: {
    status: 400,
    message: 'The body of your POST request is not well-formed multipart/form-data.',
  },
  MalformedPolicy: { status: 400, message: 'Your policy contains a principal that is not valid.' },
  MalformedTrailerError: {
    status: 400,
    message:
      'The request contained trailing data that was not well-formed or did not conform to our published schema.',
  },
  MalformedPolicyDocument: { status: 400, message: 'The policy document is malformed.' },
  MalformedXML: {
    status: 400,
    message:
      'The XML that you provided was not well formed or did not validate against our published schema.',
  },
  MaxPostPreDataLengthExceeded: {
    status: 400,
    message: 'Your POST request fields preceeding the upload file was too large.',
  },
  MaxMessageLengthExceeded: { status: 400, message: 'Your request was too large.' },
  MetadataTooLarge: {
    status: 400,
    message: 'Your metadata headers exceed the maximum allowed metadata size.',
  },
  MethodNotAllowed: { status: 405, message: 'The specified method is not allowed against this resource.' },
  MissingAction: { status: 400, message: 'The request is missing an action or a required parameter.' },
  MissingContentLength: { status: 411, message: 'You must provide the Content-Length HTTP header.' },
  MissingRequestBodyError: { status: 400, message: 'Request body is empty.' },
  MissingSecurityHeader: { status: 400, message: 'Your request is missing a required header.' },
  NoSuchBucket: { status: 404, message: 'The specified bucket does not exist.' },
  NoSuchBucketPolicy: { status: 404, message: 'The bucket policy does not exist.' },
  NoSuchComplianceConfiguration: {
    status: 404,
    message: 'The bucket is not protected by compliance.',
  },
  NoSuchConfiguration: { status: 404, message: 'The specified configuration does not exist.' },
  NoSuchEntity: { status: 404, message: 'The request referred to something that does not exist.' },
  NoSuchKey: { status: 404, message: 'The specified key does not exist.' },
  NoSuchLifecycleConfiguration: { status: 404, message: 'The lifecycle configuration does not exist.' },
  NoSuchObjectLockConfiguration: {
    status: 404,
    message: 'The specified object does not have a ObjectLock configuration',
  },
  NoSuchUpload: {
    status: 404,
    message:
      'The specified multipart upload does not exist. The upload ID might not be valid, or the multipart upload might have been aborted or completed.',
  },
  NoSuchVersion: { status: 404, message: 'The specified version does not exist.' },
  NoSuchWebsiteConfiguration: {
    status: 404,
    message: 'The specified bucket does not have a website configuration.',
  },
  NotImplemented: {
    status: 501,
    message: 'A header or query parameter that you provided implies functionality that is not implemented.',
  },
  NotModified: { status: 304, message: 'Not Modified' },
  ObjectAlreadyExists: {
    status: 409,
    message:
      'There is an object under the destination already, and the request does not ask to overwrite it.',
  },
  ObjectLockConfigurationNotFoundError: {
    status: 404,
    message: 'Object Lock configuration does not exist for this bucket.',
  },
  OperationAborted: {
    status: 409,
    message: 'A conflicting conditional operation is currently in progress against this resource. Try again.',
  },
  PackedPolicyTooLarge: {
    status: 400,
    message: 'The packed size of the session policies and tags is too large.',
  },
  PasswordPolicyViolation: {
    status: 400,
    message: 'The password does not meet the requirements of the account password policy.',
  },
  PreconditionFailed: {
    status: 412,
    message: 'At least one of the preconditions that you specified did not hold.',
  },
  ReplicationConfigurationNotFoundError: {
    status: 404,
    message: 'The replication configuration was not found.',
  },
  RequestHeaderSectionTooLarge: {
    status: 400,
    message: 'Your request header section exceeds the maximum allowed size.',
  },
  QuotaExceeded: { status: 403, message: 'The request would exceed a quota.' },
  RequestTimeTooSkewed: {
    status: 403,
    message: 'The difference between the request time and the current time is too large.',
  },
  RequestTimeout: {
    status: 400,
    message:
      'Your socket connection to the server was not read from or written to within the timeout period.',
  },
  ServiceUnavailable: { status: 503, message: 'Service is unable to handle request.' },
  SignatureDoesNotMatch: {
    status: 403,
    message:
      'The request signature that we calculated does not match the signature that you provided. Check your secret access key and signing method.',
  },
  SlowDown: { status: 503, message: 'Please reduce your request rate.' },
  TooManyBuckets: { status: 400, message: 'You have attempted to create more buckets than are allowed.' },
  UnexpectedContent: { status: 400, message: 'This request contains unsupported content.' },
  UnresolvableGrantByEmailAddress: {
    status: 400,
    message: 'The email address that you provided does not match any account on record.',
  },
  ValidationError: { status: 400, message: 'The input does not satisfy the constraints of the service.' },
  XAmzContentSHA256Mismatch: {
    status: 400,
    message: "The provided 'x-amz-content-sha256' header does not match what was computed.",
  },
} as const satisfies Record<string, ErrorSpec>;

export type ErrorCode = keyof typeof ERRORS;

/** Extra elements of an error body, in the order of their insertion (AWS adds BucketName, Key, ArgumentName and so on). */
export type ErrorFields = Readonly<Record<string, string | number>>;

/** Ends the request with a catalogued error. */
export class AppError extends Error {
  override name = 'AppError';
  readonly code: ErrorCode;
  readonly fields: ErrorFields;
  /** Of the HTTP answer. */
  readonly status: number;
  /** Answer headers besides the usual ones (x-amz-delete-marker, Allow and so on). */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    options: {
      message?: string;
      /** Where AWS answers the code with another status than usually. */
      status?: number;
      fields?: ErrorFields;
      headers?: Readonly<Record<string, string>>;
      cause?: unknown;
    } = {},
  ) {
    super(
      options.message ?? ERRORS[code].message,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.fields = options.fields ?? {};
    this.status = options.status ?? ERRORS[code].status;
    this.headers = options.headers ?? {};
  }
}

/** A ValidationError that says what is wrong with each field. */
export function invalidFields(problems: Readonly<Record<string, string>>): AppError {
  const message = Object.entries(problems)
    .map((problem) => problem.join(' '))
    .join('; ');
  return new AppError('ValidationError', { message, fields: problems });
}
