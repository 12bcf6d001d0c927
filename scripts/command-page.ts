import type { HelpFile } from './help.ts';

/** The page of all commands: the help of each, as `--help` prints it. */
export function commandPage({ help }: HelpFile): string {
  const names = Object.keys(help)
    .filter((name) => name !== '' && !name.includes(':') && !isTopic(help[name] ?? ''))
    .sort();
  const sections = names.map((name) => `## ${name}\n\n\`\`\`text\n${(help[name] ?? '').trimEnd()}\n\`\`\``);
  return `# Commands

What \`manifest-publish COMMAND --help\` prints. Exit codes are in [errors.md](errors.md).

<!-- made by npm run generate; do not edit -->

${names.map((name) => `[${name}](#${name.replaceAll(' ', '-')})`).join(' · ')}

${sections.join('\n\n')}
`;
}

/** A topic has no usage of its own but that of what is below it. */
function isTopic(text: string): boolean {
  return /^ {2,}\S.*\bCOMMAND$/m.test(text);
}
