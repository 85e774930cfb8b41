"""A program with many free sizes: `product` multiplies their sum by itself, `arena` needs a buffer of
each."""
import sys

count = 24 if sys.argv[1] == "product" else 140
args = [(f"%a{i}", f"tensor<?xf32, #quern.dims<S{i}>>") for i in range(count)]
vector = "tensor<?xf32>"
print("func.func @f(" + ", ".join(f"{name}: {t}" for name, t in args) + ") -> tensor<?x?xf32> {")
if sys.argv[1] == "arena":
    for i, (name, t) in enumerate(args):
        print(f"  %v{i} = quern.softmax {name} {{dim = 0}} : ({t}) -> {vector}")
    args = [(f"%v{i}", vector) for i in range(count)]
print(f"  %c = quern.cat [{', '.join(name for name, _ in args)}] : "
      f"({', '.join(t for _, t in args)}) -> {vector}")
print(f"  %u = quern.unsqueeze %c {{dim = 1}} : ({vector}) -> tensor<?x1xf32>")
print(f"  %m = quern.mul %u, %c : (tensor<?x1xf32>, {vector}) -> tensor<?x?xf32>")
print("  return %m : tensor<?x?xf32>\n}")
