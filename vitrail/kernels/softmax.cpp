#include "vitrail/kernels/softmax.h"

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/scalar.h"

namespace vitrail::kernels {

void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  parallel_for(0, rows, 4, [&](int64_t first, int64_t last) {
    scalar::softmax(x + first * cols, y + first * cols, last - first, cols);
  });
}

}  // namespace vitrail::kernels
