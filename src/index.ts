export * from "./core.js";
export { mcpMiddleware } from "./faces/mcpMiddleware.js";
