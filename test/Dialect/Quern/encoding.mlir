// The names of sizes in a type: one for each `?`, and no number.
// RUN: quern-opt %s --split-input-file --verify-diagnostics

// Dims that became static may keep their names: upstream's folders leave the encoding as it is.
func.func private @static(tensor<2x?xf32, #quern.dims<A, B>>)

// -----

// expected-error@+1 {{expected the size of a `?` in #quern.dims to be no number, got 7; write it in place of the `?`}}
func.func private @number(tensor<?xf32, #quern.dims<7>>)

// -----

// expected-error@+1 {{expected the size of a `?` in #quern.dims to be no number, got 3; write it in place of the `?`}}
func.func private @number(tensor<2x?x?xf32, #quern.dims<B, 3>>)

// -----

// expected-error@+1 {{expected 2 sizes in #quern.dims, one for each `?`, got 1}}
func.func private @few(tensor<?x?xf32, #quern.dims<B>>)

// -----

// expected-error@+1 {{expected 1 sizes in #quern.dims, one for each `?`, got 2}}
func.func private @many(tensor<?xf32, #quern.dims<A, B>>)
