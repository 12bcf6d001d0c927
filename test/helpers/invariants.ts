import { isDigest } from '../../src/model/digest.ts';
import type { JournalEntry, RunningRegistry, TagMove } from '../../src/registry-server/index.ts';

/** What one registry saw of a run, and what it holds afterwards. */
export type SeenRegistry = Pick<RunningRegistry, 'host' | 'tagOf' | 'manifestOf'> & {
  readonly journal: readonly JournalEntry[];
  readonly tagMoves: readonly TagMove[];
  /** Open now, beyond those that were open before. */
  readonly sessions: number;
  /** Tags before the run, by {@link tagName}; those that are not known were not looked at. */
  readonly before?: ReadonlyMap<string, string>;
};

/** Something that nobody but `host` may be told; without a host nobody at all. */
export type Secret = { readonly text: string; readonly host?: string };

/** One run of the program or of `publish`, as seen from outside. */
export type SeenRun = {
  readonly registries: readonly SeenRegistry[];
  /** Undefined when a signal ended it. */
  readonly exitCode: number | undefined;
  /** Digests that the run says its targets hold; empty for a run that may move no tag. */
  readonly printed: readonly string[];
  /** Everything that it wrote, by the name of where. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly secrets: readonly Secret[];
  /** Addresses that were connected to. */
  readonly connected: readonly string[];
  /** Sockets of this process that were still open when the run was over. */
  readonly openSockets: number;
  /** Between its last word and its end, in ms. */
  readonly lingered: number;
  /** No other run was under way at these registries. */
  readonly alone: boolean;
};

/** The program ends itself when something holds it open for 5 s after its work; that must never be needed. */
const LINGER = 4_000;

/** What must hold of every run, good or bad: design, section 12. N8 is asked for by `rerunConverges`. */
export function violations(run: SeenRun): readonly string[] {
  const each = run.registries.flatMap((registry) => [
    ...(run.alone ? movedOnce(registry) : []),
    ...completeBefore(registry),
    ...onlyWhenAsked(registry),
    ...sessionsLeft(registry, run),
  ]);
  return [...each, ...leaks(run), ...strayLogins(run), ...connections(run), ...proof(run), ...ending(run)];
}

/** A tag, for {@link SeenRegistry.before}. */
export function tagName(repository: string, tag: string): string {
  return `${repository}:${tag}`;
}

/** Fallback tags of referrers and cosign's are written beside the targets. @see distribution-spec, "Referrers Tag Schema" */
const REFERRERS_TAG = /^sha(?:256|384|512)-[0-9a-f]{64,128}(?:\.(?:sig|att|sbom))?$/;

/** N1: the tag is the old digest or the complete new index, at every moment. */
function movedOnce({ tagMoves, manifestOf }: SeenRegistry): readonly string[] {
  const problems: string[] = [];
  const targets = new Map<string, Set<string>>();
  for (const { repository, tag, from, to } of tagMoves) {
    if (REFERRERS_TAG.test(tag)) continue;
    const name = tagName(repository, tag);
    if (to === undefined) {
      problems.push(`N1: the tag ${name} was deleted`);
      continue;
    }
    // The same digest once more is no move: a PUT whose answer was lost is sent again.
    if (from !== to) targets.set(name, (targets.get(name) ?? new Set()).add(to));
    const type = manifestOf(repository, to)?.mediaType ?? 'nothing';
    if (!/index|manifest\.list/.test(type)) problems.push(`N1: the tag ${name} moved to ${to}, which is ${type}`);
  }
  for (const [name, digests] of targets) {
    if (digests.size > 1) problems.push(`N1: the tag ${name} moved to ${digests.size} different digests`);
  }
  return problems;
}

