//===- Fuse.cpp - Groups of ops become kernels ----------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Groups grow in program order: an op tries to join the groups of its producers. Every
// question asked for an op looks at a bounded number of others, so that the time is
// linear in the number of ops.
//
//===----------------------------------------------------------------------===//

#include "KernelAnalysis.h"
#include "Outline.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Transforms/Dims.h"
#include "quern/Transforms/Passes.h"
#include "quern/Transforms/Report.h"
#include "llvm/ADT/SetVector.h"

namespace quern {
#define GEN_PASS_DEF_QUERNFUSE
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

namespace {

/// What the ops of a group have in common.
enum class Core : uint8_t {
  Pointwise,   ///< loops over `space.full`, none reduced
  Row,         ///< reductions over the same loops, pointwise ops over them or over what is kept
  Contraction, ///< one contraction, then pointwise ops over its result
  Alone,
};

struct Group {
  SmallVector<unsigned, 4> ops; ///< positions in the block, ascending
  Core core = Core::Alone;
  LoopSpace space;
};

bool hasUnknown(ArrayRef<Dim> dims) {
  return llvm::any_of(dims, [](Dim d) { return d.isUnknown(); });
}
SmallVector<Dim> dimsOf(Value v) { return getDims(cast<RankedTensorType>(v.getType())); }

/// Bytes of a tensor where every free size counts as 32: to compare, not to plan.
double roughBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  double bytes = std::max(1u, tensor.getElementTypeBitWidth() / 8);
  for (Dim d : getDims(tensor)) {
    std::optional<int64_t> size;
    if (!d.isUnknown())
      size = d.evaluate([](StringRef) { return std::optional<int64_t>(32); });
    bytes *= double(size.value_or(32));
  }
  return bytes;
}

/// The bytes of some tensors, as an expression.
Dim bytesOf(ValueRange tensors, Operation *op) {
  Dim sum = Dim::constant(op->getContext(), 0);
  for (Value v : tensors) {
    auto type = cast<RankedTensorType>(v.getType());
    sum = sum + Dim::product(v.getContext(), getDims(type)) *
                    int64_t(std::max(1u, type.getElementTypeBitWidth() / 8));
  }
  return sum;
}

class Fuser {
public:
  Fuser(Block &block, Outliner &outliner, unsigned maxOps)
      : block(block), outliner(outliner), maxOps(maxOps) {}

  void group(bool fuse);
  LogicalResult emit();

private:
  Block &block;
  Outliner &outliner;
  unsigned maxOps;
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, unsigned> position;
  SmallVector<unsigned> groupOf; ///< by position; `none` for ops of no kernel
  SmallVector<Group> groups;
  llvm::DenseMap<Operation *, RowFacts> rows;
  llvm::DenseMap<unsigned, std::string> refusals; ///< for remarks, by position of the consumer

  static constexpr unsigned none = ~0u;

