/** The part of cosmiconfig 9.0.2 that `explorer.ts` uses; the package marks it internal and ships no types for it. */
declare module 'cosmiconfig/dist/Explorer.js' {
  export type Result = { readonly config: unknown; readonly filepath: string; readonly isEmpty?: boolean } | null;
  export class Explorer {
    constructor(options: {
      readonly moduleName: string;
      readonly packageProp: readonly string[];
      readonly searchPlaces: readonly string[];
      readonly searchStrategy: 'none' | 'project' | 'global';
      readonly loaders: Readonly<Record<string, (path: string, text: string) => unknown>>;
      readonly ignoreEmptySearchPlaces: boolean;
      readonly applyPackagePropertyPathToConfiguration: boolean;
      readonly cache: boolean;
      readonly transform: (result: Result) => Result;
      readonly metaConfigFilePath: string | null;
      readonly mergeImportArrays: boolean;
      readonly mergeSearchPlaces: boolean;
    });
    search(from: string): Promise<Result>;
  }
}
