// RUN: quern-opt %s --quern-lower-dims --split-input-file --verify-diagnostics

func.func @unknown() {
  // expected-error @below {{'kernel.dim' op expected a known size, got #quern.dim<_>}}
  %0 = kernel.dim #quern.dim<_>
  return
}

// -----

func.func @no_size() {
  // expected-error @below {{'kernel.dim' op attribute 'dim' failed to satisfy constraint: a size, #quern.dim<…>}}
  %0 = kernel.dim "S"
  return
}
