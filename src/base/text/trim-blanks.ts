// Trims as HTTP does. String.trim takes more away: the byte 0xA0, which ends many a UTF-8 character, is a space to it.

const [SPACE, TAB] = [0x20, 0x09];

/** Without the spaces and tabs at both ends. */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}
