/** `nobody`, on every Unix that matters here. */
const NOBODY = 65534;

/** Runs it as a user whom the rights of files hold back: root reads everything. */
export async function asOrdinaryUser<T>(use: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return use();
  process.seteuid?.(NOBODY);
  try {
    return await use();
  } finally {
    process.seteuid?.(0);
  }
}
