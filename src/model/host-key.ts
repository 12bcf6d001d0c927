import { layoutKey } from './layout-reference.ts';
import { isLayoutHost } from './reference.ts';

/**
 * The same for every way of writing one host: without a port it is asked at 443, `:05000` is `:5000`, `[0:0::1]` is
 * `[::1]`, and a folder may be written with `./`. Names that lead to one machine stay apart.
 */
export function hostKey(host: string): string {
  return isLayoutHost(host) ? layoutKey(host) : new URL(`https://${host}/`).host;
}
