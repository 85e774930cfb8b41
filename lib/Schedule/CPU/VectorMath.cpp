//===- VectorMath.cpp - Transcendental functions on vectors ---------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// exp, erf, tanh and log of f32 lanes, at any vector width, within 2 ulp. Coefficients
// are minimax where they are numbers here (Remez, in long double), else Chebyshev
// interpolants, computed once in double precision.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace quern;
using namespace quern::cpu;

namespace {

using Poly = std::vector<double>;

/// Coefficients, lowest first, in x of the interpolant of `f` on [a, b] at the
/// Chebyshev nodes. Solved in t = (x - mid) / half, then expanded about 0.
template <typename F> Poly interpolate(F f, double a, double b, int degree) {
  int n = degree + 1;
  std::vector<Poly> rows(n, Poly(n + 1));
  double mid = (a + b) / 2, half = (b - a) / 2;
  for (int i = 0; i < n; ++i) {
    double t = std::cos(M_PI * (i + .5) / n), power = 1;
    for (int j = 0; j < n; ++j, power *= t)
      rows[i][j] = power;
    rows[i][n] = f(mid + half * t);
  }
  for (int i = 0; i < n; ++i) { // Gauss with pivoting
    int pivot = i;
    for (int r = i; r < n; ++r)
      if (std::abs(rows[r][i]) > std::abs(rows[pivot][i]))
        pivot = r;
    std::swap(rows[i], rows[pivot]);
    for (int r = i + 1; r < n; ++r) {
      double q = rows[r][i] / rows[i][i];
      for (int c = i; c <= n; ++c)
        rows[r][c] -= q * rows[i][c];
    }
  }
  Poly inT(n);
  for (int i = n; i-- > 0;) {
    double v = rows[i][n];
    for (int c = i + 1; c < n; ++c)
      v -= rows[i][c] * inT[c];
    inT[i] = v / rows[i][i];
  }
  // t = (x - mid) / half, by Horner on polynomials.
  Poly inX(n);
  for (int j = n; j-- > 0;) {
    Poly next(n);
    for (int i = 0; i < n; ++i) {
      next[i] += inX[i] * (-mid / half);
      if (i + 1 < n)
        next[i + 1] += inX[i] / half;
    }
    next[0] += inT[j];
    inX = next;
  }
  return inX;
}

const double ln2 = std::log(2.0);
// ln2 in two parts; the product of the first with a small integer is exact.
const double ln2High = 0.693359375;

struct VectorMath {
  Emitter &e;
  OpBuilder &b;
  Location loc;
  unsigned lanes;

  VectorMath(Emitter &e, Location loc, unsigned lanes) : e(e), b(e.b), loc(loc), lanes(lanes) {}

  Value f(double v) { return e.splat(e.constant(b.getF32FloatAttr(v)), lanes); }
  Value i(int32_t v) { return e.splat(e.constant(b.getI32IntegerAttr(v)), lanes); }
  Type floats() { return Emitter::vec(b.getF32Type(), lanes); }
  Type ints() { return Emitter::vec(b.getI32Type(), lanes); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value fma(Value x, Value y, Value z) { return fusedMultiplyAdd(e, x, y, z); }
  Value abs(Value x) { return math::AbsFOp::create(b, loc, x); }
  Value bits(Value x) { return arith::BitcastOp::create(b, loc, ints(), x); }
  Value fromBits(Value x) { return arith::BitcastOp::create(b, loc, floats(), x); }
  Value shl(Value x, int by) { return arith::ShLIOp::create(b, loc, x, i(by)); }
  Value select(Value c, Value x, Value y) { return arith::SelectOp::create(b, loc, c, x, y); }
  Value compare(arith::CmpFPredicate p, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, p, x, y);
  }
  /// Estrin's scheme: pairs, then pairs of pairs. A product or two more than Horner's
  /// chain, and half as deep: what bounds these functions is latency.
  Value poly(Value x, const Poly &p) {
    SmallVector<Value> terms;
    for (double c : p)
      terms.push_back(f(c));
    return poly(x, terms);
  }
  Value poly(Value x, SmallVector<Value> terms) {
    for (Value power = x; terms.size() > 1;) {
      SmallVector<Value> next;
      for (size_t i = 0; i + 1 < terms.size(); i += 2)
        next.push_back(fma(terms[i + 1], power, terms[i]));
      if (terms.size() % 2)
        next.push_back(terms.back());
      terms = next;
      if (terms.size() > 1)
        power = mul(power, power);
    }
    return terms[0];
  }
  /// Horner's scheme: the fewest instructions, where there are other chains beside it.
  Value horner(Value x, const Poly &p) {
    Value v = f(p.back());
    for (double c : llvm::drop_begin(llvm::reverse(p)))
      v = fma(v, x, f(c));
    return v;
  }
  /// The larger (smaller) of both; `second` where they are unordered.
  Value extremum(bool max, Value first, Value second);

