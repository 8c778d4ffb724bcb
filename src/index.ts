export * from "./core.js";
export { mcpMiddleware } from "./middleware/mcpMiddleware.js";
export type { McpMiddlewareOptions } from "./middleware/options.js";
