//===- Meta.h - What a meta function sees and reports -----------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A meta function is the one place where an op's shape and dtype rules stand.
/// It gets the operands' `TensorMeta`s and the attributes in a generated struct,
/// calls `check` for each numbered constraint and `setOutput` for each result. It
/// runs no kernel and makes no IR; what it yields is data with many consumers
/// (type inference, verification, propagation, guards, shape code, host API).
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_SHAPE_META_H
#define QUERN_SHAPE_META_H

#include "quern/Shape/Condition.h"
#include "llvm/Support/FormatVariadic.h"
#include <variant>

namespace quern {

/// Sizes and dtype of one tensor. An absent optional operand has a null dtype.
struct TensorMeta {
  llvm::StringRef name; ///< the operand's name, for messages
  llvm::SmallVector<Dim> dims;
  mlir::Type dtype;

  explicit operator bool() const { return bool(dtype); }
  int64_t rank() const { return dims.size(); }
  Dim dim(int64_t i) const { return dims[i]; }
};

/// A value in an error text: a size (known or symbolic), a dtype, a number, a word.
using MetaArg = std::variant<Dim, mlir::Type, int64_t, std::string>;

/// An undecided condition: what a run-time guard checks.
struct UndecidedCheck {
  std::string id; ///< constraint id, `add_c1`
  Condition condition;
  std::string text;              ///< the whole message with {0}, {1}, … for the sizes
  llvm::SmallVector<Dim> values; ///< the sizes that fill them
};

/// The message of a check with these sizes: `?` where one is unknown or null.
std::string getMessage(const UndecidedCheck &check, llvm::ArrayRef<Dim> values);

/// What a meta run yields.
struct MetaResult {
  bool ok = true;
  std::string error; ///< the whole message of the first failed check
  llvm::SmallVector<TensorMeta> outputs;
  std::vector<UndecidedCheck> undecided;
};

/// The helper that a meta function writes its findings to.
class MetaContext {
public:
  /// `op` is the op's name without the dialect (`add`); `facts` may be null.
  MetaContext(mlir::MLIRContext *ctx, llvm::StringRef op, const Facts *facts = nullptr)
      : ctx(ctx), op(op), facts(facts) {}

  mlir::MLIRContext *getContext() const { return ctx; }
  Dim constant(int64_t v) const { return Dim::constant(ctx, v); }

  /// Constraint `<op>_c<number>`. `text` has {0}, {1}, … for `args`. A known-false
  /// condition is an error; an undecided one is collected, and holds from here on in
  /// this run (one with an unknown size can say nothing: it is dropped). Returns false
  /// when known false: the function should return at once.
  bool check(unsigned number, const Condition &condition, llvm::StringRef text,
             llvm::ArrayRef<MetaArg> args = {});
  /// The same for a rule that is no numbered constraint: `<op>_<rule>`.
  bool checkRule(llvm::StringRef rule, const Condition &condition, llvm::StringRef text,
                 llvm::ArrayRef<MetaArg> args = {});
  /// The same for a condition on dtypes, ranks and attributes.
  bool check(unsigned number, bool condition, llvm::StringRef text,
             llvm::ArrayRef<MetaArg> args = {});

  void setOutput(unsigned i, llvm::ArrayRef<Dim> dims, mlir::Type dtype);

  /// Broadcasts b into `dims` (aligned from the last dim), checking constraint
  /// `number`; `against` names what `dims` came from so far.
  bool broadcast(unsigned number, llvm::SmallVectorImpl<Dim> &dims, llvm::StringRef against,
                 const TensorMeta &b);
  /// Sizes given as an attribute, which `what` names, are at least 0.
  bool checkSizes(unsigned number, llvm::ArrayRef<Dim> sizes, llvm::StringRef what);
  /// Normalises a possibly negative dim of a tensor of this rank, checking the range.
  /// A scalar counts as rank 1, as in ATen.
  bool wrapDim(unsigned number, int64_t &dim, int64_t rank, llvm::StringRef what);

  /// Under the facts and what this run has checked so far.
  Truth decide(const Condition &c) const { return facts.decide(c); }
  bool ok() const { return result.ok; }
  MetaResult take() { return std::move(result); }

private:
  void fail(llvm::StringRef rule, llvm::StringRef text, llvm::ArrayRef<MetaArg> args);

  mlir::MLIRContext *ctx;
  llvm::StringRef op;
  Facts facts;
  MetaResult result;
};

/// `f32`, `i64`, `bool`, `u8`: how dtypes are named in messages.
std::string dtypeName(mlir::Type type);

} // namespace quern
#endif // QUERN_SHAPE_META_H
