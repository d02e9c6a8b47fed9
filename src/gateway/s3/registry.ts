// Every S3 operation that is there, one row each. What is not there is in unsupported.ts.
import { createBucket } from './buckets/create-bucket.ts';
import { deleteBucket } from './buckets/delete-bucket.ts';
import { deleteBucketLifecycle } from './buckets/delete-bucket-lifecycle.ts';
import { deleteBucketPolicy } from './buckets/delete-bucket-policy.ts';
import { getBucketAcl } from './buckets/get-bucket-acl.ts';
import { getBucketLifecycleConfiguration } from './buckets/get-bucket-lifecycle-configuration.ts';
import { getBucketLocation } from './buckets/get-bucket-location.ts';
import { getBucketPolicy } from './buckets/get-bucket-policy.ts';
import { getBucketVersioning } from './buckets/get-bucket-versioning.ts';
import { getObjectLockConfiguration } from './buckets/get-object-lock-configuration.ts';
import { headBucket } from './buckets/head-bucket.ts';
import { listBuckets } from './buckets/list-buckets.ts';
import { preflightBucket, preflightObject, preflightService } from './buckets/preflight.ts';
import { putBucketAcl } from './buckets/put-bucket-acl.ts';
import { putBucketLifecycleConfiguration } from './buckets/put-bucket-lifecycle-configuration.ts';
import { putBucketPolicy } from './buckets/put-bucket-policy.ts';
import { putBucketVersioning } from './buckets/put-bucket-versioning.ts';
import { putObjectLockConfiguration } from './buckets/put-object-lock-configuration.ts';
import { UNSET_BUCKET_CONFIGURATIONS } from './buckets/unset-configurations.ts';
import { getBucketCompliance } from './compliance/get-bucket-compliance.ts';
import { getObjectCompliance } from './compliance/get-object-compliance.ts';
import { putBucketCompliance } from './compliance/put-bucket-compliance.ts';
import { putObjectCompliance } from './compliance/put-object-compliance.ts';
import { appendObject } from './extensions/append-object.ts';
import { composeObject } from './extensions/compose-object.ts';
import { forceDeleteBucket } from './extensions/force-delete-bucket.ts';
import { moveBucket } from './extensions/move-bucket.ts';
import { moveObject } from './extensions/move-object.ts';
import { listMultipartUploads } from './listing/list-multipart-uploads.ts';
import { listObjectVersions } from './listing/list-object-versions.ts';
import { listObjects } from './listing/list-objects.ts';
import { listObjectsV2 } from './listing/list-objects-v2.ts';
import { listParts } from './listing/list-parts.ts';
import { abortMultipartUpload } from './multipart/abort-multipart-upload.ts';
import { completeMultipartUpload } from './multipart/complete-multipart-upload.ts';
import { createMultipartUpload } from './multipart/create-multipart-upload.ts';
import { uploadPart } from './multipart/upload-part.ts';
import { uploadPartCopy } from './multipart/upload-part-copy.ts';
import { copyObject } from './objects/copy-object.ts';
import { deleteObject } from './objects/delete-object.ts';
import { deleteObjectTagging } from './objects/delete-object-tagging.ts';
import { deleteObjects } from './objects/delete-objects.ts';
import { getObject } from './objects/get-object.ts';
import { getObjectAcl } from './objects/get-object-acl.ts';
import { getObjectLegalHold } from './objects/get-object-legal-hold.ts';
import { getObjectRetention } from './objects/get-object-retention.ts';
import { getObjectTagging } from './objects/get-object-tagging.ts';
import { headObject } from './objects/head-object.ts';
import { postObject } from './objects/post-object.ts';
import { putObject } from './objects/put-object.ts';
import { putObjectAcl } from './objects/put-object-acl.ts';
import { putObjectLegalHold } from './objects/put-object-legal-hold.ts';
import { putObjectRetention } from './objects/put-object-retention.ts';
import { putObjectTagging } from './objects/put-object-tagging.ts';
import { SOS_OPERATIONS } from './sosapi/sos-objects.ts';

export const OPERATIONS = [
  listBuckets,
  createBucket,
  headBucket,
  deleteBucket,
  forceDeleteBucket,
  moveBucket,
  getBucketLocation,
  getBucketVersioning,
  putBucketVersioning,
  getBucketAcl,
  putBucketAcl,
  getBucketPolicy,
  putBucketPolicy,
  deleteBucketPolicy,
  getBucketLifecycleConfiguration,
  putBucketLifecycleConfiguration,
  deleteBucketLifecycle,
  getBucketCompliance,
  putBucketCompliance,
  getObjectLockConfiguration,
  putObjectLockConfiguration,
  ...UNSET_BUCKET_CONFIGURATIONS,
  listObjects,
  listObjectsV2,
  listObjectVersions,
  getObject,
  headObject,
  ...SOS_OPERATIONS,
  getObjectTagging,
  putObjectTagging,
  deleteObjectTagging,
  getObjectAcl,
  putObjectAcl,
  getObjectCompliance,
  putObjectCompliance,
  getObjectRetention,
  putObjectRetention,
  getObjectLegalHold,
  putObjectLegalHold,
  putObject,
  postObject,
  deleteObject,
  deleteObjects,
  copyObject,
  moveObject,
  composeObject,
  appendObject,
  createMultipartUpload,
  uploadPart,
  uploadPartCopy,
  completeMultipartUpload,
  abortMultipartUpload,
  listParts,
  listMultipartUploads,
  preflightService,
  preflightBucket,
  preflightObject,
] as const;

export type OperationName = (typeof OPERATIONS)[number]['name'];
