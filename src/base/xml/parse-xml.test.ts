import fc from 'fast-check';
import { XMLParser } from 'fast-xml-parser';
import { describe, expect, test } from 'vitest';
import { withinOneTurn } from '../../../tests/support/run/loop-watch.ts';
import { expectLinear } from '../../../tests/support/run/properties.ts';
import { utf8 } from '../bytes/bytes.ts';
import {
  childOf,
  childrenOf,
  parseXml,
  parseXmlInSteps,
  textOf,
  type XmlElement,
  XmlError,
} from './parse-xml.ts';
import { escapeXml, XML_DECLARATION, xmlElement, xmlText } from './write-xml.ts';

const parse = (text: string) => parseXml(utf8(text), { depthMax: 8 });

describe('well-formed documents', () => {
  test('text is not interpreted: no numbers, no trimming, references decoded, line ends normalised', () => {
    expect(parse('<a>007</a>').text).toBe('007');
    expect(parse('<a>  b \n</a>').text).toBe('  b \n');
    expect(parse('<a>&lt;&amp;&gt;&quot;&apos;&#13;&#x41;&#x1;&#128512;</a>').text).toBe('<&>"\'\rA\u0001😀');
    expect(parse('<a>1\r\n2\r3</a>').text).toBe('1\n2\n3');
    expect(parse('<a>1<!-- two -->3<![CDATA[<4&]]]>5<?skip it?>6<b/>7</a>').text).toBe('13<4&]567');
  });

  test('prefixes are removed, attributes kept, declarations and white space around the root allowed', () => {
    const root = parse(
      '\ufeff<?xml version="1.0" encoding="utf-8" standalone=\'yes\'?>\n<!-- c --><s:a xmlns:s="u" xmlns="v" s:type="x&amp;&#10;y" b=\'"\' ><s:b/><b\n>2</b\t></s:a >\n',
    );
    expect(root.name).toBe('a');
    expect([...root.attributes]).toEqual([
      ['type', 'x&\ny'],
      ['b', '"'],
    ]);
    expect(childrenOf(root, 'b').map((child) => child.text)).toEqual(['', '2']);
  });

  test('CDATA, comments, instructions and names that JavaScript uses are accepted on each level', () => {
    const held =
      "1<!-- it's -->2<?skip it's?>3<![CDATA[<&amp;']]>4<toString hasOwnProperty='5'>&gt;</toString><constructor __proto__='6'/>";
    let element = parse(`<a>${held}<a>${held}<a>${held}<a>${held}<a>${held}</a></a></a></a></a>`);
    for (let level = 1; level <= 5; level += 1) {
      expect(element.text).toBe("123<&amp;'4");
      expect(childOf(element, 'toString')?.text).toBe('>');
      expect(childOf(element, 'toString')?.attributes.get('hasOwnProperty')).toBe('5');
      element = childOf(element, 'a') ?? element;
    }
    expect(parse('<a><b/><c/><b/></a>').children.map(({ name }) => name)).toEqual(['b', 'c', 'b']);
  });

  test('children are read by name; a repeated one, or text with elements inside, is refused', () => {
    const root = parse('<a><b>1</b><c/><b>2</b><d><e/></d></a>');
    expect(childOf(root, 'c')?.name).toBe('c');
    expect(childOf(root, 'x')).toBeUndefined();
    expect(textOf(root, 'c')).toBe('');
    expect(() => textOf(root, 'b')).toThrow(XmlError);
    expect(() => textOf(root, 'd')).toThrow(XmlError);
  });
});

