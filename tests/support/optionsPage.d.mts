/** The page `docs/reference/options.md`, made from the doc comments of the option interfaces. */
export function optionsPage(): Promise<string>;