/** N2: a moved tag means that everything it reaches was there before. */
function completeBefore({ journal, tagMoves, manifestOf }: SeenRegistry): readonly string[] {
  const missing = tagMoves.flatMap(({ repository, tag, missing: digests }) =>
    digests.map((digest) => `N2: the tag ${tagName(repository, tag)} moved though ${digest} was not there`),
  );
  const puts = journal.filter(({ operation }) => operation === 'manifestPut');
  const taken = puts.filter(({ status = 0 }) => status >= 200 && status < 300);
  const early = taken
    // A refusal of the index may be what tells that a child is missing, which is put then.
    .filter(({ reference, status = 0 }) => !isDigest(reference) && !REFERRERS_TAG.test(reference) && status < 400)
    .flatMap((put) => {
      const children = childrenOf(manifestOf(put.repository, put.reference)?.bytes);
      return puts.filter(
        ({ repository, reference, end = Number.POSITIVE_INFINITY }) =>
          repository === put.repository &&
          children.includes(reference) &&
          end > put.start &&
          !answered(puts, put, reference),
      );
    });
  return [...missing, ...early.map(({ path }) => `N2: the tag was PUT before ${path} was answered`)];
}

/** A child whose first PUT was answered may be put again, when the registry says that it is missing. */
function answered(puts: readonly JournalEntry[], tag: JournalEntry, child: string): boolean {
  return puts.some(
    ({ repository, reference, end }) =>
      repository === tag.repository && reference === child && end !== undefined && end < tag.start,
  );
}

function childrenOf(bytes: Uint8Array | undefined): readonly string[] {
  if (bytes === undefined) return [];
  const { manifests = [] } = JSON.parse(Buffer.from(bytes).toString()) as { manifests?: { digest: string }[] };
  return manifests.map(({ digest }) => digest);
}

/** N4 at one registry: a login goes to the registry itself, after it has asked, and a password to its token service alone. */
function onlyWhenAsked({ journal }: SeenRegistry): readonly string[] {
  const asked = Math.min(...journal.filter(({ status }) => status === 401).map(({ end = 0 }) => end));
  const bearer = journal.some(({ operation, status }) => operation === 'token' && status === 200);
  return journal.flatMap(({ listener, authorization, operation, method, path, start }) => {
    if (authorization === 'none') return [];
    const what = `${method} ${path}`;
    if (listener === 'storage') return [`N4: ${authorization} Authorization reached another host: ${what}`];
    if (start < asked) return [`N4: ${authorization} Authorization was sent unasked: ${what}`];
    const toService = operation === 'token' || authorization !== 'basic' || !bearer;
    return toService ? [] : [`N4: a password was sent to the registry, which wants tokens: ${what}`];
  });
}

/** N4 between registries: what one host was shown is shown to no other. */
function strayLogins({ registries, secrets }: SeenRun): readonly string[] {
  return registries.flatMap(({ host, journal }) => {
    const foreign = [
      ...secrets.filter((secret) => secret.host !== host),
      ...registries.filter((other) => other.host !== host).flatMap(tokensOf),
    ];
    return journal.flatMap(({ headers, query, method, path }) => {
      const shown = `${headers['authorization'] ?? ''} ${decodedBasic(headers['authorization'])} ${query}`;
      const strangers = foreign.filter(({ text }) => spellings(text).some((spelling) => shown.includes(spelling)));
      return strangers.map(() => `N4: ${host} was shown a secret that is not its own: ${method} ${path}`);
    });
  });
}

function tokensOf({ host, journal }: SeenRegistry): readonly Secret[] {
  const tokens = journal.map(({ headers }) => /^Bearer (.+)$/.exec(headers['authorization'] ?? '')?.[1]);
  return [...new Set(tokens)].filter((token) => token !== undefined).map((text) => ({ text, host }));
}

function decodedBasic(header = ''): string {
  const [, encoded] = /^Basic (.+)$/.exec(header) ?? [];
  return encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString();
}

/** Shorter secrets, such as the password `secret`, are words that occur by themselves. */
const SHORTEST = 10;