test.each([
  '',
  ' ',
  'junk',
  '<a',
  '<a>',
  '</a>',
  '<a/><a/>',
  'junk<a/>',
  '<a/>junk',
  '<a/><![CDATA[x]]>',
  '<a><b></a></b>',
  '<a></b>',
  '<s:a></a>',
  '<a><b></b',
  '< a/>',
  '<a\u00a0b/>',
  '<a b="1"\u00a0c="2"/>',
  '</ a>',
  '<1a/>',
  '<:a/>',
  '<a:/>',
  '<a:b:c/>',
  '<a<b/>',
  '<a b></a>',
  '<a b=c></a>',
  '<a b="<"/>',
  '<a b="1" b="2"/>',
  '<a b="1"c="2"/>',
  '<a / >',
  '<a>]]></a>',
  '<a>&bogus;</a>',
  '<a>&__proto__;</a>',
  '<a>&amp</a>',
  '<a>&am<!-- -->p;</a>',
  '<a>&am<?skip it?>p;</a>',
  '<a>x & y</a>',
  '<a>&#0;</a>',
  '<a>&#xd800;</a>',
  '<a>&#x110000;</a>',
  '<a>&#12345678901;</a>',
  '<a>&#;</a>',
  '<a>&#x;</a>',
  '<a>\u0001</a>',
  '<a b="\u0000"/>',
  '<a><!-- -- --></a>',
  '<a><!-- --->',
  '<a><![CDATA[x</a>',
  '<a> <?xml version="1.0"?></a>',
  ' <?xml version="1.0"?><a/>',
  '<?xml?><a/>',
  '<?xml version="2.0"?><a/>',
  '<?xml version="1.0" encoding="UTF-16"?><a/>',
  '<?xml version="1.0" encoding="ISO-8859-1"?><a/>',
  '<!DOCTYPE a><a/>',
  '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
  '<a><!DOCTYPE x></a>',
  '<a><!ELEMENT x></a>',
  '<a>'.repeat(9) + '</a>'.repeat(9),
])('%j is refused', (text) => {
  expect(() => parse(text)).toThrow(XmlError);
});

test('more tags, attributes and comments than any request needs are refused', () => {
  expect(parse(`<a>${'<b c="d"/>'.repeat(49_000)}</a>`).children).toHaveLength(49_000);
  for (const markup of ['<b></b>', '<b/>', '<!---->', '<?b?>', '<![CDATA[]]>']) {
    expect(() => parse(`<a>${markup.repeat(100_001)}</a>`)).toThrow(XmlError);
  }
  const attributes = Array.from({ length: 33 }, (_, index) => ` a${index}="b"`);
  expect(parse(`<a${attributes.slice(1).join('')}/>`).attributes.size).toBe(32);
  expect(() => parse(`<a${attributes.join('')}/>`)).toThrow(XmlError);
});

test('bytes that are not UTF-8 are refused', () => {
  expect(() => parseXml(Buffer.from('3c613eff3c2f613e', 'hex'), { depthMax: 8 })).toThrow(XmlError);
  expect(() => parseXml(Buffer.from('\ufeff<a/>', 'utf16le'), { depthMax: 8 })).toThrow(XmlError);
});

test('any bytes end in an element or an XmlError', () => {
  const pieces = fc.constantFrom(
    '<',
    '>',
    '/',
    '<a',
    '<a>',
    '</a>',
    '&',
    ';',
    '#',
    '<![CDATA[',
    ']]>',
    '<!--',
    '-->',
    '"',
    '=',
    'x',
    ' ',
    '<?xml',
    '?>',
    ':',
    '\r',
  );
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(pieces).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      try {
        withinOneTurn(() => parse(text));
      } catch (error) {
        expect(error).toBeInstanceOf(XmlError);
      }
    }),
  );
});

test('the reader reads what the writer writes: every character but NUL', () => {
  const text = fc
    .string({ unit: 'binary' })
    .filter((value) => !value.includes('\u0000') && value.isWellFormed());
  fc.assert(
    fc.property(text, text, (first, second) => {
      const c = xmlElement(
        'c',
        xmlText('d', second),
        xmlText('e', undefined),
        xmlText('f', 7),
        xmlText('g', true),
      );
      const written = XML_DECLARATION + xmlElement('a', xmlText('b', first), c);
      const root = parse(written);
      expect(textOf(root, 'b')).toBe(first);
      expect(childOf(root, 'c')?.children.map((child) => [child.name, child.text])).toEqual([
        ['d', second],
        ['f', '7'],
        ['g', 'true'],
      ]);
    }),
  );
});

/** Text, or an element: its name, attributes, text and children. */
type Read = string | [name: string, attributes: [string, string][], text: string, children: Read[]];

interface Sample {
  written: string;
  read: Read;
}

const asRead = (element: XmlElement): Read => [
  element.name,
  [...element.attributes],
  element.text,
  element.children.map(asRead),
];

