//===- GraphCheck.cpp - Names and order in a graph ------------------------===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "GraphCheck.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PriorityQueue.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace quern::onnx {
namespace {

constexpr unsigned notANode = ~0u;

/// Who defines a name of one graph.
struct Definition {
  unsigned node = notANode; ///< index of the node, or an input or initializer
};

class GraphChecker {
public:
  GraphChecker(Graph &graph, const GraphChecker *outer) : graph(graph), outer(outer) {}

  Error check() {
    if (Error e = defineAll())
      return e;
    needs.resize(graph.nodes.size());
    for (auto [i, node] : enumerate(graph.nodes))
      if (Error e = resolveNode(i, node))
        return e;
    for (const ValueInfo &output : graph.outputs)
      if (Error e = resolve(output.name, nullptr, [&] { return "output " + quoted(output.name); }))
        return e;
    if (Error e = sort())
      return e;
    graph.captures = captures.takeVector();
    return Error::success();
  }

private:
  Error defineAll();
  Error define(StringRef name, unsigned node, function_ref<std::string()> who);
  Error checkDefault(const ValueInfo &input, const Tensor &initializer);
  Error resolveNode(unsigned index, Node &node);
  Error resolve(StringRef name, SmallVectorImpl<unsigned> *needed, function_ref<std::string()> who);
  Error sort();
  Error cycleError(ArrayRef<unsigned> waiting);

  bool definedOutside(StringRef name) const {
    for (const GraphChecker *g = outer; g; g = g->outer)
      if (g->definitions.contains(name))
        return true;
    return false;
  }

