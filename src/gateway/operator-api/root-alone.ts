// What of the operator's own account only its root changes: its keys, and its MFA devices.
import type { FastifyRequest } from 'fastify';
import { AppError } from '../../types/errors.ts';
import type { OperatorCaller, OperatorContext } from './operator-context.ts';

/**
 * A key of the operator's own account is one of its root, who may do everything: no policy may hand that out, or take the root's
 * keys or its second factor away. Throws AccessDenied unless the caller is that root; NoSuchEntity.
 */
export async function requireRootForItself(
  { accounts }: OperatorContext,
  reference: string,
  request: FastifyRequest,
): Promise<void> {
  const { principal } = request.getDecorator<OperatorCaller>('caller').asker;
  if (principal.kind === 'root') return;
  const { account } = await accounts.find(reference);
  if (!account.isRoot) return;
  throw new AppError('AccessDenied', {
    message: "Only the root of the operator's account changes its own keys and MFA devices.",
  });
}
