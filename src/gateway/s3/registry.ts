// Every S3 operation that is there, one row each. What is not there is in unsupported.ts.
import { createBucket } from './operations/bucket/create-bucket.ts';
import { deleteBucket } from './operations/bucket/delete-bucket.ts';
import { forceDeleteBucket } from './operations/bucket/force-delete-bucket.ts';
import { getBucketAcl } from './operations/bucket/get-bucket-acl.ts';
import { getBucketLocation } from './operations/bucket/get-bucket-location.ts';
import { getBucketVersioning } from './operations/bucket/get-bucket-versioning.ts';
import { headBucket } from './operations/bucket/head-bucket.ts';
import { listObjectVersions } from './operations/bucket/list-object-versions.ts';
import { listObjects } from './operations/bucket/list-objects.ts';
import { listObjectsV2 } from './operations/bucket/list-objects-v2.ts';
import { moveBucket } from './operations/bucket/move-bucket.ts';
import { putBucketVersioning } from './operations/bucket/put-bucket-versioning.ts';
import { UNSET_BUCKET_CONFIGURATIONS } from './operations/bucket/unset-configurations.ts';
import { abortMultipartUpload } from './operations/multipart/abort-multipart-upload.ts';
import { completeMultipartUpload } from './operations/multipart/complete-multipart-upload.ts';
import { createMultipartUpload } from './operations/multipart/create-multipart-upload.ts';
import { listMultipartUploads } from './operations/multipart/list-multipart-uploads.ts';
import { listParts } from './operations/multipart/list-parts.ts';
import { uploadPart } from './operations/multipart/upload-part.ts';
import { uploadPartCopy } from './operations/multipart/upload-part-copy.ts';
import { copyObject } from './operations/object/copy-object.ts';
import { deleteObject } from './operations/object/delete-object.ts';
import { deleteObjectTagging } from './operations/object/delete-object-tagging.ts';
import { deleteObjects } from './operations/object/delete-objects.ts';
import { getObject } from './operations/object/get-object.ts';
import { getObjectAcl } from './operations/object/get-object-acl.ts';
import { getObjectTagging } from './operations/object/get-object-tagging.ts';
import { headObject } from './operations/object/head-object.ts';
import { moveObject } from './operations/object/move-object.ts';
import { putObject } from './operations/object/put-object.ts';
import { putObjectTagging } from './operations/object/put-object-tagging.ts';
import { getObjectLegalHold, getObjectRetention } from './operations/object/unset-locks.ts';
import { listBuckets } from './operations/service/list-buckets.ts';
import { preflightBucket, preflightObject, preflightService } from './operations/service/preflight.ts';

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
  ...UNSET_BUCKET_CONFIGURATIONS,
  listObjects,
  listObjectsV2,
  listObjectVersions,
  getObject,
  headObject,
  getObjectTagging,
  putObjectTagging,
  deleteObjectTagging,
  getObjectAcl,
  getObjectRetention,
  getObjectLegalHold,
  putObject,
  deleteObject,
  deleteObjects,
  copyObject,
  moveObject,
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
