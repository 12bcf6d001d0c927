import { PublishError } from '../errors.ts';
import type { AnswerFacts } from '../registry/client.ts';
import type { MountStep } from './mount-check-report.ts';

/** Given to a verb, so that its answer is written down as it came. */
export type Witness = { readonly onAnswer: (facts: AnswerFacts) => void };

/** The record of a check: every request it makes goes through here. */
export interface StepRecord {
  /** Asks, and notes what was answered and what that means, or that it failed. */
  take<T>(
    method: string,
    what: string,
    repository: string,
    ask: (witness: Witness) => Promise<T>,
    meaning: (answer: T) => string,
  ): Promise<T>;
  readonly steps: readonly MountStep[];
  /** Headers and forms of address seen so far, the last word of each. */
  readonly seen: ReadonlyMap<string, string>;
}

/** An empty record. */
export function recordSteps(): StepRecord {
  const steps: MountStep[] = [];
  const seen = new Map<string, string>();
  return {
    steps,
    seen,
    take: async (method, what, repository, ask, meaning) => {
      let status: number | undefined;
      const note = (text: string) => {
        const facts = { step: steps.length + 1, method, what, repository };
        steps.push({ ...facts, ...(status === undefined ? {} : { status }), meaning: text });
      };
      try {
        const answer = await ask({
          onAnswer: (facts) => {
            status = facts.status;
            for (const [name, value] of Object.entries(facts.headers)) seen.set(name, value);
            if (facts.location !== undefined) seen.set('location', facts.location);
          },
        });
        note(meaning(answer));
        return answer;
      } catch (error) {
        if (error instanceof PublishError) note(`failed: ${error.message}`);
        throw error;
      }
    },
  };
}
