import { expect, test } from 'vitest';
import { escapeXml } from './write-xml.ts';

test.each([
  ['plain ä😀', 'plain ä😀'],
  ['<a href="b">&</a>', '&lt;a href=&quot;b&quot;&gt;&amp;&lt;/a&gt;'],
  ['\t\n\r', '\t\n&#13;'],
  ['\u0001\u001f\u0000', '&#x1;&#x1f;\ufffd'],
  ['a\ufffeb\uffff', 'a&#xfffe;b&#xffff;'],
  ['&&', '&amp;&amp;'],
])('%j is written as %j', (text, escaped) => {
  expect(escapeXml(text)).toBe(escaped);
});
