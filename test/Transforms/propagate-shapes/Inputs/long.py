# Prints a function with N ops, each third with a condition on sizes.
import sys

operand, type = "%a", "tensor<?x?xf32, #quern.dims<B, S>>"
print(f"func.func @long(%a: {type}, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {{")
for i in range(int(sys.argv[1])):
    if i % 3 == 0:
        print(f"  %v{i} = quern.add {operand}, %b : ({type}, tensor<?x?xf32>) -> tensor<?x?xf32>")
    else:
        print(f"  %v{i} = quern.tanh {operand} : ({type}) -> tensor<?x?xf32>")
    operand, type = f"%v{i}", "tensor<?x?xf32>"
print(f"  return {operand} : tensor<?x?xf32>\n}}")
