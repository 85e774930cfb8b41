//===- Passes.td - Quern's passes -------------------------*- tablegen -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One pass, one file in lib/Transforms, of the same stem. In the order in which
// the pipelines of lib/Pipelines run them.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_TRANSFORMS_PASSES_TD
#define QUERN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

def QuernPropagateShapes : Pass<"quern-propagate-shapes", "::mlir::ModuleOp"> {
  let summary = "names every size: runs the meta functions over the program";
  let description = [{
    Free dims of a public function's arguments keep their names or get fresh ones (`s0`, `s1`, …);
    every result type then says its sizes as expressions over them. Sizes that no expression can
    say (data-dependent results, loop-carried sizes that vary, branch results that differ, results
    of foreign ops) get a fresh name where they appear, by `kernel.bind_dims`.

    A function that is called keeps a plain signature (`?`) and names its arguments inside; each
    call's result sizes are the callee's expressions over the sizes that this call passes.

    Ranges of sizes are read from the function's attribute
    `quern.dims = {B = #quern.range<1, 64, mod 8>}`. A condition that is known false is an error.
    Running the pass again changes nothing.
  }];
  let dependentDialects = ["::quern::QuernDialect", "::quern::kernel::KernelDialect"];
}

def QuernMaterializeGuards : Pass<"quern-materialize-guards", "::mlir::func::FuncOp"> {
  let summary = "turns the conditions that are left for run time into kernel.guard ops";
  let description = [{
    Each condition of a meta function that neither types nor facts nor an earlier guard decide
    becomes a `kernel.guard` with the constraint's id and text. Guards over sizes of the arguments
    stand in the prologue of the function, others directly before their op. The signature's own
    promises (one name at two dims, ranges) are guarded too. Run it before anything that removes
    or moves ops.
  }];
  let dependentDialects = ["::quern::QuernDialect", "::quern::kernel::KernelDialect",
                           "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def QuernLowerDims : Pass<"quern-lower-dims", "::mlir::func::FuncOp"> {
  let summary = "kernel.dim becomes arithmetic on the dims that bind its symbols";
  let dependentDialects = ["::quern::QuernDialect", "::quern::kernel::KernelDialect",
                           "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def QuernStripDims : Pass<"quern-strip-dims", "::mlir::ModuleOp"> {
  let summary = "removes the names of sizes from types";
  let description = [{
    What clones code (inlining, unrolling) would make two sizes share one name. It runs on types
    without names, and `quern-propagate-shapes` names them again. Arguments of functions that
    nobody calls keep theirs.
  }];
  let dependentDialects = ["::quern::QuernDialect", "::quern::kernel::KernelDialect",
                           "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//


def QuernAutodiff : Pass<"quern-autodiff", "::mlir::ModuleOp"> {
  let summary = "gradients of a function by the derivatives that its ops declare";
  let description = [{
    From `@f` makes either one function or two, and leaves `@f` as it is:

    - `mode=joint`: `@f_joint(args…, cotangents…) -> (results…, gradients…)`;
    - `mode=split`: `@f_forward(args…) -> (results…, saved…)` and
      `@f_backward(saved…, cotangents…) -> (gradients…)`, every value that the backward reads saved.

    When the first result is a float tensor of rank 0, it is a loss: its cotangent is one, that of
    other results is zero, and there are no cotangent arguments. Otherwise there is one cotangent
    argument for each result of a float dtype. A gradient has the type of its argument. Paths on
    which nothing depends on a chosen argument are not followed; nor are operands without a
    derivative. Regions, calls and ops that write `into` a destination are `unsupported:`; a
    function without an argument or without a result of a float dtype is an error.
  }];
  let options = [
    Option<"function", "function", "std::string", "", "name of the function (the only one if left out)">,
    ListOption<"arguments", "arguments", "int64_t",
               "numbers of the arguments (all of a float dtype if left out)">,
    Option<"mode", "mode", "std::string", "\"joint\"", "joint or split">,
  ];
  let dependentDialects = ["::quern::QuernDialect", "::quern::kernel::KernelDialect",
                           "::mlir::func::FuncDialect"];
}

def QuernSimplify : Pass<"quern-simplify"> {
  let summary = "canonical form, folded constants, each value computed once";
  let description = [{
    Canonicalisation and common subexpression elimination until nothing changes. Pointwise ops over
    small constants are evaluated by their scalar bodies; what is one number everywhere, by its linalg
    form, is a constant. Runs before destinations are bound.
  }];
  let options = [
    Option<"foldLimit", "fold-limit", "int64_t", "64", "largest number of elements to evaluate">,
  ];
  let dependentDialects = ["::quern::QuernDialect", "::quern::kernel::KernelDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def QuernFuse : Pass<"quern-fuse", "::mlir::ModuleOp"> {
  let summary = "groups of ops become kernels and launches";
  let description = [{
    By the fusion classes of ops, never by their names: chains of pointwise ops and index maps;
    those with the reductions and row ops over equal rows that they feed or read; pointwise ops on
    the whole result of a contraction. Of several producers the one that saves most bytes goes
    first. Every other op is a kernel of its own; ops that keep elements and order are `kernel.view`.

    A kernel's body holds the ops in terms of its own dims `d0`, `d1`, …; equal bodies are one
    kernel. Splat constants and ops without operands are made inside each reader; other
    constants become arguments of the function (`quern.constant`). An operand that may broadcast
    at run time is `strided`, and never fused with its producer. An op that writes `into` a destination is
    a kernel of its own whose out that is.
  }];
  let options = [
    Option<"fuse", "fuse", "bool", "true", "false: a kernel for each op">,
    Option<"maxOps", "max-ops", "unsigned", "64", "largest number of ops in a kernel">,
  ];
  let dependentDialects = ["::quern::kernel::KernelDialect", "::quern::QuernDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect"];
}

def QuernInplace : Pass<"quern-inplace", "::mlir::func::FuncOp"> {
  let summary = "results take buffers that die, and those that the function promises";
  let description = [{
    A result of an op, or an out of a launch, that has no destination yet is written `into` an
    operand when the op's rule (the kernel's `share` pairs) allows it, both have one type with known
    sizes, the buffer is dead afterwards through every alias and view, and it is owned: made in the
    function, or an argument that is donated. A result that the function promises to write to an
    argument (`quern.into`) is written there. Values stay SSA tensors, so a wrong choice could only
    cost a copy; `quern-verify-stage=stage=inplace` recomputes and checks every choice.

    With `--quern-report`, a remark for each op says what was written, or the reason for each
    operand that could not be.
  }];
  let dependentDialects = ["::quern::QuernDialect", "::quern::kernel::KernelDialect",
                           "::mlir::tensor::TensorDialect"];
}

def QuernBufferize : Pass<"quern-bufferize", "::mlir::ModuleOp"> {
  let summary = "host functions on buffers, results in arguments; kernels are left alone";
  let description = [{
    Every result becomes an argument (`quern.out`), unless it is promised to one
    (`quern.into`), and the buffer of the result is that argument's wherever the program allows;
    else a copy kernel moves it there at the end. The names of dims move from the types to
    the arguments (FunctionAttrs.h). A destination whose content is still needed is replaced by a fresh
    buffer. Upstream's bufferisation does the rest, without looking into kernels. Ops with regions
    are `unsupported:`.
  }];
  let dependentDialects = ["::quern::QuernDialect", "::quern::kernel::KernelDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect"];
}

def QuernPlanMemory : Pass<"quern-plan-memory", "::mlir::func::FuncOp"> {
  let summary = "all buffers of a call in one arena";
  let description = [{
    Every `memref.alloc` becomes an offset in one arena, whose size is an expression over the
    function's symbols. Several planners run, the smallest plan is kept. The function's
    attributes say `quern.arena_bytes`, and `quern.unplanned_bytes` for a buffer each.
  }];
  let dependentDialects = ["::quern::QuernDialect", "::quern::kernel::KernelDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect"];
}

def QuernVerifyStage : Pass<"quern-verify-stage", "::mlir::func::FuncOp"> {
  let summary = "checks what a stage promises to the next";
  let description = [{
    Recomputes liveness and aliases by other means than the passes that it checks.

    - `named`: every size of an op's result has a name; each name is bound once, before its uses.
    - `inplace`: no op reads a buffer that was written since, or overwrites an operand that its rule
      does not allow, or a buffer that the function does not own; and no op is left that could
      have been written in place.
    - `bufferized`: every bound destination and the buffer written have one root; no tensor and
      no copy is left.
    - `planned`: buffers that live at one time do not overlap in the arena.
  }];
  let options = [
    Option<"stage", "stage", "std::string", "", "named, inplace, bufferized or planned">,
  ];
  let dependentDialects = ["::quern::QuernDialect", "::quern::kernel::KernelDialect"];
}

#endif // QUERN_TRANSFORMS_PASSES_TD
