//===- DerivativeBuilder.h - What derivative rules write to -----*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A rule gives the gradient of each wanted operand in terms of operands, results
/// and the results' cotangents. It never reduces over a broadcast: `set` does.
///
//===----------------------------------------------------------------------===//
#ifndef QUERN_DIALECT_QUERN_IR_DERIVATIVEBUILDER_H
#define QUERN_DIALECT_QUERN_IR_DERIVATIVEBUILDER_H

#include "mlir/IR/Builders.h"
#include "quern/Dialect/Quern/IR/OpRecord.h"

namespace quern {

/// A tensor in a rule, or a number that takes dtype and shape from its partner.
class Term {
public:
  Term(mlir::Value value) : value(value) {}
  explicit Term(double number) : number(number) {}
  explicit Term(int number) : number(number) {}
  explicit Term(int64_t number) : number(double(number)) {}
  explicit Term(bool number) : number(number) {}
  explicit Term(mlir::TypedAttr attr);
  /// An operand that may be left out.
  Term(mlir::OperandRange group) : value(group.empty() ? mlir::Value() : group.front()) {}

  bool isNumber() const { return !value; }

  mlir::Value value;
  double number = 0;
};

class DerivativeBuilder {
public:
  /// `grads`: the cotangent of each result, null where it is zero. `wanted`: the operand values
  /// whose gradients are asked for, by flat operand number.
  DerivativeBuilder(mlir::OpBuilder &builder, mlir::Operation *op,
                    llvm::ArrayRef<mlir::Value> grads, llvm::BitVector wanted);

  mlir::OpBuilder &getBuilder() { return b; }
  mlir::Location getLoc() const { return op->getLoc(); }

  /// Whether a gradient is wanted for declared operand `i` (any element of it).
  bool wants(unsigned i) const;
  bool wants(unsigned i, unsigned element) const;
  /// The cotangent of result `i`; a tensor of zeros where it is symbolically zero.
  mlir::Value grad(unsigned i);
  /// Whether result `i`'s cotangent is symbolically zero.
  bool isZero(unsigned i) const { return !grads[i]; }

  /// The gradient of declared operand `i`: summed over the dims along which the operand was
  /// broadcast, and given its type.
  void set(unsigned i, Term value, unsigned element = 0);

  /// Creates an op by name. One that its meta function refuses is a fault of the rule: it is
  /// reported, and from then on every value is one of the op's results, which means nothing.
  mlir::Value create(llvm::StringRef mnemonic, llvm::ArrayRef<OperandGroup> operands,
                     llvm::ArrayRef<mlir::NamedAttribute> attrs = {}, unsigned result = 0);
  /// The same over terms, for generated code.
  Term call(llvm::StringRef mnemonic, llvm::ArrayRef<Term> operands,
            llvm::ArrayRef<std::pair<llvm::StringRef, mlir::Attribute>> attrs);

  /// Attributes from C++ values.
  mlir::Attribute attr(int64_t v);
  mlir::Attribute attr(uint64_t v) { return attr(int64_t(v)); } // as ODS returns an I64Attr
  mlir::Attribute attr(bool v);
  mlir::Attribute attr(double v);
  mlir::Attribute attr(llvm::StringRef v);
  mlir::Attribute attr(mlir::Type v);
  mlir::Attribute attr(llvm::ArrayRef<int64_t> v);
  mlir::Attribute attr(const llvm::SmallVector<int64_t> &v) { return attr(llvm::ArrayRef(v)); }
  mlir::Attribute attr(Dim v);
  mlir::Attribute attr(llvm::ArrayRef<Dim> v);
  mlir::Attribute attr(const llvm::SmallVector<Dim> &v) { return attr(llvm::ArrayRef(v)); }
  mlir::Attribute attr(mlir::TypedAttr v) { return v; }
  /// Null, which `call` leaves out, for an optional attribute that is not there.
  template <typename T> mlir::Attribute attr(std::optional<T> v) {
    return v ? attr(*v) : mlir::Attribute();
  }

  /// The sizes of a value: reads nothing of it.
  llvm::SmallVector<Dim> shape(mlir::Value v);
  mlir::Type dtype(mlir::Value v);
  /// The number of elements along dims (all when empty), as a number or a tensor of rank 0.
  Term count(mlir::Value v, llvm::ArrayRef<int64_t> dims = {});
  Term count(mlir::Value v, int64_t dim) { return count(v, llvm::ArrayRef<int64_t>(dim)); }
  /// A tensor of one number.
  mlir::Value full(llvm::ArrayRef<Dim> size, double value, mlir::Type dtype);
  /// The value of a term; a number becomes a rank-0 tensor of the dtype.
  mlir::Value materialize(Term t, mlir::Type dtype);

  /// The gradients by flat operand number, null where none was asked for or it is zero.
  llvm::ArrayRef<mlir::Value> getGradients() const { return gradients; }
  /// Whether the rule made an op that was refused.
  bool failed() const { return hasFailed; }

private:
  mlir::OpBuilder &b;
  mlir::Operation *op;
  llvm::SmallVector<mlir::Value> grads;
  llvm::BitVector wanted;
  llvm::SmallVector<mlir::Value> gradients;
  bool hasFailed = false;

  mlir::OperandRange group(unsigned i) const;
};

} // namespace quern
#endif // QUERN_DIALECT_QUERN_IR_DERIVATIVEBUILDER_H
