import ts from 'typescript';

/** A module of `src`, parsed: its path below `src`, with slashes, and its text. */
export type Module = {
  readonly path: string;
  readonly text: string;
  readonly source: ts.SourceFile;
  readonly imports: readonly Import[];
};

/** One broken rule, with the place to look at: `src/model/x.ts:3: …`. */
export type Offence = string;

/** What a room may import. A name is a room (`model`), a module of it (`http/retry`), or `*` for every room. */
export type Rule = {
  readonly values: readonly string[];
  /** Beyond `values`, by `import type` only. */
  readonly types?: readonly string[];
  /** Taken out of the above. */
  readonly never?: readonly string[];
};

export type Import = {
  readonly specifier: string;
  readonly line: number;
  /** `type` leaves nothing behind when types are stripped; `dynamic` is loaded when it is reached. */
  readonly kind: 'value' | 'type' | 'dynamic';
};

const COMPUTED = '(computed)';

/** Parses a module once for all checks. */
export function readModule(path: string, text: string): Module {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true);
  return { path, text, source, imports: importsOf(source) };
}

/** Every import, re-export, `import()` and `import('…')` type, in order. */
function importsOf(source: ts.SourceFile): readonly Import[] {
  const found: Import[] = [];
  const add = (node: ts.Node, specifier: ts.Node | undefined, kind: Import['kind']): void => {
    const name = specifier !== undefined && ts.isStringLiteralLike(specifier) ? specifier.text : COMPUTED;
    found.push({ specifier: name, line: lineOf(source, node), kind });
  };
  walk(source, (node) => {
    if (ts.isImportDeclaration(node)) {
      add(
        node,
        node.moduleSpecifier,
        node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword ? 'type' : 'value',
      );
    } else if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
      add(node, node.moduleSpecifier, node.isTypeOnly ? 'type' : 'value');
    } else if (ts.isImportTypeNode(node)) {
      add(node, ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined, 'type');
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node, node.arguments[0], 'dynamic');
    }
  });
  return found;
}

/** Imports that the table does not allow, or that name no module of `src`. */
export function importOffences(modules: readonly Module[], rules: Readonly<Record<string, Rule>>): readonly Offence[] {
  const paths = new Set(modules.map((module) => module.path));
  return modules.flatMap((module) => {
    const room = roomOf(module.path);
    const rule = rules[room];
    if (rule === undefined) return [`src/${module.path}:1: a room that the import table does not name`];
    return module.imports.flatMap(({ specifier, line, kind }) => {
      const at = `src/${module.path}:${line}:`;
      if (specifier === COMPUTED) return [`${at} imports a computed name`];
      const target = resolve(module.path, specifier);
      if (target === undefined) return [];
      if (!paths.has(target)) return [`${at} imports ${specifier}, which is no module of src`];
      if (roomOf(target) === room || allows(rule, target, kind === 'type')) return [];
      const but = kind !== 'type' && allows(rule, target, true) ? ', only its types' : '';
      return [`${at} ${room} may not import ${target}${but}`];
    });
  });
}

/** Packages and node modules that a module imports though it may not. */
export function packageOffences(
  modules: readonly Module[],
  refused: (path: string, specifier: string) => boolean,
): readonly Offence[] {
  return modules.flatMap((module) =>
    module.imports
      .filter(({ specifier }) => !specifier.startsWith('.') && refused(module.path, specifier))
      .map(({ specifier, line }) => `src/${module.path}:${line}: may not import ${specifier}`),
  );
}

/** The way from `start` to a package by imports that load at once, or undefined when there is none. */
export function wayTo(modules: readonly Module[], start: string, wanted: string): readonly string[] | undefined {
  const byPath = new Map(modules.map((module) => [module.path, module]));
  const seen = new Set<string>();
  const visit = (path: string): readonly string[] | undefined => {
    const module = byPath.get(path);
    if (module === undefined || seen.has(path)) return undefined;
    seen.add(path);
    for (const { specifier, kind } of module.imports) {
      if (kind !== 'value') continue;
      if (specifier === wanted || specifier.startsWith(`${wanted}/`)) return [path, specifier];
      const target = resolve(path, specifier);
      const rest = target === undefined ? undefined : visit(target);
      if (rest !== undefined) return [path, ...rest];
    }
    return undefined;
  };
  return visit(start);
}

