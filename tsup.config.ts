import { defineConfig } from "tsup";

export default defineConfig({
  entry: ["src/index.ts", "src/core.ts", "src/graph.ts", "src/chain.ts", "src/testing.ts"],
  format: ["esm", "cjs"],
  target: "node20",
  platform: "node",
  // Shared chunks, so that there is one class of each whichever entry point is imported.
  splitting: true,
  dts: true,
  clean: true,
  sourcemap: true,
});
