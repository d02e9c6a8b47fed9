// The error of stored bytes that cannot be read, or are not what was written: a disk has lost them. Asking again does not
// help. What must be done about it is for whoever holds a copy elsewhere.

export class Corruption extends Error {
  override name = 'Corruption';
}
