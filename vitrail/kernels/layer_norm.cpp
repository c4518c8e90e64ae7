#include "vitrail/kernels/layer_norm.h"

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/scalar.h"

namespace vitrail::kernels {

void layer_norm(const float* x, int64_t ldx, const float* gamma, const float* beta, float eps, float* y, int64_t ldy,
                int64_t rows, int64_t cols) {
  parallel_for(0, rows, 4, [&](int64_t first, int64_t last) {
    scalar::layer_norm(x + first * ldx, ldx, gamma, beta, eps, y + first * ldy, ldy, last - first, cols);
  });
}

void residual_layer_norm(const float* x, const float* y, const float* scale, const float* gamma, const float* beta,
                         float eps, float* out, float* norm, int64_t rows, int64_t cols) {
  parallel_for(0, rows, 4, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const int64_t at = r * cols;
      for (int64_t c = 0; c < cols; ++c) out[at + c] = x[at + c] + (scale ? scale[c] * y[at + c] : y[at + c]);
      if (norm) scalar::layer_norm(out + at, cols, gamma, beta, eps, norm + at, cols, 1, cols);
    }
  });
}

}  // namespace vitrail::kernels