  /// 2^n e^r in parts: e^r, and n + 127 in the low bits of an integer.
  struct Reduced {
    Value power, exponent;
  };
  /// e^x with x = n ln2 + r, n a multiple of `step` (1 or 2). Adding 1.5 * 2^23 rounds
  /// to an integer, and leaves it in the low bits of the sum. e^r is minimax in relative
  /// error for |r| <= step ln2 / 2, with 1 + r exact.
  Reduced reduceExp(Value x, int step) {
    static const Poly narrow = {
        1, 1, 0.49999994, 0.166665196, 0.0416684002, 0.00836885069, 0.00138143206};
    static const Poly wide = {
        1, 1, 0.500000358, 0.166666135, 0.0416612364, 0.00833612029, 0.00141050911, 0.000196108362};
    Value magic = f(12582912.0 + 127);
    Value sum = fma(x, f(1 / (ln2 * step)), magic);
    Value n = sub(sum, magic);
    Value r = fma(n, f(-step * ln2High), x);
    r = fma(n, f(-step * (ln2 - ln2High)), r);
    return {horner(r, step == 1 ? narrow : wide), bits(sum)};
  }
  Value exp(Value x) {
    x = extremum(false, f(89), extremum(true, f(-104), x)); // NaN passes
    if (e.machine.avx512f && lanes % 16 == 0) {
      Reduced r = reduceExp(x, 1);
      Value n = sub(fromBits(r.exponent), f(12582912.0 + 127));
      return piecewise(16, {r.power, n}, [&](ValueRange piece) {
        Value mask = LLVM::ConstantOp::create(b, loc, b.getI16Type(), b.getI16IntegerAttr(-1));
        Value rounding = LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(4));
        return intrinsic("llvm.x86.avx512.mask.scalef.ps.512",
                         {piece[0], piece[1], piece[0], mask, rounding});
      });
    }
    // Twice 2^(n/2): neither factor over- or underflows, the result may.
    Reduced r = reduceExp(x, 2);
    Value factor = fromBits(shl(r.exponent, 23));
    return mul(mul(r.power, factor), factor);
  }
  /// For x in [-80, 80]: no over- or underflow.
  Value expModerate(Value x) {
    Reduced r = reduceExp(x, 1);
    return mul(r.power, fromBits(shl(r.exponent, 23)));
  }
  /// `fn` on each piece of `count` lanes: for what exists at one width only.
  Value piecewise(unsigned count, ValueRange in, llvm::function_ref<Value(ValueRange)> fn) {
    if (lanes == count)
      return fn(in);
    assert(llvm::isPowerOf2_32(lanes / count) && lanes % count == 0);
    SmallVector<Value> results;
    for (unsigned at = 0; at < lanes; at += count) {
      SmallVector<int64_t> picked = llvm::to_vector(llvm::seq<int64_t>(at, at + count));
      SmallVector<Value> pieces;
      for (Value v : in)
        pieces.push_back(vector::ShuffleOp::create(b, loc, v, v, picked));
      results.push_back(fn(pieces));
    }
    while (results.size() > 1) {
      for (size_t i = 0; i < results.size() / 2; ++i) {
        Value low = results[2 * i], high = results[2 * i + 1];
        auto all = llvm::to_vector(
            llvm::seq<int64_t>(0, 2 * cast<VectorType>(low.getType()).getNumElements()));
        results[i] = vector::ShuffleOp::create(b, loc, low, high, all);
      }
      results.resize(results.size() / 2);
    }
    return results[0];
  }
  Value intrinsic(StringRef name, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, loc, operands[0].getType(), b.getStringAttr(name),
                                         operands)
        .getResult(0);
  }
  /// x + x P(x^2) near 0, 1 - Q(|x|)^4 beyond, both polynomials minimax in the last place
  /// of the result. Neither an exponential nor a division, and the same at any width. Q^4
  /// at `top` is below half of the last place of 1, so erf is 1 from there on.
  Value erf(Value x) {
    const double split = 1.15, top = 3.95;
    static const Poly near = {0.128379151,   -0.376125753,    0.1128304,     -0.0268321596,
                              0.00514947344, -0.000768884493, 6.85635605e-05};
    static const Poly far = {1.00580966,   -0.310007155,  -0.0614086241, -0.0522956364,
                             0.0670839995, -0.0225131251, 0.00328501454, -0.000183112585};
    Value a = abs(x), z = mul(x, x);
    Value small = fma(horner(z, near), x, x);
    Value root = horner(extremum(false, a, f(top)), far), square = mul(root, root);
    Value big = fma(arith::NegFOp::create(b, loc, square), square, f(1)); // never negative
    Value sign = arith::XOrIOp::create(b, loc, bits(x), bits(a));
    big = fromBits(arith::OrIOp::create(b, loc, bits(big), sign));
    return select(compare(arith::CmpFPredicate::OGT, a, f(split)), big, small); // NaN: small
  }
  /// x + x^3 P(x^2) near 0, 1 - 2 / (e^2|x| + 1) beyond.
  Value tanh(Value x) {
    const double split = 0.625;
    static const Poly near = interpolate(
        [](double w) {
          double s = std::sqrt(w);
          return w > 1e-4 ? (std::tanh(s) / s - 1) / w : -1. / 3 + 2 * w / 15 - 17 * w * w / 315;
        },
        0, split * split, 5);
    Value a = abs(x), z = mul(a, a);
    Value small = fma(mul(z, a), poly(z, near), a);
    Value power = expModerate(mul(extremum(false, f(10), a), f(2)));
    Value big = sub(f(1), arith::DivFOp::create(b, loc, f(2), add(power, f(1))));
    Value r = select(compare(arith::CmpFPredicate::OLT, a, f(split)), small, big);
    return math::CopySignOp::create(b, loc, r, x);
  }
  /// n ln2 + log(1 + m), with 1 + m in [2/3, 4/3).
  Value log(Value x) {
    static const Poly p = interpolate(
        [](double m) {
          if (std::abs(m) < 1e-2)
            return 1. / 3 - m / 4 + m * m / 5 - m * m * m / 6 + m * m * m * m / 7 -
                   m * m * m * m * m / 8;
          return (std::log1p(m) - m + m * m / 2) / (m * m * m);
        },
        -1. / 3, 1. / 3, 9);
    Value tiny = compare(arith::CmpFPredicate::OLT, x, f(0x1p-126));
    Value scaled = select(tiny, mul(x, f(0x1p23)), x);
    Value raw = bits(scaled);
    Value n =
        arith::ShRSIOp::create(b, loc, arith::SubIOp::create(b, loc, raw, i(0x3f2aaaab)), i(23));
    Value m = sub(fromBits(arith::SubIOp::create(b, loc, raw, shl(n, 23))), f(1));
    Value exponent = add(arith::SIToFPOp::create(b, loc, floats(), n), select(tiny, f(-23), f(0)));
    Value square = mul(m, m);
    Value tail =
        fma(mul(square, m), poly(m, p), fma(exponent, f(ln2 - ln2High), mul(square, f(-.5))));
    Value r = fma(exponent, f(ln2High), add(tail, m));
    Value inf = f(INFINITY);
    r = select(compare(arith::CmpFPredicate::OLT, x, inf), r, x); // inf and NaN are their own
    r = select(compare(arith::CmpFPredicate::OEQ, x, f(0)), f(-INFINITY), r);
    return select(compare(arith::CmpFPredicate::OLT, x, f(0)), f(NAN), r);
  }
};

