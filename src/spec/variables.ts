import { quoted } from '../model/quoted.ts';
import { invalid } from './failure.ts';
import type { ReadText } from './tree.ts';

/** What `${NAME}` stands for. */
export type Variables = Readonly<Record<string, string>>;

/** `${NAME}`, and `$${` for the two characters themselves. */
const VARIABLE = /\$\$\{|\$\{([^{}]*)\}?/g;
const NAME = /^[A-Za-z_]\w*$/;

/**
 * Puts variables into values, after the document was read: what a variable holds can change no line, no key and no list.
 */
export function variableReader(variables: Variables): ReadText {
  return (text, at) =>
    text.replace(VARIABLE, (found, name: string | undefined) => {
      if (name === undefined) return '${';
      if (!NAME.test(name) || !found.endsWith('}')) {
        throw invalid(
          at,
          `${quoted(found)} is not a variable`,
          'Write a name of letters, digits and _ between the braces; for the characters themselves write $${.',
        );
      }
      if (!Object.hasOwn(variables, name)) {
        throw invalid(
          at,
          `the variable ${name} has no value`,
          `Give it one: --var ${name}=VALUE, or --var ${name} for the one of the environment.`,
        );
      }
      return variables[name] ?? '';
    });
}
