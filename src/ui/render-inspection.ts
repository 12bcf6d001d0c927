import type { InspectedChild, Inspection } from '../publish/findings.ts';
import { formatBytes, plural } from './format.ts';
import { digestCell, imageLabel, mediaTypeLabel } from './labels.ts';
import { type Cell, type Column, tableLines } from './table.ts';
import { untrusted } from './text.ts';
import { page, paint, symbols, type Theme } from './theme.ts';

/** `inspect --tree`: an index by its platforms, or one image by its blobs. */
export function renderInspection(inspection: Inspection, theme: Theme): string {
  const { reference, digest, mediaType, bytes, manifest, children = [] } = inspection;
  const facts = [untrusted(reference), digest, mediaTypeLabel(mediaType), formatBytes(bytes.byteLength)];
  const head = paint(theme, 'strong', facts.join('  '));
  const rows =
    manifest.kind === 'index' ? indexRows(children, theme, '') : branched(children.flatMap(imageRows), theme, '');
  return page([head, ...tableLines(COLUMNS, rows, theme, '')], theme);
}

const COLUMNS: readonly Column[] = [
  { title: '' },
  { title: '' },
  { title: '', align: 'right', drop: 0 },
  { title: '', drop: 2 },
  { title: '', drop: 1 },
  { title: '', shrink: true },
];

type Row = readonly [name: string, ...rest: Cell[]];
type Branch = readonly Cell[];

function branched(rows: readonly Row[], theme: Theme, lead: string): Branch[] {
  const { branch, last } = symbols(theme);
  return rows.map(([text, ...rest], at) => [
    { lead: `${lead}${at === rows.length - 1 ? last : branch} `, text },
    ...rest,
  ]);
}

/** An attestation whose image is listed too is told on the image's line. What an index lists stands below it. */
function indexRows(children: readonly InspectedChild[], theme: Theme, lead: string): Branch[] {
  const { pipe } = symbols(theme);
  const listed = new Set(children.map((child) => child.digest));
  const own = children.filter(
    (child) => child.kind !== 'attestation' || child.subject === undefined || !listed.has(child.subject),
  );
  const rows = branched(
    own.map((child) => entryRow(child, children, own)),
    theme,
    lead,
  );
  return rows.flatMap((row, at) => {
    const below = own[at]?.children ?? [];
    return [row, ...indexRows(below, theme, `${lead}${at === own.length - 1 ? ' ' : pipe}  `)];
  });
}

function entryRow(child: InspectedChild, children: readonly InspectedChild[], own: readonly InspectedChild[]): Row {
  if (child.kind === 'missing') return [missingLabel(child), digestCell(child.digest), '', '', '', NOT_THERE];
  if (child.kind === 'index') {
    const content = child.children === undefined ? 'not looked into' : plural(child.children.length, 'manifest');
    return [mediaTypeLabel(child.mediaType), digestCell(child.digest), '', content, '', ''];
  }
  const about = children.filter(({ kind, subject }) => kind === 'attestation' && subject === child.digest).length;
  return [
    imageLabel(child),
    digestCell(child.digest),
    formatBytes(sizeOf(child)),
    plural(child.layers.length, 'layer'),
    about === 0 ? '' : `+ ${about === 1 ? 'attestation' : `${about} attestations`}`,
    child.artifactType ?? sharing(child, own),
  ];
}

const NOT_THERE: Cell = { text: 'missing in the registry', style: 'bad' };

/** What the index says that it would be. */
function missingLabel({ platform, subject }: InspectedChild): string {
  return imageLabel({ kind: subject === undefined ? 'image' : 'attestation', platform });
}

function imageRows(child: InspectedChild): Row[] {
  const config = child.config === undefined ? [] : [{ ...child.config, name: 'config', foreign: false }];
  const layers = child.layers.map((layer) => ({ ...layer, name: 'layer' }));
  return [...config, ...layers].map(({ name, digest, size, foreign }) => [
    name,
    digestCell(digest),
    formatBytes(size),
    foreign ? 'foreign' : '',
  ]);
}

function sizeOf(child: InspectedChild): number {
  return child.layers.reduce((sum, { size }) => sum + size, child.config?.size ?? 0);
}

/** The first earlier image that has layers in common: that is where a client that pulls in order has them from. */
function sharing(child: InspectedChild, siblings: readonly InspectedChild[]): string {
  const mine = new Set(child.layers.map(({ digest }) => digest));
  for (const sibling of siblings.slice(0, siblings.indexOf(child))) {
    const common = new Set(sibling.layers.map(({ digest }) => digest).filter((digest) => mine.has(digest))).size;
    if (common > 0) return `shares ${plural(common, 'layer')} with ${imageLabel(sibling)}`;
  }
  return '';
}
