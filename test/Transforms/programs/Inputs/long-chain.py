"""A chain of N ops on a tensor of free size, with a softmax now and then, summed up."""
import sys

TYPE = "tensor<?x16xf32, #quern.dims<B>>"
values = ["%x", "%y"]
print(f"func.func @f(%x: {TYPE}, %y: {TYPE}) -> tensor<f32> {{")
for i in range(int(sys.argv[1])):
    a, b = values[-1], values[-2]
    if i % 7 == 6:
        print(f"  %v{i} = quern.softmax {a} {{dim = 1 : i64}} : ({TYPE}) -> {TYPE}")
    elif i % 3 == 0:
        print(f"  %v{i} = quern.tanh {a} : ({TYPE}) -> {TYPE}")
    else:
        print(f"  %v{i} = quern.mul {a}, {b} : ({TYPE}, {TYPE}) -> {TYPE}")
    values.append(f"%v{i}")
print(f"  %s = quern.sum {values[-1]} : ({TYPE}) -> tensor<f32>\n  return %s : tensor<f32>\n}}")
