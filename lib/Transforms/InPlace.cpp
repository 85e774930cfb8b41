//===- InPlace.cpp - Results take buffers that die ------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One walk over each block, in order. It knows for every value which buffer holds it,
// and for every buffer the last op that needs it through any value, views included.
//
//===----------------------------------------------------------------------===//

#include "KernelAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "quern/Dialect/Kernel/IR/Kernel.h"
#include "quern/Dialect/Quern/IR/FunctionAttrs.h"
#include "quern/Dialect/Quern/IR/Quern.h"
#include "quern/Transforms/Dims.h"
#include "quern/Transforms/Passes.h"
#include "quern/Transforms/Report.h"

namespace quern {
#define GEN_PASS_DEF_QUERNINPLACE
#include "quern/Transforms/Passes.h.inc"
} // namespace quern

using namespace mlir;
using namespace quern;

namespace {

struct Buffer {
  enum Owner { Function, Donated, Promised, Caller, Constant, Unknown } owner = Function;
  unsigned argument = 0;
  int64_t lastUse = -1; ///< position of the last op that needs what is in it
};

/// A tensor that an op reads, and whether each result may take its buffer.
struct Slot {
  Value value;
  std::string name;
  std::function<StringRef(unsigned result)> refusal; ///< by the op's rule; "" if it may
};

class InPlace {
public:
  InPlace(func::FuncOp func, Block &block)
      : func(func), block(block), functional(Dim::constant(func.getContext(), 0)),
        separate(functional) {}
  void run();

private:
  func::FuncOp func;
  Block &block;
  llvm::DenseMap<Operation *, int64_t> positions;
  llvm::DenseMap<Value, int64_t> lastUses;
  llvm::DenseMap<Value, unsigned> bufferOf;
  std::vector<Buffer> buffers;
  llvm::DenseSet<Value> returned;             ///< what return reads, through views
  llvm::DenseMap<Value, unsigned> promisedTo; ///< the argument that a returned value belongs in
  std::vector<Operation *> order;

  void findUses();
  void findReturned();
  unsigned newBuffer(Buffer::Owner owner, unsigned argument = 0);
  void define(Value value, unsigned buffer);
  unsigned getBuffer(Value value);
  StringRef refuse(Operation *op, ArrayRef<Slot> slots, unsigned result, Value candidate,
                   bool isPromise);
  Value choose(Operation *op, ArrayRef<Slot> slots, unsigned result, Type type,
               llvm::DenseSet<unsigned> &taken, std::string &text);
  void visit(StructuredOp op);
  void visit(kernel::LaunchOp op);
  void count(Value result, bool isNew);
  void report();

  Dim functional, separate; ///< bytes, see FunctionAttrs.h; null where a size has no name
};

bool hasKnownSizes(Type type) {
  return llvm::none_of(getDims(cast<RankedTensorType>(type)), [](Dim d) { return d.isUnknown(); });
}

unsigned InPlace::newBuffer(Buffer::Owner owner, unsigned argument) {
  buffers.push_back({owner, argument, -1});
  return buffers.size() - 1;
}

void InPlace::define(Value value, unsigned buffer) {
  bufferOf[value] = buffer;
  auto use = lastUses.find(value);
  if (use != lastUses.end())
    buffers[buffer].lastUse = std::max(buffers[buffer].lastUse, use->second);
}

unsigned InPlace::getBuffer(Value value) {
  auto known = bufferOf.find(value);
  if (known != bufferOf.end())
    return known->second;
  define(value, newBuffer(Buffer::Unknown));
  return bufferOf.lookup(value);
}

void InPlace::findUses() {
  constexpr int64_t never = std::numeric_limits<int64_t>::max();
  for (Operation &op : block) {
    int64_t position = order.size();
    positions[&op] = position;
    order.push_back(&op);
    // An op that is not understood may keep what it is given.
    bool known = isa<StructuredOp, kernel::LaunchOp, func::ReturnOp>(op) || viewSource(&op) ||
                 llvm::none_of(op.getResultTypes(), llvm::IsaPred<ShapedType>);
    if (op.getNumRegions())
      known = false;
    op.walk([&](Operation *inner) {
      for (Value v : inner->getOperands())
        if (isa<TensorType>(v.getType())) {
          int64_t &last = lastUses[v];
          last = std::max(last, known ? position : never);
        }
    });
  }
}

void InPlace::findReturned() {
  auto terminator = dyn_cast<func::ReturnOp>(block.getTerminator());
  for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
    Value v = operand.get();
    if (terminator && func.getResultAttr(operand.getOperandNumber(), resultIntoAttrName))
      promisedTo[v] = *getResultInto(func, operand.getOperandNumber());
    while (v) {
      returned.insert(v);
      Operation *op = v.getDefiningOp();
      v = op ? viewSource(op) : Value();
    }
  }
}