// llvm.maximum costs six instructions on x86 (it orders signed zeros), llvm.maxnum three,
// maxps one: it returns its second operand when they are unordered. As compare and select
// it stays one instruction only if InstCombine leaves it alone, hence the intrinsic.
Value VectorMath::extremum(bool max, Value first, Value second) {
  Type element = getElementTypeOrSelf(first);
  bool single = element.isF32();
  if (lanes > 1 && e.machine.x86 && (single || element.isF64())) {
    unsigned bytes = std::min(lanes * (single ? 4 : 8), e.machine.vectorBytes);
    std::string name = (Twine("llvm.x86.") +
                        (bytes == 64   ? "avx512."
                         : bytes == 32 ? "avx."
                         : single      ? "sse."
                                       : "sse2.") +
                        (max ? "max." : "min.") + (single ? "ps" : "pd") +
                        (bytes == 64   ? ".512"
                         : bytes == 32 ? ".256"
                                       : ""))
                           .str();
    if (bytes >= 16 && (bytes < 64 || e.machine.avx512f) && (bytes < 32 || e.machine.avx))
      return piecewise(bytes / (single ? 4 : 8), {first, second}, [&](ValueRange piece) {
        SmallVector<Value> operands(piece);
        if (bytes == 64)
          operands.push_back(
              LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(4)));
        return intrinsic(name, operands);
      });
  }
  return select(compare(max ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, first, second),
                first, second);
}