function sampleElement(prefix: string, name: string, value: string, inside: Sample[]): Sample {
  const tag = prefix + name;
  const reads = inside.map(({ read }) => read);
  const text = reads.filter((read) => typeof read === 'string').join('');
  const children = reads.filter((read) => typeof read !== 'string');
  return {
    written: `<${tag} ${prefix}c='${value}'\n>${inside.map(({ written }) => written).join('')}</${tag} >`,
    read: [name, [['c', value]], text, children],
  };
}

test('a document of any shape is read back unchanged', () => {
  const { element } = fc.letrec<{ element: Sample }>((tie) => ({
    element: fc
      .tuple(
        fc.constantFrom('', 's:'),
        fc.constantFrom('a', 'b'),
        fc.constantFrom('', '/', '>', '"', ']]>'),
        fc.array(
          fc.oneof(
            { maxDepth: 6, withCrossShrink: true },
            fc.constantFrom<Sample>(
              { written: ' 7 ', read: ' 7 ' },
              { written: '&lt;/a>', read: '</a>' },
              { written: "<![CDATA[</a>&lt;']]>", read: "</a>&lt;'" },
              { written: "<!-- </a> it's -->", read: '' },
              { written: "<?a </a> it's?>", read: '' },
              { written: '<a/>', read: ['a', [], '', []] },
              { written: '<s:b />', read: ['b', [], '', []] },
            ),
            tie('element'),
          ),
          { maxLength: 8, size: 'max' },
        ),
      )
      .map(([prefix, name, value, inside]) => sampleElement(prefix, name, value, inside)),
  }));
  fc.assert(
    fc.property(element, ({ written, read }) => {
      expect(asRead(parseXml(utf8(written), { depthMax: 64 }))).toEqual(read);
    }),
  );
});

/** An independent reader, with what it changes of values switched off. */
const otherReader = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: false,
  attributeNamePrefix: '',
  removeNSPrefix: true,
  parseTagValue: false,
  trimValues: false,
});

interface OtherNode {
  readonly '#text'?: string;
  readonly ':@'?: Readonly<Record<string, string>>;
  readonly [name: string]: unknown;
}

function asOtherRead(node: OtherNode): Read {
  const [name = ''] = Object.keys(node);
  const inside = node[name] as OtherNode[];
  const text = inside.map((child) => child['#text'] ?? '').join('');
  const children = inside.filter((child) => child['#text'] === undefined);
  return [name, Object.entries(node[':@'] ?? {}), text, children.map(asOtherRead)];
}

test('fast-xml-parser reads the same from documents that both accept', () => {
  const text = fc.constantFrom('7', '007', ' a b ', '&lt;&amp;', 'ä/>', '-->');
  const value = fc.constantFrom('', '007', '/', '>', "it's", '&quot;');
  const { element } = fc.letrec<{ element: string }>((tie) => ({
    element: fc
      .tuple(
        fc.constantFrom('a', 'Key', 's:b'),
        fc.dictionary(fc.constantFrom('c', 'd'), value),
        fc.array(fc.oneof({ maxDepth: 6, withCrossShrink: true }, text, tie('element')), { maxLength: 6 }),
      )
      .map(([name, attributes, inside]) => {
        const written = Object.entries(attributes).map(([key, given]) => ` ${key}="${given}"`);
        return `<${name}${written.join('')}>${inside.join('')}</${name}>`;
      }),
  }));
  fc.assert(
    fc.property(element, (document) => {
      const [other] = otherReader.parse(document) as OtherNode[];
      expect(asRead(parseXml(utf8(document), { depthMax: 64 }))).toEqual(other && asOtherRead(other));
    }),
  );
});

test('the writer gives control characters as references', () => {
  expect(escapeXml('a<b>&"\'\r\n\t\u0001\u001f\uffff')).toBe(
    "a&lt;b&gt;&amp;&quot;'&#13;\n\t&#x1;&#x1f;&#xffff;",
  );
});

test('the writer refuses NUL', () => {
  expect(parse(xmlText('a', 'b\u0000c')).text).toBe('b\ufffdc');
});

