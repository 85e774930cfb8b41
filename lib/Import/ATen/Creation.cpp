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

/// Whether ATen converts the number: integers must hold it (unsigned ones also its negative), f32 a
/// finite one.
static bool fits(Scalar value, Type dtype) {
  if (dtype.isF32())
    return !std::isfinite(value.asDouble) || std::isfinite(float(value.asDouble));
  auto integer = dyn_cast<IntegerType>(dtype);
  if (!integer || integer.getWidth() == 1)
    return true;
  if (!value.isFloat() && integer.getWidth() == 64)
    return true;
  bool isUnsigned = integer.isUnsigned();
  double size = std::ldexp(1.0, integer.getWidth() - !isUnsigned);
  double most = integer.getWidth() == 64 ? size : size - 1, least = isUnsigned ? -most : -size;
  return least <= value.asDouble && value.asDouble <= most;
}

/// Without a dtype, the number's kind chooses it.
static Results full(Call &call) {
  Scalar value = call.scalar("fill_value", Scalar::integer(0));
  Type otherwise = Float32Type::get(call.getContext());
  if (!value.isFloat())
    otherwise = IntegerType::get(call.getContext(), value.kind == Scalar::Kind::Bool ? 1 : 64);
  Type dtype = call.dtype();
  if (!fits(value, dtype ? dtype : otherwise))
    return {call.fail("fill_value overflows the dtype")};
  return filled(call, value, otherwise);
}
static Results zeros(Call &call) {
  return filled(call, Scalar::integer(0), Float32Type::get(call.getContext()));
}
static Results ones(Call &call) {
  return filled(call, Scalar::integer(1), Float32Type::get(call.getContext()));
}

/// Without a dtype: f32 if one of the numbers is a float, else i64.
static Results arange(Call &call) {
  Scalar start = call.scalar("start", Scalar::integer(0));
  Scalar end = call.scalar("end", Scalar::integer(0));
  Scalar step = call.scalar("step", Scalar::integer(1));
  Type dtype = call.dtype();
  if (!dtype && (start.isFloat() || end.isFloat() || step.isFloat()))
    dtype = Float32Type::get(call.getContext());
  else if (!dtype)
    dtype = IntegerType::get(call.getContext(), 64);
  return {call.op("arange", {},
                  {call.attr("start", start), call.attr("end", end), call.attr("step", step),
                   call.attr("dtype", dtype)})};
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
