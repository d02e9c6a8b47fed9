// Every S3 operation that is there, one row each. What is not there is in unsupported.ts.
import { listObjects } from './operations/bucket/list-objects.ts';
import { listObjectsV2 } from './operations/bucket/list-objects-v2.ts';
import { deleteObject } from './operations/object/delete-object.ts';
import { getObject } from './operations/object/get-object.ts';
import { headObject } from './operations/object/head-object.ts';
import { putObject } from './operations/object/put-object.ts';

export const OPERATIONS = [
  listObjects,
  listObjectsV2,
  getObject,
  headObject,
  putObject,
  deleteObject,
] as const;

export type OperationName = (typeof OPERATIONS)[number]['name'];
