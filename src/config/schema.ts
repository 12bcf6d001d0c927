import * as v from 'valibot';
import type { Config } from './config.ts';
import {
  CHUNK_BOUNDS,
  CHUNK_FORM,
  DURATION_FORM,
  hostOf,
  INDEX_TYPES,
  MOUNT_MODES,
  PROGRESS_MODES,
  parseChunkSize,
  parseDuration,
  UPLOAD_MODES,
} from './values.ts';

const duration = (description: string) =>
  v.pipe(
    v.string(`must be ${DURATION_FORM}`),
    v.check((text) => parseDuration(text) !== undefined, `must be ${DURATION_FORM}`),
    v.transform((text) => parseDuration(text) ?? 0),
    v.description(description),
  );

const count = (least: number, most: number, description: string) =>
  v.pipe(
    v.number(`must be a whole number from ${least} to ${most}`),
    v.integer(`must be a whole number from ${least} to ${most}`),
    v.minValue(least, `must be a whole number from ${least} to ${most}`),
    v.maxValue(most, `must be a whole number from ${least} to ${most}`),
    v.description(description),
  );

const flag = (description: string) => v.pipe(v.boolean('must be true or false'), v.description(description));

const choice = <const T extends readonly string[]>(values: T, description: string) =>
  v.pipe(v.picklist(values, `must be one of ${values.join(', ')}`), v.description(description));

const CHUNK_HINT = `must be ${CHUNK_FORM}`;

const chunkSize = (description: string) =>
  v.pipe(
    v.union(
      [
        v.string(),
        v.pipe(v.number(), v.minValue(CHUNK_BOUNDS.least, CHUNK_HINT), v.maxValue(CHUNK_BOUNDS.most, CHUNK_HINT)),
      ],
      CHUNK_HINT,
    ),
    v.check((value) => parseChunkSize(value) !== undefined, CHUNK_HINT),
    v.transform((value) => parseChunkSize(value) ?? 0),
    v.description(description),
  );

const file = (description: string) =>
  v.pipe(v.string('must be a file name'), v.nonEmpty('must be a file name'), v.description(description));

/** What may be said of one registry. */
export const REGISTRY_ENTRIES = {
  insecure: v.exactOptional(
    flag('Do not check the certificate, and speak http when https is refused. Needs --config.'),
  ),
  plainHttp: v.exactOptional(flag('Speak http at once. Needs --config.')),
  caFile: v.exactOptional(file('PEM file of certificate authorities to trust besides the usual ones. Needs --config.')),
  certFile: v.exactOptional(
    file('PEM file of the certificate to show to this registry (mutual TLS), with keyFile. Needs --config.'),
  ),
  keyFile: v.exactOptional(file('PEM file of the private key of certFile. Needs --config.')),
  maxRps: v.exactOptional(
    v.pipe(
      v.number('must be a number of requests a second, above 0'),
      v.gtValue(0, 'must be a number of requests a second, above 0'),
      v.description('Requests a second that this registry is sent at most.'),
    ),
  ),
  mount: v.exactOptional(
    choice(MOUNT_MODES, 'auto asks the registry to mount blobs; never copies them without asking.'),
  ),
  upload: v.exactOptional(
    choice(
      UPLOAD_MODES,
      'How blobs are sent: whole in one request, in chunks, or auto as the registry turns out to take them.',
    ),
  ),
  chunkSize: v.exactOptional(
    chunkSize('Size of a chunk, 64KiB to 1GiB, in bytes or such as 8MiB; chosen by the program without it.'),
  ),
};

const REGISTRY = v.pipe(
  v.strictObject(REGISTRY_ENTRIES, 'must be a map of settings'),
  v.description('Settings of one registry, by the host that stands in references.'),
);

/** A host as references name it, after Docker's normalisation; `docker.io` for all names of Docker Hub. */
const HOST = v.pipe(
  v.string(),
  v.check((text) => hostOf(text) !== undefined, 'is not a registry host, such as ghcr.io or localhost:5000'),
  v.transform((text) => hostOf(text) ?? text),
);

/** What a configuration file may hold; the JSON Schema in `docs/` is made from it. */
export const CONFIG = v.strictObject(
  {
    $schema: v.exactOptional(v.pipe(v.string('must be an address'), v.description('Where editors find this schema.'))),
    jobs: v.exactOptional(count(1, 64, 'Blobs over 4 MiB that are copied at a time per registry (--jobs).')),
    retries: v.exactOptional(count(0, 20, 'How often a failed request is sent again (--retries).')),
    timeout: v.exactOptional(duration('Longest time for the whole run, such as 10m (--timeout).')),
    progress: v.exactOptional(choice(PROGRESS_MODES, 'How progress is shown on stderr (--progress).')),
    type: v.exactOptional(choice(INDEX_TYPES, 'Media type of the index (publish --type).')),
    foreignLayers: v.exactOptional(flag('Copy non-distributable layers too (publish --foreign-layers).')),
    waitForSource: v.exactOptional(
      duration('How long a source that is not there yet is asked for again, such as 5m (publish --wait-for-source).'),
    ),
    caFile: v.exactOptional(
      file('PEM file of certificate authorities, for all registries (--ca-file). Needs --config.'),
    ),
    registries: v.exactOptional(v.pipe(v.record(HOST, REGISTRY, 'must be a map of hosts'), v.description('By host.'))),
  },
  'must be a map of settings',
) satisfies v.GenericSchema<unknown, Config>;