  Group makeGroup(StructuredOp op, unsigned at);
  StringRef merge(unsigned a, unsigned b);
  StringRef mergeSpaces(const Group &producer, const Group &consumer, Group &merged);
  bool flows(OpOperand &operand, const Group &merged);
  bool dependsOutside(unsigned from, unsigned on);
  void sink(unsigned group);
  bool sink(unsigned from, unsigned at);
  SmallVector<Operation *> unused; ///< ops that their readers make for themselves
};

/// The op's own group: what it may be fused with.
Group Fuser::makeGroup(StructuredOp op, unsigned at) {
  Group group;
  group.ops = {at};
  if (!op.getDestinations().empty())
    return group;
  SmallVector<Dim> result = dimsOf(op->getResult(0));
  switch (op.getOpRecord().fusion) {
  case FusionClass::IndexMap:
    if (op->getNumOperands() != 1)
      return group;
    [[fallthrough]];
  case FusionClass::Creation:
  case FusionClass::Pointwise:
    for (Value v : op->getResults())
      if (dimsOf(v) != result)
        return group;
    group.core = Core::Pointwise;
    group.space = {result, llvm::SmallBitVector(result.size())};
    break;
  case FusionClass::Contraction:
    if (op->getNumResults() != 1)
      return group;
    group.core = Core::Contraction;
    group.space = {result, llvm::SmallBitVector(result.size())};
    break;
  case FusionClass::Reduction:
  case FusionClass::RowWise:
    if (std::optional<RowFacts> facts = analyzeRows(op)) {
      group.core = Core::Row;
      group.space = facts->space;
      rows.try_emplace(op, std::move(*facts));
    }
    break;
  default:
    break;
  }
  if (hasUnknown(group.space.full))
    group.core = Core::Alone;
  return group;
}

StringRef Fuser::mergeSpaces(const Group &producer, const Group &consumer, Group &merged) {
  Core a = producer.core, b = consumer.core;
  if (a == Core::Alone)
    return "the producer's class is not fused";
  if (b == Core::Alone)
    return "the op's class is not fused";
  if (b == Core::Contraction)
    return "a contraction reads its operands from memory";
  if (a == Core::Row || b == Core::Row) {
    const Group &row = a == Core::Row ? producer : consumer;
    const Group &other = a == Core::Row ? consumer : producer;
    if (other.core == Core::Contraction)
      return "rows of a contraction are not whole";
    if (other.core == Core::Row
            ? !(other.space == row.space)
            : other.space.full != row.space.full && other.space.full != row.space.kept(true) &&
                  other.space.full != row.space.kept(false))
      return "the rows are not the same";
    merged.core = Core::Row;
    merged.space = row.space;
    return "";
  }
  if (producer.space.full != consumer.space.full)
    return "the loops are not the same";
  merged.core = a;
  merged.space = producer.space;
  return "";
}

/// Whether a value of the group is read, by an op of the group, at the index where it is made.
bool Fuser::flows(OpOperand &operand, const Group &merged) {
  auto reader = cast<StructuredOp>(operand.getOwner());
  SmallVector<Dim> own = dimsOf(operand.get());
  if (hasUnknown(own))
    return false;
  switch (reader.getOpRecord().fusion) {
  case FusionClass::Pointwise: {
    SmallVector<Dim> result = dimsOf(reader->getResult(0));
    if (own == result)
      return true;
    if (merged.core != Core::Row || result != merged.space.full)
      return false;
    if (own == merged.space.kept(true))
      return true;
    // Without ones: aligned from the last dim, each must stand where it came from.
    if (own != merged.space.kept(false))
      return false;
    return llvm::none_of(merged.space.reduced.set_bits(),
                         [&](unsigned i) { return i >= result.size() - own.size(); });
  }
  case FusionClass::Reduction:
  case FusionClass::RowWise: {
    auto facts = rows.find(reader);
    return facts != rows.end() && own == merged.space.full &&
           facts->second.identity.test(operand.getOperandNumber());
  }
  default:
    return false;
  }
}

/// Whether group `from` needs, through ops of neither, something that group `on` makes. A search
/// that grows too long counts as yes.
bool Fuser::dependsOutside(unsigned from, unsigned on) {
  unsigned first = groups[on].ops.front(), budget = 96;
  llvm::SmallDenseSet<unsigned> seen;
  SmallVector<unsigned> work;
  auto push = [&](unsigned at) {
    unsigned g = groupOf[at];
    unsigned last = g == none ? at : groups[g].ops.back();
    if (last > first && g != from && g != on && seen.insert(at).second)
      work.push_back(at);
  };
  bool found = false;
  auto visitOperands = [&](unsigned at, bool outside) {
    ops[at]->walk([&](Operation *inner) {
      for (Value v : inner->getOperands()) {
        auto def = position.find(v.getDefiningOp());
        if (!v.getDefiningOp() || def == position.end())
          continue;
        found |= outside && groupOf[def->second] == on;
        push(def->second);
      }
    });
  };
  for (unsigned at : groups[from].ops)
    visitOperands(at, false);
  while (!work.empty() && !found) {
    unsigned at = work.pop_back_val();
    if (budget-- == 0)
      return true;
    // A group runs as a whole: what any of its ops needs.
    if (unsigned g = groupOf[at]; g != none) {
      for (unsigned member : groups[g].ops) {
        seen.insert(member);
        visitOperands(member, true);
      }
    } else {
      visitOperands(at, true);
    }
  }
  return found;
}

/// Joins the groups, or says why not. `b` has the later op.
StringRef Fuser::merge(unsigned a, unsigned b) {
  if (groups[a].ops.size() + groups[b].ops.size() > maxOps)
    return "the kernel would have too many ops";
  Group merged;
  if (StringRef why = mergeSpaces(groups[a], groups[b], merged); !why.empty())
    return why;
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
    for (unsigned at : groups[y].ops)
      for (OpOperand &operand : ops[at]->getOpOperands()) {
        auto def = position.find(operand.get().getDefiningOp());
        if (!operand.get().getDefiningOp() || def == position.end() || groupOf[def->second] != x ||
            isRemadeInside(operand))
          continue;
        if (!flows(operand, merged))
          return "it is read at other indices than it is made at, or may broadcast";
      }
  if (dependsOutside(a, b) || dependsOutside(b, a))
    return "another kernel would have to run in between";
  std::merge(groups[a].ops.begin(), groups[a].ops.end(), groups[b].ops.begin(), groups[b].ops.end(),
             std::back_inserter(merged.ops));
  for (unsigned at : groups[a].ops)
    groupOf[at] = b;
  groups[b] = std::move(merged);
  groups[a].ops.clear();
  return "";
}

void Fuser::group(bool fuse) {
  for (Operation &op : block) {
    position[&op] = ops.size();
    ops.push_back(&op);
  }
  groupOf.assign(ops.size(), none);
  for (unsigned at = 0; at < ops.size(); ++at) {
    auto op = dyn_cast<StructuredOp>(ops[at]);
    if (!op || (op.getOpRecord().fusion == FusionClass::Reshape && op.getDestinations().empty()))
      continue;
    groupOf[at] = groups.size();
    groups.push_back(fuse ? makeGroup(op, at) : Group{{at}, Core::Alone, {}});
    if (!fuse)
      continue;
    // The producer whose value is largest first: what is not written and read again is saved.
    SmallVector<std::pair<double, unsigned>> producers;
    for (OpOperand &operand : op->getOpOperands()) {
      auto def = position.find(operand.get().getDefiningOp());
      if (!operand.get().getDefiningOp() || def == position.end() || groupOf[def->second] == none ||
          isRemadeInside(operand))
        continue;
      producers.push_back({-roughBytes(operand.get().getType()), def->second});
    }
    llvm::stable_sort(producers, llvm::less_first());
    for (auto [bytes, producer] : producers) {
      unsigned a = groupOf[producer], b = groupOf[at];
      if (a == b)
        continue;
      StringRef why = merge(a, b);
      if (why.empty() || !isReporting(op))
        continue;
      std::string text =
          ("; not fused with " + ops[producer]->getName().getStringRef() + ": " + why).str();
      if (refusals[at].find(text) == std::string::npos)
        refusals[at] += text;
    }
  }
  for (unsigned g = groups.size(); fuse && g-- > 0;)
    if (groups[g].ops.size() > 1)
      sink(g);
}

/// Moves the op at `at`, with what only it needs, from its group to the one group that reads its
/// result, when that saves bytes: the result is then neither written nor read, but what the moved
/// ops need has to be.
bool Fuser::sink(unsigned from, unsigned at) {
  auto isPointwise = [&](unsigned i) {
    auto op = cast<StructuredOp>(ops[i]);
    return op.getOpRecord().fusion == FusionClass::Pointwise && op.getDestinations().empty() &&
           op->getNumResults() == 1;
  };
  if (!isPointwise(at))
    return false;
  unsigned to = none;
  for (Operation *user : ops[at]->getUsers()) {
    auto reader = position.find(user);
    unsigned g = reader == position.end() ? none : groupOf[reader->second];
    if (g == none || g == from || (to != none && g != to))
      return false;
    to = g;
  }
  if (to == none || groups[to].core == Core::Alone)
    return false;

  // Members of the group that are needed by nothing else move along.
  llvm::SmallSetVector<unsigned, 8> moved;
  moved.insert(at);
  auto isNeededElsewhere = [&](unsigned i) {
    return llvm::any_of(ops[i]->getUsers(), [&](Operation *user) {
      auto reader = position.find(user);
      return reader == position.end() || !moved.contains(reader->second);
    });
  };
  for (unsigned member : llvm::reverse(groups[from].ops)) {
    if (member != at &&
        (!isPointwise(member) || ops[member]->use_empty() || isNeededElsewhere(member)))
      continue;
    moved.insert(member);
  }
  double gain = 2 * roughBytes(ops[at]->getResult(0).getType());
  llvm::SmallDenseSet<Value> known;
  auto isReadBy = [&](Value v, unsigned group) {
    return llvm::any_of(v.getUsers(), [&](Operation *user) {
      auto reader = position.find(user);
      return reader != position.end() && groupOf[reader->second] == group;
    });
  };
  for (unsigned member : moved)
    for (OpOperand &operand : ops[member]->getOpOperands()) {
      Value v = operand.get();
      auto def = v.getDefiningOp() ? position.find(v.getDefiningOp()) : position.end();
      if ((def != position.end() && moved.contains(def->second)) || isRemadeInside(operand) ||
          !known.insert(v).second)
        continue;
      double bytes = roughBytes(v.getType());
      if (!isReadBy(v, to))
        gain -= bytes;
      // A value that stayed inside has to be written as well.
      if (def == position.end() || groupOf[def->second] != from)
        continue;
      bool escapes = llvm::any_of(v.getUsers(), [&](Operation *user) {
        auto reader = position.find(user);
        return reader == position.end() || groupOf[reader->second] != from;
      });
      if (!escapes)
        gain -= bytes;
    }
  if (gain <= 0 || groups[to].ops.size() + moved.size() > maxOps ||
      moved.size() == groups[from].ops.size())
    return false;
  SmallVector<Dim> dims = dimsOf(ops[at]->getResult(0));
  for (unsigned member : moved)
    if (dimsOf(ops[member]->getResult(0)) != dims)
      return false;
  Group part, merged;
  part.core = Core::Pointwise;
  part.space = {dims, llvm::SmallBitVector(dims.size())};
  // A contraction takes what is added to its result, but not what it multiplies.
  if (groups[to].core == Core::Contraction ? groups[to].space.full != dims
                                           : !mergeSpaces(part, groups[to], merged).empty())
    return false;
  if (groups[to].core == Core::Contraction) {
    merged.core = Core::Contraction;
    merged.space = groups[to].space;
  }
  for (OpOperand &use : ops[at]->getUses())
    if (!flows(use, merged))
      return false;

  llvm::erase_if(groups[from].ops, [&](unsigned i) { return moved.contains(i); });
  merged.ops.assign(groups[to].ops.begin(), groups[to].ops.end());
  for (unsigned member : moved) {
    groupOf[member] = to;
    merged.ops.push_back(member);
  }
  llvm::sort(merged.ops);
  groups[to] = std::move(merged);
  return true;
}

void Fuser::sink(unsigned group) {
  for (bool again = true; again;) {
    again = false;
    SmallVector<unsigned> members(groups[group].ops.begin(), groups[group].ops.end());
    for (unsigned at : llvm::reverse(members))
      if (groupOf[at] == group && sink(group, at)) {
        again = true;
        break;
      }
  }
}

/// Emits all units that `at` needs, then its own, before `end`.
LogicalResult Fuser::emit() {
  Operation *end = block.getTerminator();
  SmallVector<char> state(ops.size(), 0); // 1: its operands are under way, 2: emitted
  auto members = [&](unsigned at) -> ArrayRef<unsigned> {
    return groupOf[at] == none ? ArrayRef<unsigned>(position.find(ops[at])->second)
                               : ArrayRef<unsigned>(groups[groupOf[at]].ops);
  };
  for (unsigned start = 0; start + 1 < ops.size(); ++start) {
    SmallVector<unsigned> stack{start};
    while (!stack.empty()) {
      unsigned at = stack.back();
      if (state[at] == 2) {
        stack.pop_back();
        continue;
      }
      SmallVector<unsigned> unit(members(at));
      if (state[at] == 0) {
        for (unsigned member : unit)
          state[member] = 1;
        for (unsigned member : unit)
          ops[member]->walk([&](Operation *inner) {
            for (Value v : inner->getOperands()) {
              auto def = v.getDefiningOp() ? position.find(v.getDefiningOp()) : position.end();
              if (def != position.end() && state[def->second] == 0)
                stack.push_back(def->second);
            }
          });
        continue;
      }
      stack.pop_back();
      for (unsigned member : unit)
        state[member] = 2;
      if (groupOf[at] == none) {
        ops[at]->moveBefore(end);
        auto op = dyn_cast<StructuredOp>(ops[at]);
        if (!op)
          continue;
        OpBuilder b(op);
        auto type = cast<RankedTensorType>(op->getResult(0).getType());
        SmallVector<Value> sizes;
        for (Dim d : getDims(type)) {
          if (d.isUnknown())
            return op->emitError("unsupported: a view with an unnamed size; run "
                                 "quern-propagate-shapes first");
          if (!d.isConstant())
            sizes.push_back(kernel::DimOp::create(b, op.getLoc(), b.getIndexType(), d.getAttr()));
        }
        Value view = kernel::ViewOp::create(b, op.getLoc(), type, op->getOperand(0), sizes);
        position.erase(op);
        op->getResult(0).replaceAllUsesWith(view);
        op->erase();
        continue;
      }
      SmallVector<Operation *> group;
      std::string why;
      bool isUsed = false;
      for (unsigned member : unit) {
        group.push_back(ops[member]);
        position.erase(ops[member]);
        why += refusals.lookup(member);
        for (OpOperand &use : ops[member]->getUses())
          isUsed |= !isRemadeInside(use);
      }
      // What every reader makes for itself, or nobody reads: gone with its last reader.
      auto structured = cast<StructuredOp>(group[0]);
      if (!isUsed && structured.getDestinations().empty()) {
        unused.push_back(group[0]);
        continue;
      }
      size_t numOps = group.size();
      kernel::LaunchOp launch = outliner.outline(group, end);
      if (!launch)
        return failure();
      if (isReporting(launch))
        emitReport(launch) << numOps << (numOps == 1 ? " op" : " ops") << ", reads "
                           << bytesOf(launch.getIns(), launch).str() << " and writes "
                           << bytesOf(launch.getOuts(), launch).str() << " bytes" << why;
    }
  }
  for (Operation *op : llvm::reverse(unused))
    if (op->use_empty())
      op->erase();
  return success();
}

/// Constants that kernels read from memory are arguments: whoever runs the function has them.
void constantsToArguments(func::FuncOp func) {
  llvm::MapVector<Attribute, Value> arguments;
  SmallVector<arith::ConstantOp> constants;
  func.walk([&](arith::ConstantOp op) {
    if (isa<RankedTensorType>(op.getType()))
      constants.push_back(op);
  });
  for (arith::ConstantOp op : constants) {
    if (!op->use_empty()) {
      Value &argument = arguments[op.getValue()];
      if (!argument) {
        unsigned at = func.getNumArguments();
        Builder b(op.getContext());
        (void)func.insertArgument(
            at, op.getType(), b.getDictionaryAttr(b.getNamedAttr(constantAttrName, op.getValue())),
            op.getLoc());
        argument = func.getArgument(at);
      }
      op.getResult().replaceAllUsesWith(argument);
    }
    op.erase();
  }
}

struct Fuse : quern::impl::QuernFuseBase<Fuse> {
  using Base::Base;

  void runOnOperation() override {
    Outliner outliner(getOperation());
    for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (failed(verifyTensors(func, getArgument())))
        return signalPassFailure();
      SmallVector<Block *> blocks;
      func.walk([&](Block *block) { blocks.push_back(block); });
      for (Block *block : blocks) {
        Fuser fuser(*block, outliner, maxOps);
        fuser.group(fuse);
        if (failed(fuser.emit()))
          return signalPassFailure();
      }
      constantsToArguments(func);
    }
  }
};

} // namespace