unsigned lanesOf(Value v) {
  auto type = dyn_cast<VectorType>(v.getType());
  return type ? type.getNumElements() : 1;
}

} // namespace

Value cpu::fusedMultiplyAdd(Emitter &e, Value x, Value y, Value z) {
  if (e.machine.fma)
    return math::FmaOp::create(e.b, x.getLoc(), x, y, z);
  return arith::AddFOp::create(e.b, x.getLoc(), arith::MulFOp::create(e.b, x.getLoc(), x, y), z);
}

Value cpu::expandMath(Emitter &e, Operation *op, ValueRange operands) {
  auto type = operands.empty() ? VectorType() : dyn_cast<VectorType>(operands[0].getType());
  if (!type || !type.getElementType().isF32())
    return {};
  VectorMath m(e, op->getLoc(), type.getNumElements());
  if (isa<math::ExpOp>(op))
    return m.exp(operands[0]);
  if (isa<math::ErfOp>(op))
    return m.erf(operands[0]);
  if (isa<math::TanhOp>(op))
    return m.tanh(operands[0]);
  if (isa<math::LogOp>(op))
    return m.log(operands[0]);
  return {};
}

Value cpu::expandMinMax(Emitter &e, Operation *op, ValueRange in, int accumulator) {
  bool max = isa<arith::MaximumFOp, arith::MaxNumFOp>(op);
  bool propagate = isa<arith::MaximumFOp, arith::MinimumFOp>(op);
  if (!max && !isa<arith::MinimumFOp, arith::MinNumFOp>(op))
    return {};
  VectorMath m(e, op->getLoc(), lanesOf(in[0]));
  auto isConstant = [](Value v) {
    if (auto splat = v.getDefiningOp<vector::BroadcastOp>())
      v = splat.getSource();
    Attribute value;
    if (!matchPattern(v, m_Constant(&value)))
      return false;
    if (auto elements = dyn_cast<SplatElementsAttr>(value))
      value = elements.getSplatValue<Attribute>();
    auto number = dyn_cast<FloatAttr>(value);
    return number && !number.getValue().isNaN();
  };
  if (propagate) { // a NaN of either operand comes out; signed zeros are not ordered
    for (int c : {0, 1})
      if (isConstant(in[c]))
        return m.extremum(max, in[c], in[1 - c]);
    int kept = accumulator < 0 ? 1 : accumulator; // its NaN is kept by the instruction
    Value x = in[1 - kept];
    Value r = m.extremum(max, x, in[kept]);
    return m.select(m.compare(arith::CmpFPredicate::UNO, x, x), x, r);
  }
  // The running value starts at an infinity and is never NaN.
  if (accumulator >= 0)
    return m.extremum(max, in[1 - accumulator], in[accumulator]);
  return {};
}
