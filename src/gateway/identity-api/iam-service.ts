// IAM as a service of the gateway, and the table of its actions.

import { ACCESS_KEY_ACTIONS } from './access-keys.ts';
import { ACCOUNT_ACTIONS } from './account-settings.ts';
import { ATTACHMENT_ACTIONS } from './attachments.ts';
import { AUTHORIZATION_DETAIL_ACTIONS } from './authorization-details.ts';
import { BOUNDARY_ACTIONS } from './boundaries.ts';
import { GROUP_ACTIONS } from './groups.ts';
import { INLINE_POLICY_ACTIONS } from './inline-policies.ts';
import { LOGIN_PROFILE_ACTIONS } from './login-profiles.ts';
import { MFA_DEVICE_ACTIONS } from './mfa-devices.ts';
import { POLICY_ACTIONS } from './policies.ts';
import { IAM } from './query-protocol.ts';
import { createQueryService, type QueryAction } from './query-service.ts';
import { ROLE_ACTIONS } from './roles.ts';
import { SIMULATION_ACTIONS } from './simulate.ts';
import { USER_ACTIONS } from './users.ts';

/** Each is an action that policies may name (src/policy/actions.ts). */
export const IAM_ACTIONS: readonly QueryAction[] = [
  ...USER_ACTIONS,
  ...ROLE_ACTIONS,
  ...POLICY_ACTIONS,
  ...INLINE_POLICY_ACTIONS,
  ...ATTACHMENT_ACTIONS,
  ...BOUNDARY_ACTIONS,
  ...MFA_DEVICE_ACTIONS,
  ...AUTHORIZATION_DETAIL_ACTIONS,
  ...SIMULATION_ACTIONS,
  ...ACCESS_KEY_ACTIONS,
  ...LOGIN_PROFILE_ACTIONS,
  ...GROUP_ACTIONS,
  ...ACCOUNT_ACTIONS,
];

export const iamService = createQueryService(IAM, IAM_ACTIONS);
