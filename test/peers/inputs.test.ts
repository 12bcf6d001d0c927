import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type ExternalRegistry,
  makeFolder,
  startDebianRegistry,
  startDistributionV3,
} from '../helpers/external-registry.ts';
import { findProgram } from '../helpers/processes.ts';
import { FORMS } from './input-forms.ts';
import { expectHeld, type Form, fill, makeWorld } from './input-world.ts';
import { withPeers } from './lane.ts';

/** Programs that read the lists back; without one, the others still do. */
const READERS = ['crane', 'regctl', 'docker'].filter((program) => findProgram(program) !== undefined);

/**
 * Every form in which people say what they publish, published by the built program to registries of others, and read
 * back by `verify` and by programs of others: the very bytes that the documentation promises, not merely a list that
 * can be read.
 */
withPeers(['docker-registry', 'distribution-v3'], `published and read back by verify, ${READERS.join(', ')}`, () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let debian: ExternalRegistry;
  let third: ExternalRegistry;
  beforeAll(async () => {
    folder = await makeFolder();
    debian = await startDebianRegistry(`${folder.path}/debian`);
    third = await startDistributionV3(`${folder.path}/v3`);
    await Promise.all([fill(debian.host), fill(third.host)]);
  });
  afterAll(async () => {
    await debian?.stop();
    await third?.stop();
    await folder.remove();
  });

  const tryForm = async ({ on, publish }: Form) => {
    const [host, other] = on === 'debian' ? [debian.host, third.host] : [third.host, debian.host];
    const world = await makeWorld(folder.path, host, other);
    const lists = await publish(world);
    expect(lists).not.toEqual([]);
    for (const list of lists) await expectHeld(world, list);
  };

  for (const form of FORMS) {
    withPeers(form.needs ?? [], form.on, () => {
      it(form.name, () => tryForm(form));
    });
  }
});
