// Values of tables that are looked up by names from elsewhere: a name that every object has (`constructor`) is none of theirs.

export function ownValue<V>(table: Readonly<Record<string, V>>, name: string): V | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
