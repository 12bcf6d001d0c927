import type { Clock } from '../http/clock.ts';
import type { Transport } from '../http/message.ts';
import type { Credential } from '../http/origin.ts';
import { orAborted } from '../http/promises.ts';
import { isPassingStatus } from '../http/retry.ts';
import type { Secrets } from './secrets.ts';
import { fetchToken, isGoodFor, scopeText, type Token, type TokenRefusal, type TokenRequest } from './token.ts';

/** What a token is wanted for; the signal is its waiter's. */
export type TokenWish = TokenRequest;

/** Tokens of the whole process. */
export interface TokenCache {
  /**
   * A token that is good for a while yet, fetched if there is none. Whoever wants the same one at the same time waits
   * for the same request.
   *
   * @param not a token that the registry has just turned down
   */
  get(wish: TokenWish, not?: Token): Promise<Token | TokenRefusal>;
}

/** One request that several wait for; it is given up when the last of them has left. */
type Flight = {
  readonly answer: Promise<Token | TokenRefusal>;
  readonly controller: AbortController;
  waiters: number;
};

/** Keeps tokens by realm, service, scopes and login: a token of one login must never serve another. */
export function createTokenCache(transport: Transport, clock: Clock, secrets: Secrets): TokenCache {
  const tokens = new Map<string, Token>();
  /** Of requests on two repositories: mounts go on without, and each blob would have the same question refused. */
  const refusals = new Map<string, TokenRefusal>();
  const flights = new Map<string, Flight>();
  const numbers = new WeakMap<Credential, number>();
  let nextNumber = 0;

  function keyOf({ service, scopes, credential }: TokenWish): string {
    let number = numbers.get(credential);
    if (number === undefined) {
      nextNumber += 1;
      number = nextNumber;
      numbers.set(credential, number);
    }
    return JSON.stringify([service.realm, service.service, scopes.map(scopeText), number]);
  }

  function startFlight(key: string, wish: TokenWish): Flight {
    const controller = new AbortController();
    const answer = fetchToken({ ...wish, signal: controller.signal }, transport, clock, secrets).then((result) => {
      if ('value' in result) tokens.set(key, result);
      else if (wish.scopes.length > 1 && !isPassingStatus(result.status)) refusals.set(key, result);
      return result;
    });
    const flight = { answer, controller, waiters: 0 };
    flights.set(key, flight);
    const land = () => {
      if (flights.get(key) === flight) flights.delete(key);
    };
    // Each waiter hears of a failure for itself.
    answer.then(land, land);
    return flight;
  }

  return {
    async get(wish, not) {
      const key = keyOf(wish);
      const known = tokens.get(key);
      const refused = known !== undefined && known.value.reveal() === not?.value.reveal();
      if (known !== undefined && !refused && isGoodFor(known, clock.now(), wish.lasting)) return known;
      const refusal = refusals.get(key);
      if (refusal !== undefined) return refusal;
      const flight = flights.get(key) ?? startFlight(key, wish);
      flight.waiters += 1;
      try {
        return await orAborted(flight.answer, wish.signal);
      } finally {
        flight.waiters -= 1;
        if (flight.waiters === 0) {
          if (flights.get(key) === flight) flights.delete(key);
          flight.controller.abort(new Error('nobody waits for this token any more'));
        }
      }
    },
  };
}
