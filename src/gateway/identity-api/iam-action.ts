// The form of an action of IAM: one row with its name, its parameters, what policies judge, and what it does.
// All of it runs in one attempt on the account's identities (identity-store.ts), and again where others were faster: what
// was allowed was allowed by the very rows that the action has changed.

import { type IdentityStore, withIdentities } from '../../accounts/identity-store.ts';
import { must } from '../../base/assert.ts';
import { ownValue } from '../../base/own-value.ts';
import { tagValue } from '../../policy/condition-keys.ts';
import type { ContextOf, ContextValue } from '../../policy/patterns.ts';
import type { Tag } from '../../types/tags.ts';
import type { ServiceDependencies } from '../http/service-route.ts';
import { authorizeAction, type IdentityCaller, presentCaller, signerOf } from './authorize-action.ts';
import { type Rules, readValues, type ValuesOf } from './parameter-rules.ts';
import type { QueryAction } from './query-service.ts';

export interface ActionContext {
  readonly deps: ServiceDependencies;
  readonly caller: IdentityCaller;
  readonly store: IdentityStore;
  /** Wall clock, ms since epoch; one moment for all of a request. */
  readonly nowMs: number;
  /** Does the work in the first run that asks for it by this name; later runs get what came of it. */
  once<T>(name: string, work: () => Promise<T>): Promise<T>;
}

/** A resource that the caller must be allowed the action on, with what conditions may ask about. */
export interface AccessTarget {
  /** ARN, or `*`. */
  readonly resource: string;
  /** What a refusal names instead, where the resource itself would tell who may not know. */
  readonly shownResource?: string;
  /** Tags that the resource has. */
  readonly resourceTags?: readonly Tag[] | undefined;
  /** Tags that the request gives. */
  readonly requestTags?: readonly Tag[] | undefined;
  /** Keys of tags that the request names; default those of `requestTags`. */
  readonly tagKeys?: readonly string[] | undefined;
  /** Other keys of the action, by name in lower case. */
  readonly values?: Readonly<Record<string, ContextValue | undefined>>;
  /** The account grants it to all of its users: it is refused only where a policy denies it. */
  readonly isGranted?: boolean;
}

export const ANY_RESOURCE: AccessTarget = { resource: '*' };

interface IamActionRow<R extends Rules> {
  /** As requests name it; policies write `iam:` before it. */
  readonly name: string;
  readonly parameters: R;
  /** It reads all policies of somebody, or is given some; default: it gives a page of a list (`MaxItems`). */
  readonly readsPolicies?: true;
  /** What the caller must be allowed; at least one. */
  access(
    values: ValuesOf<R>,
    context: ActionContext,
  ): Promise<readonly AccessTarget[]> | readonly AccessTarget[];
  /**
   * Resolves with the elements of the result, or nothing for an action that has none; or with how they are made once all is
   * written, where that takes long: runs that others overtake need not make them. Throws AppError.
   */
  run(
    values: ValuesOf<R>,
    context: ActionContext,
  ): Promise<string | undefined> | Promise<() => Promise<string>>;
}

export function defineIamAction<R extends Rules>(row: IamActionRow<R>): QueryAction {
  return {
    name: row.name,
    isLarge: row.readsPolicies === true || 'MaxItems' in row.parameters,
    async perform({ deps, caller: first, sent }) {
      const values = readValues(row.parameters, sent);
      const nowMs = deps.clock.wallMs();
      const once = createOnce();
      const result = await withIdentities(deps, first.account.accountId, async (store) => {
        // What others have changed since the run before may be the rights of who asks.
        const caller = await presentCaller(deps.identities, first);
        store.signedBy(signerOf(caller));
        const context: ActionContext = { deps, caller, store, nowMs, once };
        const targets = await row.access(values, context);
        must(targets[0], 'every action is judged');
        for (const target of targets) {
          await authorizeAction(caller, {
            action: `iam:${row.name}`,
            resource: target.resource,
            shownResource: target.shownResource,
            resourceAccount: store.accountId,
            contextOf: contextOf(target),
            isGranted: target.isGranted ?? false,
          });
        }
        return row.run(values, context);
      });
      return typeof result === 'function' ? result() : result;
    },
  };
}

function createOnce(): ActionContext['once'] {
  const done = new Map<string, Promise<unknown>>();
  return <T>(name: string, work: () => Promise<T>) => {
    const before = done.get(name) ?? work();
    done.set(name, before);
    return before as Promise<T>;
  };
}

/** Looks up the keys that belong to the action and its resource. */
function contextOf({ resourceTags, requestTags, tagKeys, values }: AccessTarget): ContextOf {
  const keys = tagKeys ?? requestTags?.map(({ key }) => key);
  return (key) => {
    const slash = key.indexOf('/');
    if (slash === -1) return key === 'aws:tagkeys' ? keys : values && ownValue(values, key);
    const tagKey = key.slice(slash + 1);
    switch (key.slice(0, slash)) {
      case 'aws:requesttag':
        return tagValue(requestTags ?? [], tagKey);
      case 'aws:resourcetag':
      case 'iam:resourcetag':
        return tagValue(resourceTags ?? [], tagKey);
      default:
        return undefined;
    }
  };
}
