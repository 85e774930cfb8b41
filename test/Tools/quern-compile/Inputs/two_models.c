/* Two artefacts in one program, each with the runtime: y = exp(x) + (10, 20, 30, 40). */
#include "m.h"
#include "two.h"
#include <stdio.h>

int main(void) {
  float x[5] = {0, 0, 0, 0, 0}, y[4];
  int64_t dims[2] = {1, 4};
  DLTensor in = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, dims, NULL, 0};
  DLTensor out = in;
  const DLTensor *inputs[1] = {&in};
  DLTensor *outputs[1] = {&out};
  const quern_function *models[2] = {&m, &two};
  out.data = y;
  for (int i = 0; i < 2; ++i) {
    quern_context *ctx = quern_context_create(1);
    if (quern_call(ctx, models[i], inputs, outputs) != QUERN_OK)
      return puts(quern_context_error(ctx)), 1;
    if (i == 1) {
      int64_t wrong[2] = {1, 5};
      printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
      in.shape = wrong;
      if (two_call(ctx, inputs, outputs) != QUERN_INVALID)
        return 1;
      puts(quern_context_error(ctx));
    }
    quern_context_destroy(ctx);
  }
  return 0;
}
