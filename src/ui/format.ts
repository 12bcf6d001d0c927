/** Decimal units as docker prints them, one decimal from a kilobyte on: `999 B`, `1.0 kB`, `31.4 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  const units = ['kB', 'MB', 'GB', 'TB', 'PB'];
  let value = bytes / 1000;
  // 999.95 would be printed as 1000.0.
  while (value >= 999.95 && units.length > 1) {
    value /= 1000;
    units.shift();
  }
  return `${value.toFixed(1)} ${units[0]}`;
}

/** `0.4 s`, `12.4 s`, `1 min 05 s`, `2 h 03 min`, from milliseconds. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  if (hours > 0) return `${hours} h ${twoDigits(minutes)} min`;
  return `${minutes} min ${twoDigits(whole % 60)} s`;
}

/** Time to go as a clock shows it, `0:07` or `1:02:03`, from seconds. */
export function formatClock(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const tail = twoDigits(whole % 60);
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${tail}` : `${minutes}:${tail}`;
}

/** The algorithm and twelve hex digits, as docker shortens image ids. */
export function shortDigest(digest: string): string {
  const start = digest.indexOf(':') + 1;
  return digest.slice(0, start + 12);
}

/** `1 blob`, `3 blobs`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
