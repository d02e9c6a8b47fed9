// JSON Schemas of what JSON services take and give, tied to the types of the code: a field that one has and the other has
// not does not compile.

export interface JsonSchema {
  readonly [keyword: string]: unknown;
  readonly optional?: undefined;
}

/** A field that may be absent. */
export interface OptionalField {
  readonly optional: JsonSchema;
}

/** Fields that T may leave out are `optional`, the others are not. */
export type FieldsOf<T> = {
  readonly [Name in keyof T]-?: Record<never, never> extends Pick<T, Name> ? OptionalField : JsonSchema;
};

export const optional = (schema: JsonSchema): OptionalField => ({ optional: schema });
export const textOf = (description?: string): JsonSchema => ({
  type: 'string',
  ...(description && { description }),
});
export const numberOf = (description?: string): JsonSchema => ({
  type: 'number',
  ...(description && { description }),
});
export const booleanOf = (description?: string): JsonSchema => ({
  type: 'boolean',
  ...(description && { description }),
});
export const oneOf = (...values: readonly string[]): JsonSchema => ({ type: 'string', enum: values });
export const listOf = (items: JsonSchema, description?: string): JsonSchema => ({
  type: 'array',
  items,
  ...(description && { description }),
});
/** Values of one form under names that are not known here. */
export const mapOf = (values: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: values });
/** A schema that the service has under a name (fastify's `addSchema`). */
export const named = (name: string): JsonSchema => ({ $ref: `${name}#` });

/** An answer of a service: other fields than these are left out. */
export function objectOf<T>(fields: FieldsOf<T>): JsonSchema {
  const entries = Object.entries<JsonSchema | OptionalField>(
    fields as Record<string, JsonSchema | OptionalField>,
  );
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, field]) => [name, field.optional ?? field])),
    required: entries.filter(([, field]) => field.optional === undefined).map(([name]) => name),
  };
}

/** What a service takes: other fields than these are refused, because a misspelt one must not be taken for an absent one. */
export function inputOf<T>(fields: FieldsOf<T>): JsonSchema {
  return { ...objectOf<T>(fields), additionalProperties: false };
}
