//===- Generic.cpp - Any kernel: one nest, or op by op --------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Schedulers.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace quern;
using namespace quern::cpu;

namespace {

/// The parts of a kernel that run one after another.
struct Stages {
  Emitter &e;
  llvm::SmallVector<std::unique_ptr<Space>> spaces;
  /// Values between stages.
  llvm::SmallVector<Value> temporaries;
  Memory memory;

  explicit Stages(Emitter &e) : e(e), memory(e) {}

  Value outArg(unsigned n) {
    return e.kernel.getBody().front().getArgument(e.kernel.getNumIns() + n);
  }
  std::string build();
  void emit();
};

} // namespace

/// Why there is no way to run the kernel; empty when there is.
std::string Stages::build() {
  SmallVector<linalg::GenericOp> ops(e.kernel.getBody().front().getOps<linalg::GenericOp>());
  auto yields = e.kernel.getBody().front().getTerminator()->getOperands();
  SmallVector<std::pair<Value, Value>> outs;
  for (auto [n, v] : llvm::enumerate(yields))
    outs.push_back({v, outArg(n)});
  if (!e.options.reference || ops.size() == 1) {
    auto whole = std::make_unique<Space>(e.kernel, ops, outs,
                                         [&](Value v) { return isInMemory(e.kernel, v); });
    if (whole->isValid()) {
      spaces.push_back(std::move(whole));
      return {};
    }
    if (ops.size() == 1)
      return whole->reason;
  }

  // Op by op. A result that may share the buffer of an in is copied there in the end.
  OpBuilder b(e.ctx);
  Operation *terminator = e.kernel.getBody().front().getTerminator();
  for (auto [n, operand] : llvm::enumerate(terminator->getOpOperands())) {
    bool shares = false;
    for (unsigned in = 0; in < e.kernel.getNumIns(); ++in)
      shares |= e.kernel.mayShare(n, in);
    if (!shares)
      continue;
    b.setInsertionPoint(terminator);
    auto type = cast<RankedTensorType>(operand.get().getType());
    AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
    auto copy = linalg::GenericOp::create(
        b, e.loc, TypeRange(type), ValueRange(operand.get()), ValueRange(outArg(n)),
        ArrayRef<AffineMap>{identity, identity},
        SmallVector<utils::IteratorType>(type.getRank(), utils::IteratorType::parallel),
        [](OpBuilder &b, Location loc, ValueRange args) {
          linalg::YieldOp::create(b, loc, args[0]);
        });
    operand.set(copy.getResult(0));
    ops.push_back(copy);
  }
  yields = terminator->getOperands();
  for (linalg::GenericOp op : ops) {
    SmallVector<std::pair<Value, Value>> results;
    for (Value v : op->getResults()) {
      auto at = llvm::find(yields, v);
      if (at != yields.end()) {
        results.push_back({v, outArg(at - yields.begin())});
      } else {
        for (Dim d : shapeOf(v))
          if (d.isUnknown())
            return "an intermediate value whose size is not known";
        results.push_back({v, v});
        temporaries.push_back(v);
      }
    }
    auto stage = std::make_unique<Space>(e.kernel, ArrayRef(op), results, [&](Value v) {
      Value root = throughViews(v);
      return isInMemory(e.kernel, v) ||
             (root.getDefiningOp<linalg::GenericOp>() && root.getDefiningOp() != op.getOperation());
    });
    if (!stage->isValid())
      return stage->reason;
    spaces.push_back(std::move(stage));
  }
  return {};
}

void Stages::emit() {
  std::string name = e.kernel.getSymName().str();
  auto nestOf = [&](const Space &space) {
    return Nest(e, space, [this](Value v) { return memory(v); });
  };
  e.beginFunction(name, /*sizesOnly=*/false);
  memory.clear();
  if (spaces.size() == 1) {
    nestOf(*spaces[0]).emit(e.lo, e.hi);
  } else {
    // One unit: the whole. Values between the stages come from the heap.
    auto declare = [&](StringRef symbol, Type result, Type input) {
      OpBuilder::InsertionGuard guard(e.b);
      e.b.setInsertionPointToStart(e.module.getBody());
      func::FuncOp::create(e.b, e.loc, symbol,
                           e.b.getFunctionType(input, result ? TypeRange(result) : TypeRange()))
          .setPrivate();
    };
    if (!temporaries.empty()) {
      declare("malloc", e.ptrType, e.i64Type);
      declare("free", {}, e.ptrType);
    }
    // A result that is yielded lives in its out.
    for (auto [n, v] : llvm::enumerate(e.kernel.getBody().front().getTerminator()->getOperands()))
      memory.set(v, e.args[e.kernel.getNumIns() + n]);
    e.loop(e.lo, e.hi, 1, [&](Value) {
      for (Value v : temporaries) {
        Buffer buffer;
        buffer.element = getElementTypeOrSelf(v.getType());
        buffer.shape = shapeOf(v);
        buffer.strides = rowMajorStrides(e.ctx, buffer.shape);
        unsigned bits = e.storage(buffer.element).getIntOrFloatBitWidth();
        Value bytes = e.mul(e.size(Dim::product(e.ctx, buffer.shape)), e.i64(bits / 8));
        buffer.ptr = func::CallOp::create(e.b, e.loc, "malloc", TypeRange(e.ptrType),
                                          ValueRange(e.add(bytes, e.i64(64))))
                         .getResult(0);
        memory.set(v, buffer);
      }
      for (auto &space : spaces) {
        Nest nest = nestOf(*space);
        nest.emit(e.i64(0), nest.units());
      }
      for (Value v : temporaries)
        func::CallOp::create(e.b, e.loc, "free", TypeRange(), ValueRange(memory(v)->ptr));
    });
  }
  e.beginFunction(name + "_range", /*sizesOnly=*/true);
  e.endFunction(spaces.size() == 1 ? nestOf(*spaces[0]).units() : e.i64(1));
  e.beginFunction(name + "_unit_cost", /*sizesOnly=*/true);
  Value cost = e.i64(0);
  for (auto &space : spaces) {
    Nest nest = nestOf(*space);
    Value each = nest.unitCost();
    cost = e.add(cost, spaces.size() == 1 ? each : e.mul(each, nest.units()));
  }
  e.endFunction(cost);
}

bool cpu::isInMemory(kernel::FuncOp kernel, Value v) {
  Value root = throughViews(v);
  if (auto arg = dyn_cast<BlockArgument>(root))
    return v == root || !kernel.isStrided(arg.getArgNumber());
  DenseElementsAttr value;
  return matchPattern(root, m_Constant(&value)) && !value.isSplat();
}

LogicalResult cpu::scheduleNest(Emitter &e) {
  Stages stages(e);
  std::string reason = stages.build();
  if (!reason.empty())
    return e.kernel.emitError("unsupported: kernel '")
           << e.kernel.getSymName() << "' has " << reason;
  stages.emit();
  return success();
}
