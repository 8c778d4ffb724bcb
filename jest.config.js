/** @type {import("jest").Config} */
const shared = {
  preset: "ts-jest/presets/default-esm",
  testEnvironment: "node",
  moduleNameMapper: { "^(\\.{1,2}/.*)\\.js$": "$1" },
  transform: {
    "^.+\\.ts$": [
      "ts-jest",
      {
        useESM: true,
        diagnostics: false,
        tsconfig: {
          module: "ESNext",
          moduleResolution: "Bundler",
          isolatedModules: true,
          esModuleInterop: true,
        },
      },
    ],
  },
};

export default {
  projects: [
    { ...shared, displayName: "unit", testMatch: ["<rootDir>/tests/unit/**/*.test.ts"] },
    {
      ...shared,
      displayName: "integration",
      testMatch: ["<rootDir>/tests/integration/**/*.int.test.ts"],
    },
    { ...shared, displayName: "examples", testMatch: ["<rootDir>/tests/examples/**/*.test.ts"] },
  ],
  testTimeout: 60_000,
};
