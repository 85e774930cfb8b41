# Prints a transformer encoder: 6 layers, width 384, 6 heads, tokens and mask over free
# batch and length. No type says a name; only the arguments do, and the sizes of views.

layers, width, heads = 6, 384, 6
lines, types, count = [], {}, 0


def op(name, operands, results, attrs=""):
    """One op; answers its first result."""
    global count
    result = f"%{count}"
    count += 1
    results = results if isinstance(results, list) else [results]
    types[result] = results[0]
    flat = [o for o in operands if o != "_"]
    attrs = f" {{{attrs}}}" if attrs else ""
    many = f":{len(results)}" if len(results) > 1 else ""
    named = result + "#0" if many else result
    types[named] = results[0]
    text = f"  {result}{many} = quern.{name} {', '.join(operands)}{attrs} : "
    text += f"({', '.join(types[o] for o in flat)}) -> ({', '.join(results)})"
    lines.append(text)
    return named


args = []


def arg(type, text=None):
    name = f"%arg{len(args)}"
    types[name] = text or type
    args.append(f"{name}: {text or type}")
    return name


def f32(*dims):
    return f"tensor<{'x'.join(map(str, dims))}xf32>"


def dense(x, n, m, *dims):
    return op("linear", [x, arg(f32(n, m)), arg(f32(n))], f32(*dims, n))


def view(x, size, *dims):
    return op("view", [x], f32(*dims), f"size = #quern.dims<{size}>")


def permute(x, order, *dims):
    return op("permute", [x], f32(*dims), f"dims = array<i64: {order}>")


def norm(x):
    return op("layer_norm", [x, arg(f32(width)), arg(f32(width))],
              [f32("?", "?", width), f32("?", "?", 1), f32("?", "?", 1)],
              f"normalized_shape = #quern.dims<{width}>")


def split(x):
    x = view(x, f"B, S, {heads}, {width // heads}", "?", "?", heads, width // heads)
    x = permute(x, "0, 2, 1, 3", "?", heads, "?", width // heads)
    return view(x, f"{heads}*B, S, {width // heads}", "?", "?", width // heads)


free = ("?", "?", width)
tokens = arg("", "tensor<?x?xi64, #quern.dims<B, S>>")
mask = arg("", "tensor<?x?x1xf32, #quern.dims<B, S>>")
x = op("embedding", [arg(f32(1000, width)), tokens], f32(*free))
x = op("mul", [x, mask], f32(*free))
for _ in range(layers):
    q, k, v = (split(dense(x, width, width, "?", "?")) for _ in range(3))
    k = permute(k, "0, 2, 1", "?", width // heads, "?")
    scores = op("bmm", [q, k], f32("?", "?", "?"))
    scores = op("softmax", [scores], f32("?", "?", "?"), "dim = -1 : i64")
    y = op("bmm", [scores, v], f32("?", "?", width // heads))
    y = view(y, f"B, {heads}, S, {width // heads}", "?", heads, "?", width // heads)
    y = permute(y, "0, 2, 1, 3", "?", "?", heads, width // heads)
    y = view(y, f"B, S, {width}", *free)
    x = norm(op("add", [x, dense(y, width, width, "?", "?")], f32(*free)))
    y = op("gelu", [dense(x, 4 * width, width, "?", "?")], f32("?", "?", 4 * width))
    x = norm(op("add", [x, dense(y, width, 4 * width, "?", "?")], f32(*free)))
print(f"func.func @encoder({', '.join(args)}) -> {f32(*free)} {{")
print("\n".join(lines))
print(f"  return {x} : {f32(*free)}\n}}")
