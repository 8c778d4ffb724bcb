export * from "./core.js";
export { mcpMiddleware } from "./middleware/mcpMiddleware.js";
