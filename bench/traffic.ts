/** One request through the proxy. Times in milliseconds of one clock; `status` 0 means that no answer came. */
export type Exchange = {
  readonly method: string;
  /** Path and query as the client wrote them. */
  readonly target: string;
  readonly status: number;
  readonly start: number;
  readonly end: number;
  /** Bytes of the bodies. */
  readonly up: number;
  readonly down: number;
  /** Number of the client's connection that carried it. */
  readonly connection: number;
};

/** Everything that passed the proxy while one command ran. */
export type Traffic = {
  readonly exchanges: readonly Exchange[];
  /** Connections that spoke TLS to this plain port and got 400 at once; crane and docker try that first. */
  readonly tlsHellos: number;
};

/** @see summarize */
export type TrafficSummary = {
  readonly requests: number;
  /** Most requests of which none overlaps the next: what a run cannot do faster than latency times this. */
  readonly longestChain: number;
  readonly mostInFlight: number;
  /** Connections that carried a request. */
  readonly connections: number;
  readonly tlsHellos: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** Requests by class, for example `mount POST 201`. */
  readonly calls: Readonly<Record<string, number>>;
};

/** Pure: exchanges in, figures out. */
export function summarize(traffic: Traffic): TrafficSummary {
  const { exchanges, tlsHellos } = traffic;
  return {
    requests: exchanges.length,
    longestChain: longestChain(exchanges),
    mostInFlight: mostInFlight(exchanges),
    connections: new Set(exchanges.map((exchange) => exchange.connection)).size,
    tlsHellos,
    bytesUp: exchanges.reduce((sum, exchange) => sum + exchange.up, 0),
    bytesDown: exchanges.reduce((sum, exchange) => sum + exchange.down, 0),
    calls: countByClass(exchanges),
  };
}

/**
 * What a request is for. Mounts carry their status always, other requests only from 400 on, so that a HEAD that found
 * nothing is told from one that did.
 */
export function classify(exchange: Pick<Exchange, 'method' | 'target' | 'status'>): string {
  const { method, status } = exchange;
  const [path = '', query = ''] = exchange.target.split('?');
  if (method === 'POST' && path.endsWith('/blobs/uploads/') && new URLSearchParams(query).has('mount')) {
    return `mount POST ${status}`;
  }
  const failed = status === 0 || status >= 400 ? ` ${status}` : '';
  return `${kindOf(path)}${method === 'GET' && path === '/v2/' ? '' : ` ${method}`}${failed}`;
}

function kindOf(path: string): string {
  if (path === '/v2/' || path === '/v2') return 'ping';
  if (path.startsWith('/token')) return 'token';
  if (/\/blobs\/uploads\//.test(path)) return 'upload';
  return /\/(manifest|blob|referrer)s\/[^/]+$/.exec(path)?.[1] ?? 'other';
}

/** Classes in alphabetical order, so that two runs print alike. */
export function countByClass(exchanges: readonly Exchange[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const name of exchanges.map(classify)) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Interval scheduling: taking what ends first leaves most room for the rest, so the greedy choice is the largest. */
function longestChain(exchanges: readonly Exchange[]): number {
  let count = 0;
  let free = Number.NEGATIVE_INFINITY;
  for (const { start, end } of [...exchanges].sort((a, b) => a.end - b.end)) {
    if (start < free) continue;
    count += 1;
    free = end;
  }
  return count;
}

function mostInFlight(exchanges: readonly Exchange[]): number {
  const changes = exchanges.flatMap(({ start, end }) => [
    { at: start, by: 1 },
    { at: end, by: -1 },
  ]);
  // An end before a start of the same moment: the two do not overlap.
  changes.sort((a, b) => a.at - b.at || a.by - b.by);
  let now = 0;
  let most = 0;
  for (const { by } of changes) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}
