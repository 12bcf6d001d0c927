import type * as v from 'valibot';

type Node = v.GenericSchema & {
  readonly type: string;
  readonly wrapped?: Node;
  readonly pipe?: readonly (Node & {
    readonly kind: string;
    readonly requirement?: unknown;
    readonly description?: string;
    readonly metadata?: { readonly json?: object };
  })[];
  readonly entries?: Readonly<Record<string, Node>>;
  readonly options?: readonly (string | Node)[];
  readonly value?: Node;
  readonly item?: Node;
};

/** Draft 2020-12 of the part of valibot that configurations and spec files are checked by; anything else is an error. */
export function jsonSchema(schema: v.GenericSchema): object {
  return convert(schema as Node);
}

function convert(node: Node): object {
  const [base = node, ...actions] = node.pipe ?? [];
  // What is checked as text, and is another type of JSON all the same, says so.
  const said = actions.find(({ metadata }) => metadata?.json !== undefined)?.metadata?.json;
  return Object.assign({}, said ?? convertBase(base), ...actions.map((action) => convertAction(action, base.type)));
}

function convertBase(node: Node): object {
  switch (node.type) {
    case 'exact_optional':
      return convert(required(node.wrapped));
    case 'string':
    case 'number':
    case 'boolean':
      return { type: node.type };
    case 'picklist':
      return { enum: node.options };
    case 'union':
      return { anyOf: required(node.options).map((option) => convert(option as Node)) };
    case 'record':
      return { type: 'object', additionalProperties: convert(required(node.value)) };
    case 'array':
      return { type: 'array', items: convert(required(node.item)) };
    // Which of its forms a value has, code decides.
    case 'lazy': {
      const forms = required(node.options).map((option) => convert(option as Node));
      return forms.length === 1 ? required(forms[0]) : { anyOf: forms };
    }
    case 'strict_object': {
      const needed = Object.entries(required(node.entries)).filter(([, entry]) => entry.type !== 'exact_optional');
      return {
        type: 'object',
        additionalProperties: false,
        ...(needed.length === 0 ? {} : { required: needed.map(([key]) => key) }),
        properties: Object.fromEntries(
          Object.entries(required(node.entries)).map(([key, entry]) => [key, convert(entry)]),
        ),
      };
    }
    default:
      throw new Error(`no JSON Schema for valibot's ${node.type}`);
  }
}

/** Checks and transforms by code cannot be said; the description has their form. */
function convertAction(
  action: { readonly type: string; readonly requirement?: unknown; readonly description?: string },
  base: string,
): object {
  switch (action.type) {
    case 'integer':
      return { type: 'integer' };
    case 'min_value':
      return { minimum: action.requirement };
    case 'max_value':
      return { maximum: action.requirement };
    case 'gt_value':
      return { exclusiveMinimum: action.requirement };
    case 'non_empty':
      return base === 'array' ? { minItems: 1 } : { minLength: 1 };
    case 'description':
      return { description: action.description };
    case 'check':
    case 'metadata':
    case 'transform':
      return {};
    default:
      throw new Error(`no JSON Schema for valibot's ${action.type}`);
  }
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a schema without its inner part');
  return value;
}
