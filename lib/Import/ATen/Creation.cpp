//===- Creation.cpp - ATen's tensors from nothing -------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include <cmath>

using namespace mlir;

namespace quern::aten {

static Results filled(Call &call, Scalar value, Type otherwise) {
  Type dtype = call.dtype();
  SmallVector<int64_t> sizes = call.integers("size");
  return {call.full(value, dtype ? dtype : otherwise, sizes)};
}

/// Without a dtype, the number's kind chooses it.
static Results full(Call &call) {
  Scalar value = call.scalar("fill_value", Scalar::integer(0));
  Type dtype = Float32Type::get(call.getContext());
  if (!value.isFloat())
    dtype = IntegerType::get(call.getContext(), value.kind == Scalar::Kind::Bool ? 1 : 64);
  return filled(call, value, dtype);
}
static Results zeros(Call &call) {
  return filled(call, Scalar::integer(0), Float32Type::get(call.getContext()));
}
static Results ones(Call &call) {
  return filled(call, Scalar::integer(1), Float32Type::get(call.getContext()));
}

/// start, start + step, … below end (above it for a negative step). The numbers are computed
/// in i64 or f64 and rounded once.
static Results arange(Call &call) {
  Scalar start = call.scalar("start", Scalar::integer(0));
  Scalar end = call.scalar("end", Scalar::integer(0));
  Scalar step = call.scalar("step", Scalar::integer(1));
  MLIRContext *ctx = call.getContext();
  bool isFloat = start.isFloat() || end.isFloat() || step.isFloat();
  Type dtype = call.dtype();
  if (!dtype)
    dtype = isFloat ? Type(Float32Type::get(ctx)) : IntegerType::get(ctx, 64);
  if (!std::isfinite(start.asDouble) || !std::isfinite(end.asDouble) ||
      !std::isfinite(step.asDouble))
    return {call.fail("expected finite start, end and step")};
  if (step.is(0))
    return {call.fail("expected step to be other than 0")};
  if ((step.asDouble > 0) ? start.asDouble > end.asDouble : start.asDouble < end.asDouble)
    return {call.fail("expected step to lead from start to end")};
  double count = std::ceil((end.asDouble - start.asDouble) / step.asDouble);
  if (count > 0x1p53)
    return {call.fail("expected at most 2^53 elements")};

  Type wide =
      isFloat || isa<FloatType>(dtype) ? Type(Float64Type::get(ctx)) : IntegerType::get(ctx, 64);
  Value values =
      call.op("iota", {}, {call.sizesAttr("size", {int64_t(count)}), call.attr("dtype", wide)});
  if (!step.is(1))
    values = call.op("mul", {values, call.full(step, wide)});
  if (!start.is(0))
    values = call.op("add", {values, call.full(start, wide)});
  return {call.convert(values, dtype)};
}

llvm::ArrayRef<Overload> getCreationOverloads() {
  static const Overload table[] = {
      {"full.default", full},
      {"zeros.default", zeros},
      {"ones.default", ones},
      {"arange.default", arange, Rounding::Pointwise},
      {"arange.start", arange, Rounding::Pointwise},
      {"arange.start_step", arange, Rounding::Pointwise},
  };
  return table;
}

} // namespace quern::aten
