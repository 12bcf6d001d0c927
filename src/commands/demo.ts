import { BaseCommand } from '../cli/base-command.ts';
import { publishRequest } from '../cli/request.ts';
import type { PublishReport } from '../publish/report.ts';
import { renderSummary, renderVerification, reportDocument } from '../ui/render.ts';

/** Bytes of each layer of the images: enough to see them move, little enough to be done in a second. */
const LAYER_BYTES = 256 * 1024;

/** The whole way on this machine: a registry that refuses mounts, sources, publish, verify. */
export class Demo extends BaseCommand {
  static override usage = '<%= command.id %> [FLAG...]';
  static override summary = 'See it at work against a registry that refuses mounts.';
  static override description =
    `Starts the embedded registry on a free port of this machine, with eight repositories like those of Debian, one for each architecture. Mounts are refused there, where docker manifest push ends with "error mounting". Publishes debian/debian:bullseye from the eight, downloads and checks everything, and prints what happened and the digest. Nothing else is connected to, and nothing stays behind.`;
  static override examples = [{ description: 'Takes about a second.', command: '<%= config.bin %> <%= command.id %>' }];

  async run(): Promise<void> {
    const { flags } = await this.parse(Demo);
    const { seedDebian, startRegistry } = await import('../registry-server/index.ts');
    const registry = await startRegistry({ changes: { mount: { mode: 'ignore' } } });
    try {
      const images = seedDebian(registry, { layerBytes: LAYER_BYTES });
      const request = publishRequest({
        target: `${registry.host}/debian/debian:bullseye`,
        sources: images.map((image) => `${registry.host}/${image.repository}:${image.tag}`),
      });
      const { report, verification } = await this.withSession(
        flags,
        registry.host,
        async ({ ports, signal }) => {
          const [{ publish }, { verify }] = await Promise.all([
            import('../publish/publish.ts'),
            import('../publish/verify.ts'),
          ]);
          const [target] = request.targets;
          if (target === undefined) throw new Error('the demo has no target');
          const done = await publish(request, ports, signal);
          return { report: done, verification: await verify(target, { deep: true }, ports, signal) };
        },
        { isolated: true },
      );
      const theme = this.theme(flags);
      const text = `${renderSummary(report, theme)}\n${renderVerification(verification, theme)}\n${digestOf(report)}\n`;
      await this.result(flags, { report: reportDocument(report), verification }, text);
    } finally {
      await registry.close();
    }
  }
}

function digestOf(report: PublishReport): string {
  return report.lists[0]?.index?.digest ?? '';
}
