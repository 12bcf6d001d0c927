// What speaks to registries, in one piece: a run opens one file for it.

export { createAuthorizer } from '../auth/authorizer.ts';
export { createCredentialSource } from '../auth/credentials.ts';
export { createHelperRunner } from '../auth/helper.ts';
export { createLimiter } from '../http/limiter.ts';
export { createProxyRule } from '../http/proxy.ts';
export { createTransport } from '../http/transport.ts';
export { createRegistryClient } from '../registry/remote.ts';
