import { AsyncLocalStorage } from "node:async_hooks";

/**
 * HTTP headers of the request that is being made, besides those of the configuration. They follow the request through the
 * SDK, which shares one connection among all calls.
 */
export const callHeaders = new AsyncLocalStorage<Readonly<Record<string, string>>>();