/// Why `result` may not be written to the buffer of `candidate`; "" if it may.
StringRef InPlace::refuse(Operation *op, ArrayRef<Slot> slots, unsigned result, Value candidate,
                          bool isPromise) {
  const Buffer &buffer = buffers[getBuffer(candidate)];
  switch (buffer.owner) {
  case Buffer::Function:
    break;
  case Buffer::Donated:
    if (!isPromise && returned.contains(op->getResult(result)))
      return "the result is returned in a buffer of its own";
    break;
  case Buffer::Promised:
    if (!isPromise)
      return "its buffer is kept for a result of the function";
    break;
  case Buffer::Caller:
    return "the argument is not donated";
  case Buffer::Constant:
    return "it is a constant";
  case Buffer::Unknown:
    return "its buffer is not known";
  }
  if (buffer.lastUse > positions.lookup(op)) {
    if (buffer.lastUse == int64_t(order.size()) - 1)
      return "it is returned or saved";
    return "it is still live";
  }
  // Every reader of the buffer in this op reads what is written at the same index.
  for (const Slot &slot : slots) {
    if (getBuffer(slot.value) != getBuffer(candidate))
      continue;
    if (StringRef why = slot.refusal(result); !why.empty())
      return why;
    if (slot.value.getType() != op->getResult(result).getType())
      return "the op reads the buffer in another shape too";
  }
  return "";
}

/// The destination for a result: what the function promises, or an operand; null for none.
Value InPlace::choose(Operation *op, ArrayRef<Slot> slots, unsigned result, Type type,
                      llvm::DenseSet<unsigned> &taken, std::string &text) {
  llvm::raw_string_ostream os(text);
  if (op->getNumResults() > 1)
    os << "; result " << result;
  auto promise = promisedTo.find(op->getResult(result));
  if (promise != promisedTo.end()) {
    Value argument = block.getArgument(promise->second);
    unsigned buffer = getBuffer(argument);
    StringRef why = refuse(op, slots, result, argument, /*isPromise=*/true);
    if (why.empty() && argument.getType() != type)
      why = "it has another type";
    if (why.empty() && taken.insert(buffer).second) {
      // Through the value that is read here, if there is one: the update is then visibly in place.
      for (const Slot &slot : slots)
        if (getBuffer(slot.value) == buffer)
          return slot.value;
      return argument;
    }
    os << "; argument " << promise->second << ": " << why;
  }
  for (const Slot &slot : slots) {
    unsigned buffer = getBuffer(slot.value);
    StringRef why = slot.refusal(result);
    if (why.empty() && slot.value.getType() != type)
      why = "it has another type";
    if (why.empty() && !hasKnownSizes(type))
      why = "its sizes have no names";
    if (why.empty())
      why = refuse(op, slots, result, slot.value, /*isPromise=*/false);
    if (why.empty() && taken.contains(buffer))
      why = "another result takes it";
    if (why.empty()) {
      taken.insert(buffer);
      return slot.value;
    }
    os << "; " << slot.name << ": " << why;
  }
  return {};
}

/// A destination of its own, for an op that has one for another result.
Value freshDestination(OpBuilder &b, Location loc, RankedTensorType type) {
  SmallVector<Value> sizes;
  for (Dim d : getDims(type))
    if (!d.isConstant())
      sizes.push_back(kernel::DimOp::create(b, loc, b.getIndexType(), d.getAttr()));
  return tensor::EmptyOp::create(b, loc, type, sizes);
}

