import { beforeAll, expect, it, type TestContext } from 'vitest';
import { type Challenge, parseChallenges } from '../../src/auth/challenge.ts';
import { PublishError } from '../../src/errors.ts';
import { parseReference, type Reference } from '../../src/model/reference.ts';
import { wantedInputs, wantedSeed } from '../fuzz/lane.ts';
import { makeInput } from '../fuzz/mutate.ts';
import type { Target } from '../fuzz/target.ts';
import { CHALLENGE_CORPUS, CHALLENGE_WORDS, makeChallenges } from '../fuzz/targets/headers.ts';
import { makeReference, REFERENCE_CORPUS, REFERENCE_WORDS } from '../fuzz/targets/names.ts';
import { buildGoPeer, type GoPeer } from './go-peer.ts';
import { withPeers } from './lane.ts';
import { makeRandom } from './random.ts';

const INPUTS = wantedInputs('MP_FUZZ', 20_000);
const SEED = wantedSeed();
const LIMIT = 120_000 + INPUTS;

/** Where we mean to read a text otherwise than a peer, and why. */
type Difference<Case> = { readonly why: string; readonly applies: (one: Case) => boolean };

type Grammar = Pick<Target, 'make' | 'words' | 'corpus'>;

/** The corpus, then texts by chance; the same for the same seed. */
function* textsOf(grammar: Grammar, shaped: (text: string) => string): Iterable<string> {
  const random = makeRandom(SEED);
  for (const text of grammar.corpus) yield shaped(text);
  for (let left = INPUTS; left > 0; left -= 1) yield shaped(makeInput(grammar, [], random));
}

/** Sorts disagreements by the rows of the table; what no row explains is an offence. */
function judge<Case>(table: readonly Difference<Case>[]) {
  const counts = new Map(table.map(({ why }) => [why, 0]));
  const offences: unknown[] = [];
  return {
    counts,
    offences,
    differ(one: Case) {
      const row = table.find(({ applies }) => applies(one));
      if (row !== undefined) counts.set(row.why, (counts.get(row.why) ?? 0) + 1);
      else if (offences.length < 20) offences.push(one);
    },
  };
}

type TheirReference = Partial<Record<'host' | 'repository' | 'tag' | 'digest' | 'error', string>>;

type ReferenceCase = { readonly text: string; readonly ours: Reference | string; readonly theirs: TheirReference };

const refusedAs =
  (words: string) =>
  ({ ours, theirs }: ReferenceCase) =>
    typeof ours === 'string' && ours.includes(words) && theirs.error === undefined;

