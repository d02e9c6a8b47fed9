// The error for stored bytes that cannot be read, or are not what was written: a disk has lost them. Retrying does not
// help. The caller decides what to do, if there is a copy elsewhere.

export class Corruption extends Error {
  override name = 'Corruption';
}
