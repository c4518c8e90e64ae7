#include "vitrail/kernels/activation.h"

#include <array>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/scalar.h"

namespace vitrail::kernels {
namespace {

constexpr std::array kNames{"none", "gelu", "gelu_tanh", "quick_gelu", "relu", "silu", "tanh"};

}  // namespace

const char* name_of(Activation activation) { return kNames[static_cast<size_t>(activation)]; }

Activation activation_from_name(const std::string& name) {
  for (size_t i = 1; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Activation>(i);
  }
  throw Error("activation", "gelu, gelu_tanh, quick_gelu, relu, silu or tanh", "'" + name + "'");
}

void activate(Activation activation, const float* x, float* y, int64_t n) {
  parallel_for(0, n, 4096, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) y[i] = scalar::activate(activation, x[i]);
  });
}

void silu_gate(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols) {
  parallel_for(0, rows, 4, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        y[r * ldy + c] = scalar::activate(Activation::silu, x[r * ldx + c]) * x[r * ldx + cols + c];
      }
    }
  });
}

}  // namespace vitrail::kernels
