import * as v from 'valibot';

/**
 * The validator of spec files, which `docs/spec.schema.json` is made from. It looks at documents in which every scalar is
 * a text as it was written; `metadata` says what an editor may take them for.
 */

/** What is wrong with a value, and what to write instead, as one message of the validator; see {@link splitMessage}. */
function say(what: string, hint: string): string {
  return `${what}\n${hint}`;
}

/** @see say */
export function splitMessage(message: string): readonly [what: string, hint: string] {
  const [what = '', hint = 'Correct the value.'] = message.split('\n');
  return [what, hint];
}

/** A number or a word such as true without quotes is a text here, and editors shall not mark it. */
const ANY_SCALAR = { json: { type: ['string', 'number', 'boolean'] } };

const text = (description: string, hint: string) =>
  v.pipe(
    v.string(say('must be a text', hint)),
    v.nonEmpty(say('is empty', hint)),
    v.metadata(ANY_SCALAR),
    v.description(description),
  );

const flag = (description: string) =>
  v.pipe(
    v.picklist(['true', 'false'], say('must be true or false', 'Write true or false.')),
    v.transform((word) => word === 'true'),
    v.metadata({ json: { type: 'boolean' } }),
    v.description(description),
  );

const choice = <const T extends readonly string[]>(values: T, description: string) =>
  v.pipe(
    v.picklist(values, say(`must be one of ${values.join(', ')}`, `Write one of ${values.join(', ')}.`)),
    v.description(description),
  );

/** Which of several forms a value has; a union of the validator would tell of none what is wrong within it. */
function either<const A extends v.GenericSchema, const B extends v.GenericSchema>(forText: A, otherwise: B) {
  type Either = v.GenericSchema<v.InferInput<A> | v.InferInput<B>, v.InferOutput<A> | v.InferOutput<B>>;
  const schema = v.lazy((input): Either => (typeof input === 'string' ? forText : otherwise) as unknown as Either);
  return Object.assign(schema, { options: [forText, otherwise] });
}

/** An array is an object to the validator, whose keys would then be numbers. */
function onlyMap<const S extends v.GenericSchema>(schema: S, message: string) {
  const refused = v.custom<v.InferOutput<S>>(() => false, message);
  return Object.assign(
    v.lazy((input) => (Array.isArray(input) ? refused : schema) as S),
    { options: [schema] },
  );
}

const map = <const E extends v.ObjectEntries>(entries: E, message: string) =>
  onlyMap(v.strictObject(entries, message), message);

const records = <const K extends v.GenericSchema<string, string>, const V extends v.GenericSchema>(
  key: K,
  value: V,
  message: string,
) => onlyMap(v.record(key, value, message), message);

const PLATFORM_HINT = 'Write OS/ARCHITECTURE[/VARIANT], such as linux/arm/v7.';

const platformText = v.pipe(
  v.string(say('must be a platform', PLATFORM_HINT)),
  v.nonEmpty(say('is empty', PLATFORM_HINT)),
  v.description('OS/ARCHITECTURE[/VARIANT][:OSVERSION], such as linux/arm/v7.'),
);

const platformList = (description: string) =>
  v.pipe(
    v.array(platformText, say('must be a list of platforms', 'Write for example [linux/amd64, linux/arm/v7].')),
    v.nonEmpty(say('names no platform', 'Name at least one, such as [linux/amd64], or remove the key.')),
    v.description(description),
  );

const features = v.array(
  text('A feature of the operating system.', 'Write for example [win32k].'),
  say('must be a list of texts', 'Write for example [win32k].'),
);

const field = (description: string, example: string) =>
  v.exactOptional(
    v.pipe(
      v.string(say('must be a text', `Write for example ${example}.`)),
      v.metadata(ANY_SCALAR),
      v.description(description),
    ),
  );

const PLATFORM_ENTRIES = {
  os: field('Operating system, as Go names it.', 'linux'),
  architecture: field("Architecture, as Go names it; Debian's names are understood.", 'arm'),
  variant: field('Variant of the architecture.', 'v7'),
  'os.version': field('Version of the operating system (Windows).', '10.0.17763.2300'),
  osversion: field('The same, as manifest-tool spells it.', '10.0.17763.2300'),
  'os.features': v.exactOptional(features),
  osfeatures: v.exactOptional(features),
};