test('a long document takes linear time', () => {
  const part =
    '<Part><PartNumber>10000</PartNumber><ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag></Part>';
  const text = `<CompleteMultipartUpload>${part.repeat(10_000)}</CompleteMultipartUpload>`;
  const root = parse(text);
  expect(root.children).toHaveLength(10_000);
  expect(root.children[9_999]?.children[1]?.text).toBe('"d41d8cd98f00b204e9800998ecf8427e"');
});

test('any repetition takes linear time', () => {
  const pieces = [
    '<',
    '>',
    '<a>',
    '<a/>',
    '</a>',
    '<a ',
    '<a b="',
    ' b="c"',
    '"',
    '&',
    '&#',
    '&amp;',
    ']]>',
    ' ',
    '\r',
    '-',
  ];
  const more = ['<!--', '-->', '<!-- -', '<![CDATA[', '<?', '<?x ', '?>', '<!', ':', "'"];
  const starts = ['', '<a>', '<a><b><c>', '<a ', '<!--', '<a><![CDATA['];
  expectLinear((text) => parse(text), { pieces: [...pieces, ...more], starts, end: '' });
});

/** How many steps a document takes until it is read or refused: each is a bounded number of characters looked at. */
function stepsOf(text: string): number {
  const steps = parseXmlInSteps(utf8(text), { depthMax: 8 });
  for (let count = 1; ; count++) {
    try {
      if (steps.next().done === true) return count;
    } catch (error) {
      expect(error).toBeInstanceOf(XmlError);
      return count;
    }
  }
}

const MiB = 1024 * 1024;

test.each([
  ['ampersands', '<a>', '&'],
  ['references', '<a>', '<b>&amp;&#x1;</b>'],
  ['unknown entities', '<a>', '&b;'],
  ['attributes', '<a', ' b="c"'],
  ['attributes of other names', '<a', ' b="c" d="e" f="g" h="i"'],
  ['elements with attributes', '<a>', '<b c="d" e="f"/>'],
  ['an attribute', '<a b="', 'c'],
  ['open quotes', '<a>', '<b c="'],
  ['nested tags', '', '<a>'],
  ['elements', '<a>', '<b></b>'],
  ['empty elements', '<a>', '<b/>'],
  ['end tags', '<a>', '</b>'],
  ['comments', '<a>', '<!---->'],
  ['open comments', '<a>', '<!--'],
  ['a comment', '<a><!--', '- '],
  ['CDATA sections', '<a>', '<![CDATA[]]>'],
  ['open CDATA sections', '<a><![CDATA[', ']]'],
  ['instructions', '<a>', '<?b ?>'],
  ['open instructions', '<a>', '<?b '],
  ['a long name', '<a>', 'b'],
  ['a long name of a tag', '<', 'b'],
  ['prefixes', '<a', ':b'],
  ['declared prefixes', '<a', ' xmlns:b="c"'],
  ['prefixed elements', '<a>', '<b:c xmlns:b="d"/>'],
  ['pieces of text', '<a>', 'b<c/>'],
  ['pieces of text between comments', '<a>', 'b<!---->'],
  ['white space', '<a>', ' '],
  ['white space in a tag', '<a', ' '],
  ['white space between elements', '<a>', '<b/> \n '],
  ['line ends', '<a>', '<b>\r\r\r\r\r\r\r\r</b>'],
  ['declarations', '<?xml version="1.0"', ' '],
])('%s: twice the document takes at most twice the steps, and few of them', (_name, start, piece) => {
  const stepsFor = (sizeBytes: number) => stepsOf(start + piece.repeat(sizeBytes / piece.length));
  const [once, twice] = [stepsFor(MiB / 4), stepsFor(MiB / 2)];
  expect(twice).toBeLessThanOrEqual(2 * once + 2);
  // 16 where each character is looked at once; a short element counts for some characters more.
  expect(twice).toBeLessThan(200);
});

test('a long document yields between its parts, a short one does not', () => {
  const part = '<Part><PartNumber>1</PartNumber><ETag>d41d8cd98f00b204e9800998ecf8427e</ETag></Part>';
  expect(stepsOf(`<C>${part.repeat(100)}</C>`)).toBe(1);
  expect(stepsOf(`<C>${part.repeat(10_000)}</C>`)).toBeGreaterThan(25);
});