const REFERENCE_DIFFERENCES: readonly Difference<ReferenceCase>[] = [
  {
    why: 'hosts that a URL would change into another address (192.168.1), or cannot hold, lead a login astray: refused',
    applies: refusedAs('not a host name'),
  },
  {
    why: 'sha256:<64 hex> alone is a digest whose repository was forgotten, not the tag of an image named sha256',
    applies: refusedAs('a digest without a repository'),
  },
  {
    why: 'digests of algorithms that we do not compute, such as sha384, are refused',
    applies: refusedAs('not a sha256 or sha512 digest'),
  },
  { why: 'nothing of more than 1024 characters is read', applies: ({ text }) => text.length > 1024 },
  {
    why: 'hosts are lower-cased, since logins and connections are looked up by them',
    applies: ({ ours, theirs }) =>
      typeof ours !== 'string' && ours.host === theirs.host?.toLowerCase() && sameBut(ours, theirs),
  },
  {
    why: 'registry-1.docker.io is Docker Hub too, in any case of its letters as index.docker.io is',
    applies: ({ ours, theirs }) =>
      typeof ours !== 'string' &&
      ours.host === 'docker.io' &&
      /^(?:registry-1|index)\.docker\.io$|^docker\.io$/i.test(theirs.host ?? '') &&
      ours.repository.replace(/^library\//, '') === theirs.repository?.replace(/^library\//, ''),
  },
];

/** What chance would hardly make, for the rows of the table. */
const ODD_REFERENCES: readonly string[] = [
  'registry-1.docker.io/acme/app',
  `sha256:${'0'.repeat(64)}`,
  `acme/app@sha384:${'0'.repeat(96)}`,
  `${'a.'.repeat(600)}b/app`,
];

/** The same but for the host. */
function sameBut(ours: Reference, theirs: TheirReference): boolean {
  return (
    ours.repository === theirs.repository && ours.tag === theirs.tag && (ours.digest ?? undefined) === theirs.digest
  );
}

/** Their normalisation adds `latest` where there is a digest and no tag; ours leaves such a reference without tag. */
function agree({ ours, theirs }: ReferenceCase): boolean {
  if (typeof ours === 'string') return theirs.error !== undefined;
  return theirs.error === undefined && ours.host === theirs.host && sameBut(ours, theirs);
}

type TheirChallenge = { readonly scheme: string; readonly parameters: Readonly<Record<string, string>> };
type TheirChallenges = Readonly<Record<'docker' | 'containerd', readonly TheirChallenge[]>>;
type ChallengeCase = {
  readonly text: string;
  readonly ours: TheirChallenge | undefined;
  readonly theirs: TheirChallenge | undefined;
};

const matching =
  (pattern: RegExp) =>
  ({ text }: ChallengeCase) =>
    pattern.test(text);

/** Both peers read one challenge of a header and stop at the first thing that they do not expect; we read on. */
const CHALLENGE_DIFFERENCES: readonly Difference<ChallengeCase>[] = [
  {
    why: 'white space and commas in front are allowed by RFC 9110; what is no scheme is passed over',
    applies: matching(/^[ \t,=]/),
  },
  { why: 'white space around the equals sign is allowed by RFC 9110', applies: matching(/[ \t]=|=[ \t]/) },
  {
    why: 'empty elements of a list are allowed by RFC 9110',
    applies: matching(/,[ \t]*,|^[^ \t,="]+[ \t]*,|,[ \t]*$/),
  },
  { why: 'an address without quotes is read to its end', applies: matching(/=[^",= \t]*[(/:;<>?@[\]\\{})]/) },
  { why: 'an empty value is a value', applies: matching(/=(?:""|[,]|$)/) },
  {
    why: 'a quotation that never ends is read to the end',
    applies: ({ text }) => (text.replace(/\\./g, '').match(/"/g) ?? []).length % 2 === 1 || text.endsWith('\\'),
  },
  {
    why: 'of a parameter that comes twice the first counts, as of a header that a proxy has added to',
    applies: ({ text }) => {
      const names = [...text.matchAll(/([\w.!#$%&'*+^`|~-]+)=/g)].map(([, name = '']) => name.toLowerCase());
      return new Set(names).size < names.length;
    },
  },
  {
    why: 'what does not belong behind a value or a scheme is passed over',
    applies: matching(/"[^",]*[^",= \t]|=[^", \t]+[ \t]+[^, \t]|=.*=|^[^ \t]*["(/:;<>?@[\]\\{})]|[^ \t,="]=/),
  },
];

const HEADER = /[^\t\x20-\x7e]/g;

withPeers(['go'], 'parsers of others, in Go', () => {
  let peer: GoPeer | string;
  beforeAll(async () => {
    peer = await buildGoPeer();
  }, 700_000);

  /** Skips aloud where there is nothing to compare with. */
  function need(context: TestContext): GoPeer {
    if (typeof peer === 'string') return context.skip(peer);
    return peer;
  }

  it(
    `read references as we do, but for the differences that are listed (${INPUTS} texts, seed ${SEED})`,
    async (context) => {
      const { differ, offences, counts } = judge(REFERENCE_DIFFERENCES);
      const grammar = { make: makeReference, words: REFERENCE_WORDS, corpus: [...REFERENCE_CORPUS, ...ODD_REFERENCES] };
      let good = 0;
      // Go's JSON would write lone surrogates as something else.
      const texts = textsOf(grammar, (text) => Buffer.from(text).toString());
      await need(context).ask<TheirReference>('references', texts, (text, theirs) => {
        const one = { text, ours: ourReference(text), theirs };
        if (theirs.error === undefined) good += 1;
        if (!agree(one)) differ(one);
      });
      expect(offences).toEqual([]);
      expect(good).toBeGreaterThan(INPUTS / 10);
      expect([...counts].filter(([, count]) => count === 0)).toEqual([]);
    },
    LIMIT,
  );

  for (const name of ['containerd', 'docker'] as const) {
    it(
      `${name} reads the first challenge as we do, but for the differences that are listed (${INPUTS} texts, seed ${SEED})`,
      async (context) => {
        const { differ, offences, counts } = judge(CHALLENGE_DIFFERENCES);
        const grammar = { make: makeChallenges, words: CHALLENGE_WORDS, corpus: CHALLENGE_CORPUS };
        let good = 0;
        const texts = textsOf(grammar, (text) => text.replace(HEADER, ''));
        await need(context).ask<TheirChallenges>('challenges', texts, (text, answer) => {
          const theirs = answer[name][0];
          const ours = plain(parseChallenges(text)[0]);
          // containerd knows three schemes, and passes over all others.
          const known = name === 'docker' || ['basic', 'bearer', 'digest'].includes(ours?.scheme ?? 'basic');
          if (!known && theirs === undefined) return;
          if (sameChallenge(ours, theirs)) good += 1;
          else differ({ text, ours, theirs });
        });
        expect(offences).toEqual([]);
        expect(good).toBeGreaterThan(INPUTS / 10);
        expect([...counts].filter(([, count]) => count === 0)).toEqual([]);
      },
      LIMIT,
    );
  }
});

function ourReference(text: string): Reference | string {
  try {
    return parseReference(text);
  } catch (error) {
    if (error instanceof PublishError) return error.message;
    throw error;
  }
}

function plain(challenge: Challenge | undefined): TheirChallenge | undefined {
  return challenge && { scheme: challenge.scheme, parameters: Object.fromEntries(challenge.parameters) };
}

function sameChallenge(ours: TheirChallenge | undefined, theirs: TheirChallenge | undefined): boolean {
  if (ours === undefined || theirs === undefined) return ours === theirs;
  const sorted = (one: TheirChallenge) => JSON.stringify([one.scheme, Object.entries(one.parameters).sort()]);
  return sorted(ours) === sorted(theirs);
}
