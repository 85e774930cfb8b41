//===- StructuredOp.td - What one record says about an op -----*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The base classes of all op records. quern-tblgen reads the fields below and
// generates: argument structs and calls of the meta function, type inference,
// parser and printer, scalar bodies, derivative builders, op pages, the coverage
// table and the tests. A record that lacks one of them is an error.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_STRUCTUREDOP_TD
#define QUERN_STRUCTUREDOP_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Quern_Dialect : Dialect {
  let name = "quern";
  let summary = "tensor operators, named after ATen's";
  let cppNamespace = "::quern";
  let useDefaultAttributePrinterParser = 0;
  // FunctionAttrs.h
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    // One function for each family, defined beside its ops.
#define QUERN_FAMILY(Family) void add##Family##Ops();
#include "quern/Dialect/Quern/IR/Families.inc"
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser, ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attr, ::mlir::DialectAsmPrinter &printer) const override;
  }];
}

def StructuredOpInterface : OpInterface<"StructuredOp"> {
  let description = "Everything that an op's record says, as data and functions.";
  let cppNamespace = "::quern";
  let methods = [
    StaticInterfaceMethod<"The record.", "const ::quern::OpRecord &", "getOpRecord">,
    InterfaceMethod<"The values of declared operand `i`: none or one, or any number if it is variadic.",
                    "::mlir::OperandRange", "getOperandGroup", (ins "unsigned":$i), [{}],
                    [{ return $_op.getODSOperands(i); }]>,
    InterfaceMethod<"The destinations: none, or one for each result.",
                    "::mlir::OperandRange", "getDestinations", (ins), [{}],
                    [{ return $_op.getInto(); }]>,
    InterfaceMethod<"Sets the destinations (in place when one is an operand).",
                    "void", "setDestinations", (ins "::mlir::ValueRange":$values), [{}],
                    [{ $_op.getIntoMutable().assign(values); }]>,
  ];
}

//===----------------------------------------------------------------------===//
// Attributes of ops. ODS knows their C++ types; quern-tblgen knows these names.
//===----------------------------------------------------------------------===//

/// A number as it was written: an integer or a float (or a bool).
def Quern_ScalarAttr : Attr<CPred<"::llvm::isa<::mlir::IntegerAttr, ::mlir::FloatAttr>($_self)">,
                            "an integer, a float or a bool"> {
  let storageType = "::mlir::TypedAttr";
  let returnType = "::mlir::TypedAttr";
  let convertFromStorage = "$_self";
  let constBuilderCall = "::quern::detail::numberAttr($_builder, $0)";
  let valueType = AnyType;
}
/// One size: `#quern.dim<S - 1>`.
def Quern_DimAttr : Attr<CPred<"::llvm::isa<::quern::DimAttr>($_self)">, "a size"> {
  let storageType = "::quern::DimAttr";
  let returnType = "::quern::Dim";
  let convertFromStorage = "::quern::Dim($_self)";
  let constBuilderCall = "($0).getAttr()";
}
/// A list of sizes: `#quern.dims<B, 384>`.
def Quern_DimsAttr : Attr<CPred<"::llvm::isa<::quern::DimsAttr>($_self)">, "a list of sizes"> {
  let storageType = "::quern::DimsAttr";
  let returnType = "::llvm::ArrayRef<::quern::Dim>";
  let convertFromStorage = "$_self.getDims()";
  let constBuilderCall = "::quern::DimsAttr::get($_builder.getContext(), $0)";
}

//===----------------------------------------------------------------------===//
// Parts of a record
//===----------------------------------------------------------------------===//

/// How the gradient reaches one operand.
class Derivative<string operand> {
  string Operand = operand;
}
/// An expression: operands, `result`, `grad`, attributes, numbers, ops.
class Wrt<string operand, string expr> : Derivative<operand> {
  string Expr = expr;
}
class NonDifferentiable<string operand, string reason> : Derivative<operand> {
  string Reason = reason;
}
/// A C++ hook `void quern::derivative::<hook>(<Op>, DerivativeBuilder &)` beside the op; `reads`
/// lists the operands and results (`result`, or a result's name) whose values it needs.
class Custom<string operand, string hook, list<string> reads> : Derivative<operand> {
  string Hook = hook;
  list<string> Reads = reads;
}

