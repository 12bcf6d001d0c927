import { boolean, string } from '@oclif/core/flags';
import { ATTESTATIONS, INDEX_TYPES, PROGRESS_MODES, REFERRERS, STAGES } from '../config/values.ts';
// Values stay text here and are read in settings.ts, where flag, environment and configuration meet: oclif would put
// its own words around the message of a failed parse, and an environment variable would get another one.

/** Every command has these. */
export const COMMON_FLAGS = {
  json: boolean({ helpGroup: 'GLOBAL', description: 'Print one JSON document on stdout, also for an error.' }),
  quiet: boolean({ char: 'q', helpGroup: 'GLOBAL', description: 'Write only errors to stderr.' }),
  debug: boolean({ helpGroup: 'GLOBAL', description: 'Write one line per request to stderr, without secrets.' }),
  progress: string({
    helpGroup: 'GLOBAL',
    helpValue: PROGRESS_MODES.join('|'),
    description: 'How progress is shown on stderr. [default: auto; env: MANIFEST_PUBLISH_PROGRESS]',
  }),
  config: string({
    helpGroup: 'GLOBAL',
    helpValue: 'FILE',
    description: 'Configuration file. [default: found by search; env: MANIFEST_PUBLISH_CONFIG]',
  }),
  'no-color': boolean({ helpGroup: 'GLOBAL', description: 'Write no colours; so does NO_COLOR.' }),
};

/** Commands that speak to a registry have these. */
export const NETWORK_FLAGS = {
  insecure: boolean({
    helpGroup: 'NETWORK',
    description:
      'Do not check the certificate, and speak http when https is refused. For the registry named first only.',
  }),
  'plain-http': boolean({
    helpGroup: 'NETWORK',
    description: 'Speak http at once. For the registry named first only; loopback needs no flag.',
  }),
  'ca-file': string({
    helpGroup: 'NETWORK',
    helpValue: 'FILE',
    description: 'PEM file of certificate authorities to trust besides the usual ones. [env: MANIFEST_PUBLISH_CA_FILE]',
  }),
  jobs: string({
    char: 'j',
    helpGroup: 'NETWORK',
    helpValue: 'N',
    description: 'Blobs over 4 MiB copied at a time per registry. [default: 4; env: MANIFEST_PUBLISH_JOBS]',
  }),
  'max-rps': string({
    helpGroup: 'NETWORK',
    helpValue: 'HOST=N',
    multiple: true,
    multipleNonGreedy: true,
    description: 'Send a registry at most N requests a second. Repeatable. [env: MANIFEST_PUBLISH_MAX_RPS]',
  }),
  timeout: string({
    helpGroup: 'NETWORK',
    helpValue: 'DURATION',
    description: 'Longest time for the whole run, such as 90s or 10m. [default: none; env: MANIFEST_PUBLISH_TIMEOUT]',
  }),
  retries: string({
    helpGroup: 'NETWORK',
    helpValue: 'N',
    description: 'How often a failed request is sent again. [default: 5; env: MANIFEST_PUBLISH_RETRIES]',
  }),
};

/** Commands that put an index have these. */
export const INDEX_FLAGS = {
  tag: string({
    char: 't',
    helpValue: 'TAG|REF',
    multiple: true,
    multipleNonGreedy: true,
    description:
      'Another tag for the same index: a tag of the same repository, or a reference in any repository of any registry. Repeatable.',
  }),
  type: string({
    helpValue: INDEX_TYPES.join('|'),
    description: 'Media type of the index. auto: a Docker list when all images are Docker, else an OCI index.',
  }),
  annotation: string({
    helpValue: '[index:]KEY=VALUE',
    multiple: true,
    multipleNonGreedy: true,
    description: 'Annotation of the index, which must be an OCI index. Repeatable.',
  }),
  'dry-run': boolean({ description: 'Read and plan only: print the digest that the index would have.' }),
  'no-verify': boolean({
    description: 'Trust a mount that the registry confirmed, and images that the tag lists already.',
  }),
  'no-clobber': boolean({
    description: 'Leave a tag alone that exists with another digest: exit code 7. Seen just before it would be moved.',
  }),
  'expect-digest': string({
    helpValue: 'DIGEST',
    description: 'Move a tag only if it holds this digest now, else exit code 7. Seen just before it would be moved.',
  }),
  github: boolean({
    allowNo: true,
    description:
      'Write outputs, a step summary and error annotations for GitHub Actions. [default: where GitHub Actions runs it]',
  }),
  'digest-file': string({ helpValue: 'FILE', description: 'Write the digest of the index to a file.' }),
  'metadata-file': string({ helpValue: 'FILE', description: 'Write what docker buildx writes to its metadata file.' }),
  report: string({
    helpValue: 'FILE',
    description: 'Write the report of --json to a file, also when a part of the run failed.',
  }),
};

