import * as v from 'valibot';
import type { Config } from './config.ts';
import { DURATION_FORM, hostOf, INDEX_TYPES, PROGRESS_MODES, parseDuration } from './values.ts';

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

const file = (description: string) =>
  v.pipe(v.string('must be a file name'), v.nonEmpty('must be a file name'), v.description(description));

const REGISTRY = v.pipe(
  v.strictObject(
    {
      insecure: v.exactOptional(
        flag('Do not check the certificate, and speak http when https is refused. Needs --config.'),
      ),
      plainHttp: v.exactOptional(flag('Speak http at once. Needs --config.')),
      caFile: v.exactOptional(
        file('PEM file of certificate authorities to trust besides the usual ones. Needs --config.'),
      ),
      maxRps: v.exactOptional(
        v.pipe(
          v.number('must be a number of requests a second, above 0'),
          v.gtValue(0, 'must be a number of requests a second, above 0'),
          v.description('Requests a second that this registry is sent at most.'),
        ),
      ),
    },
    'must be a map of settings',
  ),
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
    progress: v.exactOptional(
      v.pipe(
        v.picklist(PROGRESS_MODES, `must be one of ${PROGRESS_MODES.join(', ')}`),
        v.description('How progress is shown on stderr (--progress).'),
      ),
    ),
    type: v.exactOptional(
      v.pipe(
        v.picklist(INDEX_TYPES, `must be one of ${INDEX_TYPES.join(', ')}`),
        v.description('Media type of the index (publish --type).'),
      ),
    ),
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