/// Which operands the result may overwrite: each is read at the index that is written.
class InPlaceRule;
class InPlace<list<string> operands> : InPlaceRule {
  list<string> Operands = operands;
}
class NotInPlace<string reason> : InPlaceRule {
  string Reason = reason;
}

/// A fold: the result is operand `same` where operand `other` is `number` everywhere and every
/// attribute has its default. (`-0`: the float that adds nothing, to -0 either; 0 for integers.)
class Identity<string same, string other, string number> {
  string Same = same;
  string Other = other;
  string Number = number;
}

/// How kernels see the op; each class has its schedulers.
class FusionClass<string name> {
  string Name = name;
}
def Pointwise : FusionClass<"Pointwise">;     // each result element from the operands' elements there
def Reduction : FusionClass<"Reduction">;     // over some dims
def RowWise : FusionClass<"RowWise">;         // rows in, rows out: softmax, normalisations, losses
def Contraction : FusionClass<"Contraction">; // products summed over shared dims
def Convolution : FusionClass<"Convolution">;
def IndexMap : FusionClass<"IndexMap">;       // the same elements elsewhere: permute, slice, cat
def Reshape : FusionClass<"Reshape">;         // the same elements in the same order: no kernel
def Gather : FusionClass<"Gather">;           // elements chosen by an index tensor
def Scatter : FusionClass<"Scatter">;
def Creation : FusionClass<"Creation">;       // no tensor operand

/// Where the computation stands.
class Body;
/// A scalar expression over operands and attributes (pointwise ops).
class ScalarBody<string expr> : Body {
  string Expr = expr;
}
/// A C++ function `quern::lowering::<function>` in lib/Conversion/QuernToLinalg/<Family>.cpp.
class Lowering<string function> : Body {
  string Function = function;
}

/// A call that works and its result, in the samples' notation: `mm(f32[2,3], f32[3,4]) -> f32[2,4]`,
/// attributes by name (`dim=[0,1]`, `dtype=bool`, `approximate=tanh`), `_` for an operand left out,
/// `[f32[2], f32[3]]` for a list. Generated tests also make the call with open sizes, unless it only
/// works with known ones.
class Sample<string call, bit openToo = 1> {
  string Call = call;
  bit OpenToo = openToo;
}
/// A call that the meta function refuses, and the message (from the constraint id on).
class BadSample<string call, string message> {
  string Call = call;
  string Message = message;
}

/// The base of all ops. `args` are operands and attributes; `into` is added here. An op with
/// optional operands or a list passes [AttrSizedOperandSegments].
class Quern_Op<string mnemonic, list<Trait> traits = []>
    : Op<Quern_Dialect, mnemonic,
         traits # [NoMemoryEffect,
                   // An op with an undecided check may not be moved over its guard.
                   DeclareOpInterfaceMethods<ConditionallySpeculatable>,
                   DeclareOpInterfaceMethods<InferTypeOpInterface>,
                   DeclareOpInterfaceMethods<StructuredOpInterface>]> {
  dag args = ?;
  let arguments = !con(args, (ins Variadic<AnyRankedTensor>:$into));
  let results = (outs AnyRankedTensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasFolder = 1; // generated: the three fields on folds below; never with a destination
  // The stock verifier infers again without facts: same dtype and rank, no dim known different.
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::quern::detail::areCompatibleTypes(inferred, actual);
    }
  }];

  /// Numbered C1, C2, …: what the meta function checks, in words.
  list<string> constraints = ?;
  /// The function `quern::meta::<meta>(const <Op>Args &, MetaContext &)`.
  string meta = ?;
  InPlaceRule inPlace = ?;
  list<Derivative> derivatives = ?;
  FusionClass fusion = ?;
  Body body = ?;
  list<Sample> samples = ?;
  list<BadSample> badSamples = ?;
  list<Identity> identities = [];
  /// A fold: the result is `self`, the first operand, where both have the same type of known sizes.
  bit identityOnSameType = 0;
  /// A fold in C++, `Value quern::fold::<folder>(<Op>)` beside the op: null where nothing folds.
  string folder = "";
}

#endif // QUERN_STRUCTUREDOP_TD
