import type { IndexType } from '../publish/request.ts';
import type { MountMode, ProgressMode, UploadMode } from './values.ts';

/** Settings of one registry. */
export type RegistryConfig = {
  /** No check of the certificate, and http when https is refused. */
  readonly insecure?: boolean;
  /** http at once. */
  readonly plainHttp?: boolean;
  /** PEM file of certificate authorities to trust besides the usual ones. */
  readonly caFile?: string;
  /** PEM file of the certificate that this machine shows to the registry; with {@link RegistryConfig.keyFile}. */
  readonly certFile?: string;
  /** PEM file of the private key of {@link RegistryConfig.certFile}. */
  readonly keyFile?: string;
  /** Requests a second at most. */
  readonly maxRps?: number;
  /** `never`: blobs are copied without asking whether they can be mounted. */
  readonly mount?: MountMode;
  /** How a blob is sent: in one PUT (`whole`), in pieces (`chunks`), or as the registry turns out to take it. */
  readonly upload?: UploadMode;
  /** Bytes of one piece. */
  readonly chunkSize?: number;
};

/** A checked configuration: plain data, durations in ms, hosts normalised, file names absolute. */
export type Config = {
  readonly jobs?: number;
  readonly retries?: number;
  readonly timeout?: number;
  readonly progress?: ProgressMode;
  readonly type?: IndexType;
  readonly foreignLayers?: boolean;
  readonly waitForSource?: number;
  readonly caFile?: string;
  readonly registries?: Readonly<Record<string, RegistryConfig>>;
};

/** A configuration and the file it came from; without a file it is empty. */
export type LoadedConfig = { readonly config: Config; readonly file: string | undefined };
