//===- Kernel.td - Kernels, launches, guards ---------------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The second, small dialect: what the host function does (launch, guard, view)
// and the symbols that say what one kernel computes.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_KERNEL_TD
#define QUERN_KERNEL_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let summary = "kernels as symbols, and the host ops around them";
  let cppNamespace = "::quern::kernel";
  let dependentDialects = ["::quern::QuernDialect"]; // sizes are its attributes
  let extraClassDeclaration = [{
    /// Set by tools (`--quern-report`): passes say as remarks what they chose and refused.
    bool reporting = false;
  }];
}

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

class Kernel_SizeAttrOf<string attribute, string summary>
    : Attr<CPred<"::llvm::isa<::quern::" # attribute # ">($_self)">, summary> {
  let storageType = "::mlir::Attribute";
  let returnType = "::mlir::Attribute";
  let convertFromStorage = "$_self";
}
def Kernel_SizeAttr : Kernel_SizeAttrOf<"DimAttr", "a size, #quern.dim<…>">;
def Kernel_SizesAttr : Kernel_SizeAttrOf<"DimsAttr", "a list of sizes, #quern.dims<…>">;

def Kernel_FuncOp : Kernel_Op<"func", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "what one kernel computes, in tensor semantics";
  let description = [{
    An isolated symbol. Its block arguments are the ins, then the outs; the body yields one
    tensor for each out. Dynamic dims of the arguments carry kernel-local names `d0`, `d1`, …
    in order of appearance (`tensor<?x384xf32, #quern.dims<d0>>`), so that equal kernels are equal
    text. The compiled entry gets those sizes in that order, then the strides of
    each argument listed in `strided`, outermost first.

    - `kind`: `pointwise`, `row_reduction`, `column_reduction`, `contraction`, `convolution`,
      `gather` or `generic`: which scheduler compiles it.
    - `share`: pairs (out, in): the out may be the same buffer as the in. Derived from the body.
    - `strided`: arguments whose strides the host passes (a broadcast that is undecided until
      run time has stride 0 or its own). All others are row-major contiguous.
    - `packed`: ins, constants of the host, whose bytes stand in the order that the scheduler
      asks for (`getPackedLayout` in quern/Schedule/CPU.h). The type is that of the plain constant.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                   DefaultValuedAttr<StrAttr, "\"generic\"">:$kind,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$share,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strided,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$packed);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `kind` $kind (`share` $share^)? (`strided` $strided^)? (`packed` $packed^)?
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    unsigned getNumOuts() { return getBody().front().getTerminator()->getNumOperands(); }
    unsigned getNumIns() { return getBody().front().getNumArguments() - getNumOuts(); }
    bool mayShare(unsigned out, unsigned in);
    bool isStrided(unsigned arg) { return ::llvm::is_contained(getStrided(), int64_t(arg)); }
    bool isPacked(unsigned arg) { return ::llvm::is_contained(getPacked(), int64_t(arg)); }
    /// The kernel-local symbols in order of appearance: the first entries of `dims`.
    ::llvm::SmallVector<::quern::Dim> getSymbols();
  }];
  let hasVerifier = 1;
}

def Kernel_YieldOp : Kernel_Op<"yield", [Pure, Terminator, HasParent<"FuncOp">]> {
  let summary = "the results of a kernel, one for each out";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Kernel_LaunchOp : Kernel_Op<"launch", [
    AttrSizedOperandSegments, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<BufferizableOpInterface, [
      "bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize",
      "bufferizesToElementwiseAccess"]>]> {
  let summary = "runs a kernel over its operands, into its outs";
  let description = [{
    Destination-passing: every out is explicit (`tensor.empty` while unbound). `share` repeats the
    kernel's pairs that this launch may use, so that no symbol look-up is needed to ask; after
    bufferisation, those that are one buffer here. `sizes` are the kernel's symbols as expressions
    of the host, where only strided operands have one of them: a strided operand may be of size 1.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyShaped>:$ins, Variadic<AnyShaped>:$outs,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$share,
                   OptionalAttr<Kernel_SizesAttr>:$sizes);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `ins` `(` ($ins^ `:` type($ins))? `)` `outs` `(` $outs `:` type($outs) `)`
    (`share` $share^)? (`sizes` $sizes^)? attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
    bool mayShare(unsigned out, unsigned in);
  }];
}

def Kernel_ViewOp : Kernel_Op<"view", [Pure,
    DeclareOpInterfaceMethods<BufferizableOpInterface, [
      "bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>]> {
  let summary = "the same elements in the same order, with other sizes (no copy)";
  let description = [{
    A contiguous tensor seen with another shape. The result's free sizes stand in its type
    (expressions over the function's symbols); `sizes` gives their values in order.
  }];
  let arguments = (ins AnyShaped:$source, Variadic<Index>:$sizes);
  let results = (outs AnyShaped:$result);
  let assemblyFormat = "$source (`sizes` `(` $sizes^ `)`)? attr-dict `:` type($source) `to` type($result)";
}

def Kernel_GuardOp : Kernel_Op<"guard", [MemoryEffects<[MemWrite]>]> {
  let summary = "a condition that the meta functions left for run time";
  let description = [{
    When `condition` is false the call fails with `text`, its {0}, {1}, … replaced by `values`,
    before anything is written. It has an effect, so that it is neither dropped nor moved over.
  }];
  let arguments = (ins I1:$condition, StrAttr:$id, StrAttr:$text, Variadic<Index>:$values);
  let assemblyFormat = "$condition `,` $id $text (`(` $values^ `)`)? attr-dict";
}

// Not speculatable: it stays behind the op that binds its symbols.
def Kernel_DimOp : Kernel_Op<"dim", [NoMemoryEffect]> {
  let summary = "the run-time value of a size expression over the function's symbols";
  let description = [{
    Its symbols are bound by the dims of the function's arguments (or by `bind_dims`), so the op
    has no operands. `quern-lower-dims` turns it into arithmetic on `tensor.dim`/`memref.dim`.
  }];
  let arguments = (ins Kernel_SizeAttr:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$dim attr-dict";
}

def Kernel_BindDimsOp : Kernel_Op<"bind_dims", [MemoryEffects<[MemWrite]>]> {
  let summary = "names the dims of a value whose sizes are known only when it exists";
  let description = [{
    For results of data-dependent ops, loop-carried values and branch results. The result is the
    source with the encoding that binds fresh symbols; it dominates every use of them.
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
}

def Kernel_RefineOp : Kernel_Op<"refine", [Pure,
    DeclareOpInterfaceMethods<BufferizableOpInterface, [
      "bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>]> {
  let summary = "the same value with another encoding, backed by a proof or a guard";
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // QUERN_KERNEL_TD
