import { inspect } from 'node:util';

/** A value that is never printed by accident: text, JSON and inspection show `***`. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself, for the one place that sends it. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '***';
  }

  toJSON(): string {
    return '***';
  }

  [inspect.custom](): string {
    return '***';
  }
}

/** What a registry may be shown. An identity token is exchanged for access tokens and never sent to the registry. */
export type Credential =
  | { readonly kind: 'none' }
  | { readonly kind: 'basic'; readonly username: string; readonly password: Secret }
  | { readonly kind: 'identity-token'; readonly token: Secret };