  Graph &graph;
  const GraphChecker *outer;
  DenseMap<StringRef, Definition> definitions;
  SetVector<StringRef, std::vector<StringRef>> captures;
  std::vector<SmallVector<unsigned, 4>> needs; ///< of each node: the nodes that must be before it
};

Error GraphChecker::define(StringRef name, unsigned node, function_ref<std::string()> who) {
  auto [it, isNew] = definitions.try_emplace(name, Definition{node});
  if (!isNew) {
    unsigned other = it->second.node;
    return invalidInput(who() + " is defined twice" +
                        (other == notANode ? "" : ", first by " + graph.nodes[other].str()));
  }
  if (definedOutside(name))
    return invalidInput(who() + " has the name of a value of an enclosing graph");
  return Error::success();
}

/// An initializer with the name of an input is its default value.
Error GraphChecker::checkDefault(const ValueInfo &input, const Tensor &initializer) {
  bool sameRank = !input.hasShape || input.dims.size() == initializer.dims.size();
  bool sameDims =
      sameRank && (!input.hasShape ||
                   all_of_zip(input.dims, initializer.dims, [](const DimInfo &declared, int64_t d) {
                     return declared.value < 0 || declared.value == d;
                   }));
  if (!sameDims) {
    std::string declared;
    for (const DimInfo &d : input.dims)
      declared += (declared.empty() ? "" : ", ") + (d.value < 0 ? "?" : std::to_string(d.value));
    return invalidInput("initializer " + quoted(initializer.name) + " has dims " +
                        dimsString(initializer.dims) + ", but as an input it is declared [" +
                        declared + "]");
  }
  if (input.elementType && input.elementType != initializer.type)
    return invalidInput("initializer " + quoted(initializer.name) + " is of type " +
                        initializer.type->name + ", but as an input it is declared " +
                        input.elementType->name);
  return Error::success();
}

Error GraphChecker::defineAll() {
  DenseMap<StringRef, const ValueInfo *> inputs;
  for (const ValueInfo &input : graph.inputs) {
    if (Error e = define(input.name, notANode, [&] { return "input " + quoted(input.name); }))
      return e;
    inputs[input.name] = &input;
  }
  StringSet<> seen;
  for (const Tensor &tensor : graph.initializers) {
    auto who = [&] { return "initializer " + quoted(tensor.name); };
    if (!seen.insert(tensor.name).second)
      return invalidInput(who() + " is defined twice");
    if (const ValueInfo *input = inputs.lookup(tensor.name)) {
      if (Error e = checkDefault(*input, tensor))
        return e;
    } else if (Error e = define(tensor.name, notANode, who)) {
      return e;
    }
  }
  for (auto [i, node] : enumerate(graph.nodes))
    for (StringRef output : node.outputs)
      if (!output.empty())
        if (Error e = define(
                output, i, [&, &node = node] { return node.str() + ": output " + quoted(output); }))
          return e;
  return Error::success();
}

Error GraphChecker::resolve(StringRef name, SmallVectorImpl<unsigned> *needed,
                            function_ref<std::string()> who) {
  auto it = definitions.find(name);
  if (it != definitions.end()) {
    if (needed && it->second.node != notANode)
      needed->push_back(it->second.node);
    return Error::success();
  }
  if (!definedOutside(name))
    return invalidInput(who() + " is not defined by any node, input or initializer");
  captures.insert(name);
  return Error::success();
}

Error GraphChecker::resolveNode(unsigned index, Node &node) {
  SmallVectorImpl<unsigned> &needed = needs[index];
  for (auto [i, input] : enumerate(node.inputs))
    if (!input.empty())
      if (Error e = resolve(input, &needed, [&, i = i, input = input] {
            return node.str() + ": input " + std::to_string(i) + ", " + quoted(input) + ",";
          }))
        return e;
  for (Attribute &attribute : node.attributes) {
    for (Graph &inner : attribute.graphs) {
      if (Error e = GraphChecker(inner, this).check())
        return withContext(std::move(e), node.str() + ": " + quoted(attribute.name) + ": ");
      for (StringRef name : inner.captures)
        if (Error e = resolve(name, &needed, [&] { return node.str() + ": " + quoted(name); }))
          return e;
    }
  }
  llvm::sort(needed);
  needed.erase(llvm::unique(needed), needed.end());
  return Error::success();
}

/// The order that keeps the file's as far as it can.
Error GraphChecker::sort() {
  unsigned count = graph.nodes.size();
  std::vector<SmallVector<unsigned, 2>> users(count);
  std::vector<unsigned> missing(count);
  PriorityQueue<unsigned, std::vector<unsigned>, std::greater<unsigned>> ready;
  for (unsigned i = 0; i < count; ++i) {
    missing[i] = needs[i].size();
    for (unsigned needed : needs[i])
      users[needed].push_back(i);
    if (missing[i] == 0)
      ready.push(i);
  }
  std::vector<unsigned> order;
  while (!ready.empty()) {
    unsigned i = ready.top();
    ready.pop();
    order.push_back(i);
    for (unsigned user : users[i])
      if (--missing[user] == 0)
        ready.push(user);
  }
  if (order.size() != count) {
    SmallVector<unsigned> waiting;
    for (unsigned i = 0; i < count; ++i)
      if (missing[i])
        waiting.push_back(i);
    return cycleError(waiting);
  }
  if (is_sorted(order))
    return Error::success();
  std::vector<Node> sorted;
  sorted.reserve(count);
  for (unsigned i : order)
    sorted.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(sorted);
  return Error::success();
}

/// Follows the first need that waits from a waiting node, until one comes again.
Error GraphChecker::cycleError(ArrayRef<unsigned> waiting) {
  DenseSet<unsigned> isWaiting(waiting.begin(), waiting.end());
  SetVector<unsigned> path;
  unsigned at = waiting.front();
  while (path.insert(at))
    at = *find_if(needs[at], [&](unsigned n) { return isWaiting.contains(n); });
  ArrayRef<unsigned> cycle = path.getArrayRef().drop_front(find(path, at) - path.begin());
  std::string text = "the graph has a cycle: ";
  for (auto [i, index] : enumerate(cycle.take_front(8))) {
    const Node &node = graph.nodes[index];
    const Node &needed = graph.nodes[cycle[(i + 1) % cycle.size()]];
    const StringRef *value =
        find_if(needed.outputs, [&](StringRef o) { return is_contained(node.inputs, o); });
    text += (i ? "; " : "") + node.str() + " needs " +
            (value == needed.outputs.end() ? "a value" : quoted(*value)) + " of " + needed.str();
  }
  return invalidInput(text + (cycle.size() > 8 ? "; …" : ""));
}

/// Calls `fn` for every node that calls a function, those in subgraphs included.
void walkCalls(const Graph &graph, function_ref<void(const Node &)> fn) {
  for (const Node &node : graph.nodes) {
    if (node.isFunctionCall)
      fn(node);
    for (const Attribute &attribute : node.attributes)
      for (const Graph &inner : attribute.graphs)
        walkCalls(inner, fn);
  }
}

} // namespace

Error checkGraph(Graph &graph) { return GraphChecker(graph, nullptr).check(); }

Error checkRecursion(ArrayRef<Function> functions) {
  auto find = [&](const Node &call) {
    return find_if(functions,
                   [&](const Function &f) {
                     return f.domain == call.domain && f.name == call.op &&
                            f.overload == call.overload;
                   }) -
           functions.begin();
  };
  std::vector<SmallVector<unsigned>> callees(functions.size());
  for (auto [i, function] : enumerate(functions))
    walkCalls(function.body, [&, i = i](const Node &call) { callees[i].push_back(find(call)); });

  // Takes away functions that call none of those left; what stays calls itself.
  std::vector<SmallVector<unsigned>> callers(functions.size());
  std::vector<unsigned> left(functions.size());
  SmallVector<unsigned> leaves;
  for (auto [i, list] : enumerate(callees)) {
    left[i] = list.size();
    for (unsigned callee : list)
      callers[callee].push_back(i);
    if (list.empty())
      leaves.push_back(i);
  }
  for (size_t i = 0; i < leaves.size(); ++i)
    for (unsigned caller : callers[leaves[i]])
      if (--left[caller] == 0)
        leaves.push_back(caller);
  for (auto [i, count] : enumerate(left))
    if (count) {
      const Function &function = functions[i];
      bool direct = is_contained(callees[i], unsigned(i));
      return invalidInput("function " + quoted(function.name) +
                          (direct ? " calls itself" : " takes part in a recursion"));
    }
  return Error::success();
}

} // namespace quern::onnx