/** Rings of imports, types aside: which of the modules is evaluated first would depend on who asks. */
export function cycles(modules: readonly Module[]): readonly Offence[] {
  const edges = new Map(
    modules.map((module) => [
      module.path,
      module.imports
        .filter(({ kind }) => kind !== 'type')
        .flatMap(({ specifier }) => resolve(module.path, specifier) ?? []),
    ]),
  );
  const done = new Set<string>();
  const found: Offence[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) {
      found.push(`src/${path}:1: import cycle ${[...trail.slice(start), path].join(' -> ')}`);
      return;
    }
    if (done.has(path)) return;
    for (const target of edges.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const { path } of modules) visit(path, []);
  return found;
}

/** Files with more lines than that. */
export function lengthOffences(modules: readonly Module[], limit: number): readonly Offence[] {
  return modules.flatMap(({ path, text }) => {
    const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
    return lines > limit ? [`src/${path}:${limit + 1}: ${lines} lines, at most ${limit}`] : [];
  });
}

const TIMERS: ReadonlySet<string> = new Set(['process', 'setTimeout', 'setInterval']);
const CLOCKS: ReadonlySet<string> = new Set(['Date.now', 'Math.random', 'performance.now', 'AbortSignal.timeout']);
const WORLD_MODULES = /^(?:node:)?(?:process|timers(?:\/promises)?)$/;

/** Time, randomness and the process, where they should have been handed in. */
export function worldOffences(modules: readonly Module[]): readonly Offence[] {
  return modules.flatMap((module) => {
    const { source } = module;
    const at = (node: ts.Node): string => `src/${module.path}:${lineOf(source, node)}:`;
    const found = module.imports
      .filter(({ specifier, kind }) => kind !== 'type' && WORLD_MODULES.test(specifier))
      .map(({ specifier, line }) => `src/${module.path}:${line}: imports ${specifier}`);
    walk(source, (node) => {
      if (ts.isIdentifier(node) && TIMERS.has(node.text) && isReference(node))
        found.push(`${at(node)} uses ${node.text}`);
      if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression)) {
        const name = `${node.expression.text}.${node.name.text}`;
        if (CLOCKS.has(name)) found.push(`${at(node)} uses ${name}`);
      }
      if ((ts.isNewExpression(node) || ts.isCallExpression(node)) && isNamed(node.expression, 'Date')) {
        if ((node.arguments ?? []).length === 0) found.push(`${at(node)} uses Date()`);
      }
    });
    return found;
  });
}

/** A value read by that name: not a member, not a key, not a name given, not a type. */
function isReference(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isShorthandPropertyAssignment(parent)) return true;
  if (ts.isImportSpecifier(parent) || ts.isExportSpecifier(parent) || ts.isQualifiedName(parent)) return false;
  if (ts.isTypeQueryNode(parent)) return false;
  if (ts.isBindingElement(parent)) return parent.initializer === node;
  const named = parent as ts.Node & { readonly name?: ts.Node };
  return named.name !== node;
}

function isNamed(node: ts.Expression, name: string): boolean {
  return ts.isIdentifier(node) && node.text === name;
}

function allows(rule: Rule, target: string, asType: boolean): boolean {
  const names = [roomOf(target), target.replace(/\.ts$/, '')];
  if (rule.never?.some((name) => names.includes(name))) return false;
  const allowed = asType ? [...rule.values, ...(rule.types ?? [])] : rule.values;
  return allowed.some((name) => name === '*' || names.includes(name));
}

/** `http` for `http/retry.ts`, `errors` for `errors.ts`. */
function roomOf(path: string): string {
  return path.split('/', 1)[0]?.replace(/\.ts$/, '') ?? path;
}

/** The path below `src` of a relative import; undefined for packages and for data such as package.json. */
function resolve(from: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.') || specifier.endsWith('.json')) return undefined;
  const parts = from.split('/').slice(0, -1);
  for (const part of specifier.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  }
  return parts.join('/');
}

function lineOf(source: ts.SourceFile, node: ts.Node): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  node.forEachChild((child) => walk(child, visit));
}
