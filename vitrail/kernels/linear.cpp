#include "vitrail/kernels/linear.h"

#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/isa.h"
#include "vitrail/kernels/onednn.h"
#include "vitrail/kernels/scalar.h"

namespace vitrail::kernels {

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
          const float* b, int64_t ldb, bool accumulate, float* c, int64_t ldc) {
  if (active_isa() != Isa::scalar && onednn::available()) {
    onednn::sgemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
    return;
  }
  parallel_for(0, m, 1, [&](int64_t first, int64_t last) {
    scalar::gemm(transpose_a, transpose_b, last - first, n, k, a + (transpose_a ? first : first * lda), lda, b, ldb,
                 accumulate, c + first * ldc, ldc);
  });
}

struct PackedLinear::Impl {
  int64_t out, in;
  std::vector<float> weight, bias;
};

PackedLinear::PackedLinear(const float* weight, const float* bias, int64_t out_features, int64_t in_features)
    : impl_(new Impl{out_features, in_features, {weight, weight + out_features * in_features}, {}}) {
  if (bias) impl_->bias.assign(bias, bias + out_features);
}
PackedLinear::~PackedLinear() = default;
PackedLinear::PackedLinear(PackedLinear&&) noexcept = default;
PackedLinear& PackedLinear::operator=(PackedLinear&&) noexcept = default;

void PackedLinear::run(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, Activation activation,
                       std::byte*) const {
  parallel_for(0, rows, 1, [&](int64_t first, int64_t last) {
    scalar::gemm(false, true, last - first, impl_->out, impl_->in, x + first * ldx, ldx, impl_->weight.data(),
                 impl_->in, false, y + first * ldy, ldy);
    for (int64_t r = first; r < last; ++r) {
      for (int64_t c = 0; c < impl_->out; ++c) {
        float& value = y[r * ldy + c];
        value = scalar::activate(activation, value + (impl_->bias.empty() ? 0.0f : impl_->bias[c]));
      }
    }
  });
}

void PackedLinear::prepare(int64_t, int64_t, int64_t, Activation) const {}
size_t PackedLinear::scratch_bytes(int64_t) const { return 0; }
size_t PackedLinear::packed_bytes() const { return (impl_->weight.size() + impl_->bias.size()) * sizeof(float); }
int64_t PackedLinear::out_features() const { return impl_->out; }
int64_t PackedLinear::in_features() const { return impl_->in; }

}  // namespace vitrail::kernels
