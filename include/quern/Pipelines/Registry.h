//===- Registry.h - Every dialect and pass of the tools ---------*- C++ -*-===//
//
// Part of Quern, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef QUERN_PIPELINES_REGISTRY_H
#define QUERN_PIPELINES_REGISTRY_H

namespace mlir {
class DialectRegistry;
}

namespace quern {

/// The dialects that Quern's IR is made of, with the interfaces that its passes need.
void registerDialects(mlir::DialectRegistry &registry);

/// Every pass and named pipeline, for tools that take them by name.
void registerPasses();

} // namespace quern

#endif // QUERN_PIPELINES_REGISTRY_H
