// IAM as a service of the gateway, and the table of its actions.
import { IAM } from './query-protocol.ts';
import { createQueryService, type QueryAction } from './query-service.ts';
import { USER_ACTIONS } from './users.ts';

/** Each is an action that policies may name (src/policy/actions.ts). */
export const IAM_ACTIONS: readonly QueryAction[] = [...USER_ACTIONS];

export const iamService = createQueryService(IAM, IAM_ACTIONS);