void remark(Operation *op, ArrayRef<std::string> chosen, const std::string &refused) {
  if (!isReporting(op))
    return;
  InFlightDiagnostic diagnostic = emitReport(op);
  if (chosen.empty())
    diagnostic << "not in place";
  else
    diagnostic << "in place: ";
  llvm::interleaveComma(chosen, diagnostic, [&](const std::string &s) { diagnostic << s; });
  diagnostic << refused;
}

std::string nameOf(Value destination, ArrayRef<Slot> slots) {
  for (const Slot &slot : slots)
    if (slot.value == destination)
      return slot.name;
  return "argument " + std::to_string(cast<BlockArgument>(destination).getArgNumber());
}

/// The bytes of a result, in a buffer of its own or in one that there is.
void InPlace::count(Value result, bool isNew) {
  if (returned.contains(result))
    return;
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<Dim> dims = getDims(type);
  if (!hasKnownSizes(type) || !functional) {
    functional = separate = Dim();
    return;
  }
  Dim bytes = getBufferBytes(dims, type.getElementType());
  functional = functional + bytes;
  if (isNew)
    separate = separate + bytes;
}

void InPlace::report() {
  if (!functional)
    return;
  func->setAttr(functionalBytesAttrName, functional.getAttr());
  if (isReporting(func))
    emitReport(func) << "buffers of " << separate.str()
                     << " bytes (each value its own: " << functional.str() << ")";
}

void InPlace::visit(StructuredOp op) {
  const OpRecord &record = op.getOpRecord();
  if (!op.getDestinations().empty()) {
    for (auto [result, destination] : llvm::zip(op->getResults(), op.getDestinations())) {
      define(result, getBuffer(destination));
      count(result, false);
    }
    return;
  }
  SmallVector<Slot> slots;
  for (auto [i, operand] : llvm::enumerate(record.operands))
    for (auto [j, value] : llvm::enumerate(op.getOperandGroup(i))) {
      std::string name = operand.name.str();
      if (operand.arity == Arity::Variadic)
        name += "[" + std::to_string(j) + "]";
      bool may = operand.mayOverwrite;
      slots.push_back({value, name, [may, &record](unsigned) -> StringRef {
                         if (may)
                           return "";
                         return record.notInPlace.empty() ? "the op reads it at other indices"
                                                          : record.notInPlace;
                       }});
    }
  SmallVector<Value> destinations;
  SmallVector<std::string> chosen;
  llvm::DenseSet<unsigned> taken;
  std::string refused;
  for (Value result : op->getResults()) {
    unsigned number = cast<OpResult>(result).getResultNumber();
    Value v = choose(op, slots, number, result.getType(), taken, refused);
    destinations.push_back(v);
    if (v)
      chosen.push_back(record.results[number].name.str() + " into " + nameOf(v, slots));
  }
  if (!slots.empty())
    remark(op, chosen, refused);
  OpBuilder b(op);
  for (auto [result, destination] : llvm::zip(op->getResults(), destinations)) {
    define(result, destination ? getBuffer(destination) : newBuffer(Buffer::Function));
    count(result, !destination);
    if (!chosen.empty() && !destination) {
      destination = freshDestination(b, op.getLoc(), cast<RankedTensorType>(result.getType()));
      bufferOf[destination] = getBuffer(result);
    }
  }
  if (!chosen.empty())
    op.setDestinations(destinations);
}