/** N3: no secret in anything that was written: those handed in, and whatever the registries were shown. */
function leaks({ registries, outputs, secrets }: SeenRun): readonly string[] {
  const seen = registries.flatMap(({ journal }) => journal.flatMap(secretsOf));
  const all = [...new Set([...secrets.map(({ text }) => text), ...seen])].filter((text) => text.length >= SHORTEST);
  return Object.entries(outputs).flatMap(([name, text]) =>
    all
      .filter((secret) => spellings(secret).some((spelling) => text.includes(spelling)))
      .map((secret) => `N3: ${name} holds a secret: ${secret.slice(0, 4)}…`),
  );
}

/** Logins, tokens, and the signatures of sessions and storage addresses. */
function secretsOf({ headers, query }: JournalEntry): readonly string[] {
  const { authorization = '' } = headers;
  const password = decodedBasic(authorization).replace(/^[^:]*:/, '');
  const values = [...new URLSearchParams(query)].filter(([name]) => /^(?:_state|_stateHash|X-Signature)$/.test(name));
  return [authorization.replace(/^\S+ /, ''), password, ...values.map(([, value]) => value)];
}

/** A secret as it may be written: as it is, in base64 alone, in an address, in JSON. */
export function spellings(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  const encoded = [bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url')];
  const escaped = [encodeURIComponent(secret), encodeURI(secret), JSON.stringify(secret).slice(1, -1)];
  return [...new Set([secret, ...encoded, ...escaped])];
}

/** N5: tests live on loopback, so that whatever else is connected to was not refused as it should have been. */
function connections({ connected }: SeenRun): readonly string[] {
  const strange = connected.filter((address) => !/^(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\..+)$/.test(address));
  return strange.map((address) => `N5: ${address} was connected to`);
}

/** N6: success is said only of what the registry has taken or shown in this run. */
function proof({ registries, exitCode, printed, alone }: SeenRun): readonly string[] {
  if (exitCode !== 0) return [];
  const named = registries.flatMap(({ journal, tagMoves, tagOf, before }) =>
    journal
      .filter(({ operation, reference, status = 0 }) => {
        const fits = operation === 'manifestPut' || operation === 'manifestGet';
        return fits && !isDigest(reference) && status >= 200 && status < 300;
      })
      .flatMap(({ repository, reference }) => [
        tagOf(repository, reference),
        before?.get(tagName(repository, reference)),
        ...tagMoves.filter((move) => move.repository === repository && move.tag === reference).map(({ to }) => to),
      ]),
  );
  const unproven = printed.filter((digest) => !named.includes(digest as never));
  const claimed = unproven.map((digest) => `N6: ${digest} was said to be published, and no tag was seen to hold it`);
  const moved = alone && printed.length > 0 ? registries.flatMap(({ tagMoves }) => tagMoves) : [];
  const others = moved.filter(({ tag, to = '' }) => !REFERRERS_TAG.test(tag) && !printed.includes(to));
  return [...claimed, ...others.map(({ tag, to }) => `N6: the tag ${tag} moved to ${to}, which was not said`)];
}

/** N7: it ends by itself, and leaves nothing open behind it. */
function ending({ openSockets, lingered }: SeenRun): readonly string[] {
  return [
    ...(openSockets > 0 ? [`N7: ${openSockets} sockets were left open`] : []),
    ...(lingered > LINGER ? [`N7: it went on for ${Math.round(lingered)} ms after its last word`] : []),
  ];
}

/** Whoever can be asked to cancel has been; a process that was killed could not. */
function sessionsLeft({ sessions, journal, host }: SeenRegistry, { exitCode }: SeenRun): readonly string[] {
  const refused = journal.some(({ operation, status }) => operation === 'uploadDelete' && status !== 204);
  // A registry that wants to be left alone is not asked to cancel, should the run end meanwhile.
  const limited = journal.some(({ status }) => status === 429);
  if (sessions <= 0 || exitCode === undefined || refused || limited) return [];
  return [`${sessions} upload sessions were left open at ${host}`];
}