const PLATFORM_MAP = map(
  PLATFORM_ENTRIES,
  say('must be a platform', 'Write {os: linux, architecture: arm, variant: v7}.'),
);

/** @see PLATFORM_MAP */
export type PlatformMap = v.InferOutput<typeof PLATFORM_MAP>;

const annotations = (description: string) =>
  v.pipe(
    records(
      v.pipe(v.string(), v.nonEmpty(say('is an empty key', 'Write KEY: VALUE.'))),
      v.pipe(v.string(say('must be a text', 'Write KEY: "" for an empty one.')), v.metadata(ANY_SCALAR)),
      say('must be a map of texts', 'Write KEY: VALUE, one a line.'),
    ),
    v.description(description),
  );

const TAG_HINT = 'Write for example [latest, "3.10"].';
const tags = (description: string) =>
  v.pipe(v.array(text('A tag.', TAG_HINT), say('must be a list of tags', TAG_HINT)), v.description(description));

const REFERENCE_HINT = 'Write HOST/REPOSITORY:TAG.';
const target = (description: string) => text(description, REFERENCE_HINT);
const image = text('Reference of the image, HOST/REPOSITORY:TAG.', REFERENCE_HINT);

const SOURCE_HINT = 'Write [PLATFORM=]REF, or a map with image, platform and annotations.';
const SOURCE = either(
  text('[PLATFORM=]REF, such as linux/arm/v7=ghcr.io/acme/app:armv7.', SOURCE_HINT),
  map(
    {
      image,
      platform: v.exactOptional(either(platformText, PLATFORM_MAP)),
      annotations: v.exactOptional(annotations('Annotations of what this source brings to the index.')),
    },
    say('must be a source', SOURCE_HINT),
  ),
);

const ENTRY_HINT = 'Write "all" or a platform, and below it KEY: VALUE.';

/** What may be said in `defaults` as well as in a list. */
const SETTINGS = {
  tags: v.exactOptional(tags('More tags, in the repository of every target.')),
  type: v.exactOptional(choice(['auto', 'oci', 'docker'], 'Media type of the index (--type).')),
  annotations: v.exactOptional(annotations('Annotations of the index (--annotation).')),
  entryAnnotations: v.exactOptional(
    v.pipe(
      records(
        v.pipe(v.string(), v.nonEmpty(say('is an empty key', ENTRY_HINT))),
        annotations('Annotations of the entries of this platform.'),
        say('must be a map of platforms', ENTRY_HINT),
      ),
      v.description('Annotations of entries of the index, by platform; "all" is every image.'),
    ),
  ),
  platforms: v.exactOptional(platformList('Take only images of these platforms (--platform).')),
  expectPlatforms: v.exactOptional(
    platformList('The exact set of platforms that the index must have (--expect-platforms).'),
  ),
  attestations: v.exactOptional(choice(['keep', 'drop'], 'Attestations beside images (--attestations).')),
  referrers: v.exactOptional(choice(['none', 'all'], "Referrers and cosign's tags of images (--referrers).")),
  amend: v.exactOptional(flag('Start from what the target holds (--amend).')),
  ignoreMissing: v.exactOptional(flag('Leave out sources that are not there (--ignore-missing).')),
  forcePlatform: v.exactOptional(flag('Write a platform that contradicts the image all the same (--force-platform).')),
  noClobber: v.exactOptional(flag('Leave a tag alone that exists with another digest (--no-clobber).')),
};