void InPlace::visit(kernel::LaunchOp op) {
  SmallVector<Slot> slots;
  for (auto [i, value] : llvm::enumerate(op.getIns()))
    if (isa<RankedTensorType>(value.getType()))
      slots.push_back({value, "in " + std::to_string(i), [i = i, op](unsigned out) mutable {
                         return op.mayShare(out, i) ? StringRef("")
                                                    : "the kernel reads it at other indices";
                       }});
  SmallVector<std::string> chosen;
  SmallVector<int64_t> bound;
  llvm::DenseSet<unsigned> taken;
  std::string refused;
  for (OpOperand &out : op.getOutsMutable()) {
    unsigned number = out.getOperandNumber() - op.getIns().size();
    Value result = op->getResult(number);
    auto empty = out.get().getDefiningOp<tensor::EmptyOp>();
    if (!empty) { // bound by the user, or before
      define(result, getBuffer(out.get()));
      count(result, false);
      continue;
    }
    Value v = choose(op, slots, number, result.getType(), taken, refused);
    define(result, v ? bufferOf.lookup(v) : newBuffer(Buffer::Function));
    count(result, !v);
    if (!v)
      continue;
    chosen.push_back("out " + std::to_string(number) + " into " + nameOf(v, slots));
    out.set(v);
    if (empty->use_empty()) {
      positions.erase(empty);
      empty->erase();
    }
    for (auto [i, in] : llvm::enumerate(op.getIns()))
      if (in == v)
        bound.append({int64_t(number), int64_t(i)});
  }
  if (!slots.empty())
    remark(op, chosen, refused);
  if (!bound.empty())
    op->setAttr("quern.bound", DenseI64ArrayAttr::get(op.getContext(), bound));
}

void InPlace::run() {
  findUses();
  findReturned();
  llvm::DenseSet<unsigned> promised;
  for (auto &entry : promisedTo)
    promised.insert(entry.second);
  bool isEntry = block.isEntryBlock() && block.getParentOp() == func.getOperation();
  for (BlockArgument argument : block.getArguments()) {
    unsigned i = argument.getArgNumber();
    Buffer::Owner owner = Buffer::Unknown;
    if (isEntry)
      owner = promised.contains(i)                   ? Buffer::Promised
              : isDonated(func, i)                   ? Buffer::Donated
              : func.getArgAttr(i, constantAttrName) ? Buffer::Constant
                                                     : Buffer::Caller;
    define(argument, newBuffer(owner, i));
  }
  for (Operation *op : std::vector<Operation *>(order)) {
    if (!positions.count(op))
      continue;
    if (Value source = viewSource(op)) {
      define(op->getResult(0), getBuffer(source));
    } else if (auto structured = dyn_cast<StructuredOp>(op)) {
      visit(structured);
    } else if (auto launch = dyn_cast<kernel::LaunchOp>(op)) {
      visit(launch);
    } else {
      auto owner = isa<tensor::EmptyOp>(op)                ? Buffer::Function
                   : op->hasTrait<OpTrait::ConstantLike>() ? Buffer::Constant
                                                           : Buffer::Unknown;
      for (Value result : op->getResults())
        if (isa<TensorType>(result.getType()))
          define(result, newBuffer(owner));
    }
  }
  report();
}

struct InPlacePass : quern::impl::QuernInplaceBase<InPlacePass> {
  using Base::Base;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    if (!func.getBody().hasOneBlock()) {
      func.emitError("unsupported: quern-inplace of a function that is not one block");
      return signalPassFailure();
    }
    if (failed(verifyTensors(func, getArgument())))
      return signalPassFailure();
    writePromisedLast(func);
    InPlace(func, func.front()).run();
  }

private:
  /// A result that is promised an argument's buffer is written when nobody reads the argument any
  /// more: its op moves behind the last other reader, where only the return uses it.
  static void writePromisedLast(func::FuncOp func) {
    Block &block = func.front();
    Operation *terminator = block.getTerminator();
    for (OpOperand &result : terminator->getOpOperands()) {
      std::optional<unsigned> argument = getResultInto(func, result.getOperandNumber());
      Operation *op = result.get().getDefiningOp();
      if (!argument || !op)
        continue;
      Operation *last = op;
      for (Operation *reader : block.getArgument(*argument).getUsers())
        if (Operation *in = block.findAncestorOpInBlock(*reader);
            in && in != terminator && last->isBeforeInBlock(in))
          last = in;
      bool isFree = llvm::all_of(op->getUsers(), [&](Operation *user) {
        Operation *in = block.findAncestorOpInBlock(*user);
        return in && last->isBeforeInBlock(in);
      });
      if (last != op && isFree)
        op->moveAfter(last);
    }
  }
};

} // namespace