/** Where `publish` has its lists and images from, besides its arguments. */
const INPUT_FLAGS = {
  file: string({
    char: 'f',
    helpGroup: 'INPUT',
    helpValue: 'SPEC',
    multiple: true,
    multipleNonGreedy: true,
    description:
      "Publish the lists of a spec file, manifest-tool's YAML or our own; - is standard input. Repeatable. TARGET and SOURCE are left out.",
  }),
  var: string({
    helpGroup: 'INPUT',
    helpValue: 'NAME[=VALUE]',
    multiple: true,
    multipleNonGreedy: true,
    description:
      'Value of a variable of the spec files; without one that of the environment variable NAME. Repeatable.',
  }),
  'keep-going': boolean({
    helpGroup: 'INPUT',
    description: 'Publish the other lists of the spec files when one fails: exit code 9.',
  }),
  template: string({
    helpGroup: 'INPUT',
    helpValue: 'REF',
    description: 'Images whose names hold ARCH, OS or VARIANT, one for each of --platforms.',
  }),
  platforms: string({
    helpGroup: 'INPUT',
    helpValue: 'LIST',
    description: 'Platforms of --template, such as linux/amd64,linux/arm/v7.',
  }),
  'digests-dir': string({
    helpGroup: 'INPUT',
    helpValue: 'DIR',
    description: 'Images of the repository of TARGET whose digests are the names of the files in a folder.',
  }),
  'from-metadata': string({
    helpGroup: 'INPUT',
    helpValue: 'FILE',
    multiple: true,
    multipleNonGreedy: true,
    description:
      'Images of a metadata file of docker buildx, or tags and annotations of docker/metadata-action; - is standard input, env:NAME a variable. Repeatable.',
  }),
  'bake-target': string({
    helpGroup: 'INPUT',
    helpValue: 'NAME',
    multiple: true,
    multipleNonGreedy: true,
    description: 'Take only this target of the metadata file of docker buildx bake. Repeatable.',
  }),
  'digests-repository': string({
    helpGroup: 'INPUT',
    helpValue: 'REPOSITORY',
    description: 'Where images that are named by a digest alone are, if not in the repository of TARGET.',
  }),
};

/** `publish` has these besides. */
export const PUBLISH_FLAGS = {
  ...INPUT_FLAGS,
  ...INDEX_FLAGS,
  annotation: string({
    helpValue: '[PLACE:]KEY=VALUE',
    multiple: true,
    multipleNonGreedy: true,
    description:
      'Annotation of the index, or with descriptor[PLATFORM]: of its entry for a platform; the index must be an OCI index. Repeatable.',
  }),
  platform: string({
    helpValue: 'PLATFORM',
    multiple: true,
    multipleNonGreedy: true,
    description: 'Take only images of this platform, such as linux/arm/v7. Repeatable, or a list with commas.',
  }),
  'expect-platforms': string({
    helpValue: 'LIST',
    description: 'End with exit code 4, before anything is written, unless the index has exactly these platforms.',
  }),
  'force-platform': boolean({
    description: 'Write the platform of PLATFORM=SOURCE although the image says another one.',
  }),
  'foreign-layers': boolean({ description: 'Copy layers that are marked as not to be distributed too.' }),
  'wait-for-source': string({
    helpValue: 'DURATION',
    description: 'Ask again for a source that is not there yet, for so long.',
  }),
  amend: boolean({
    aliases: ['append'],
    description: 'Keep what TARGET lists now, but for platforms that the sources bring.',
  }),
  'ignore-missing': boolean({ description: 'Leave out sources that are not there, and say which.' }),
  attestations: string({
    helpValue: ATTESTATIONS.join('|'),
    description: 'What to do with attestations beside images. [default: keep]',
  }),
  referrers: string({
    helpValue: REFERRERS.join('|'),
    description: 'Take along what refers to the images, such as signatures. [default: none]',
  }),
  shard: string({
    helpGroup: 'SCALE',
    helpValue: 'I/N|auto',
    description:
      'Publish the I-th of N parts of the lists, divided by target repository; auto asks the variables of GitLab, CircleCI, Buildkite, Kubernetes or AWS Batch. --max-rps is divided by N. [env: MANIFEST_PUBLISH_SHARD]',
  }),
  stage: string({
    helpGroup: 'SCALE',
    helpValue: STAGES.join('|'),
    description:
      'What to put. content: images and blobs only, no index, no tag; with --shard one repository is divided by source. index: index and tags only, exit code 4 when an image is not there.',
  }),
};