const LIST_ENTRIES = {
  target: v.exactOptional(target('Reference to publish, HOST/REPOSITORY:TAG.')),
  targets: v.exactOptional(
    v.pipe(
      v.array(
        target('Reference to publish.'),
        say('must be a list of references', 'Write for example [ghcr.io/acme/app:1].'),
      ),
      v.nonEmpty(say('names no target', 'Write for example [ghcr.io/acme/app:1].')),
      v.description('References to publish, in any number of repositories and registries.'),
    ),
  ),
  sources: v.exactOptional(
    v.pipe(
      v.array(SOURCE, say('must be a list of sources', 'Write - [PLATFORM=]REF, one a line.')),
      v.description('Images to list, in this order.'),
    ),
  ),
  template: v.exactOptional(
    v.pipe(
      map(
        {
          image: text(
            'Reference with OS, ARCH and VARIANT in it.',
            'Write for example ghcr.io/acme/app-ARCHVARIANT:1.',
          ),
          platforms: platformList('What is put in for OS, ARCH and VARIANT.'),
        },
        say('must be a map', 'Write image and platforms below it.'),
      ),
      v.description('One source for each platform, after those of "sources".'),
    ),
  ),
  expectDigest: v.exactOptional(
    text(
      'The digest that every target must hold now (--expect-digest).',
      'Write sha256: and 64 lower-case hex digits.',
    ),
  ),
  ...SETTINGS,
};

const LIST_MESSAGE = say('must be a list of images to publish', 'Write target and sources below it.');
const LIST = map(LIST_ENTRIES, LIST_MESSAGE);

const $schema = v.exactOptional(
  v.pipe(v.string(say('must be an address', 'Remove it.')), v.description('Where editors find this schema.')),
);

/** A file that is one list. */
export const ONE_LIST = v.strictObject({ $schema, ...LIST_ENTRIES }, LIST_MESSAGE);

/** A file of lists. */
export const LISTS = v.strictObject(
  {
    $schema,
    defaults: v.exactOptional(
      v.pipe(
        map(SETTINGS, say('must be a map of settings', 'Write KEY: VALUE below it.')),
        v.description('What counts for each list that says nothing of it; maps are joined key by key.'),
      ),
    ),
    lists: v.pipe(
      v.array(LIST, say('must be a list', 'Write - target: REF, one for each list.')),
      v.nonEmpty(say('has no list', 'Write - target: REF, and sources below it.')),
      v.description('What to publish.'),
    ),
  },
  say('must be a map', 'Write lists: and below it one for each.'),
);

/** A file of manifest-tool, as it is. */
export const MANIFEST_TOOL = v.strictObject(
  {
    image: text('Reference to publish, HOST/REPOSITORY:TAG.', REFERENCE_HINT),
    tags: v.exactOptional(tags('More tags of the same repository.')),
    annotations: v.exactOptional(annotations('Annotations of the index.')),
    manifests: v.pipe(
      v.array(
        map(
          { image, platform: v.exactOptional(PLATFORM_MAP) },
          say('must be a map', 'Write - image: REF, and platform below it.'),
        ),
        say('must be a list', 'Write - image: REF, one for each image.'),
      ),
      v.nonEmpty(say('names no image', 'Write - image: REF, one for each image.')),
      v.description('Images to list, in this order.'),
    ),
  },
  say('must be a map', 'Write image and manifests.'),
);

/** A descriptor as builders write it; they put in more than is read. */
export const DESCRIPTOR = v.object(
  {
    mediaType: v.string(say('must be a text', 'Write the media type of the manifest.')),
    digest: v.string(say('must be a text', 'Write sha256: and 64 lower-case hex digits.')),
    platform: v.exactOptional(v.object(PLATFORM_ENTRIES, say('must be a platform', 'Write {"os", "architecture"}.'))),
    annotations: v.exactOptional(annotations('Annotations of what it brings to the index.')),
  },
  say('must be a descriptor', 'Write {"mediaType", "digest", "size"}.'),
);

/** @see SETTINGS */
export type SettingsSpec = v.InferOutput<v.StrictObjectSchema<typeof SETTINGS, string>>;
/** @see LIST_ENTRIES */
export type ListSpec = v.InferOutput<typeof LIST>;
/** @see MANIFEST_TOOL */
export type ManifestToolSpec = v.InferOutput<typeof MANIFEST_TOOL>;

/** All forms of a file. */
export const SPEC = Object.assign(
  v.lazy(() => ONE_LIST as v.GenericSchema),
  { options: [LISTS, ONE_LIST, MANIFEST_TOOL] },
);
