// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/weight_correction.h"

#include "vitrail/base/parallel.h"
#include "vitrail/kernels/rowwise/row_sum_internal.h"

namespace vitrail::kernels {
namespace {

constexpr int64_t kMostParts = 8;  // of an image

int64_t rounded_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

size_t bytes_of_floats(int64_t floats) { return static_cast<size_t>(rounded_up(floats, 16)) * sizeof(float); }

float* floats(std::byte* memory, size_t at) { return reinterpret_cast<float*>(memory + at); }

}  // namespace

WeightCorrection::WeightCorrection(std::shared_ptr<const PackedLinear> rest, int64_t rows, int64_t every, int64_t alone)
    : rest_(std::move(rest)),
      in_(rest_->in_features()),
      images_(rows / every),
      parts_of_image_(std::min(kMostParts, every)),
      shape_{nullptr, rounded_up(rest_->out_features(), 64), every, std::min(alone, every)},
      biases_(images_ * shape_.biases_of_every()),
      tokens_at_(bytes_of_floats(parts() * in_)),  // behind the parts' sums
      biases_at_(tokens_at_ + bytes_of_floats(biases_ * in_)),
      scratch_at_(biases_at_ + bytes_of_floats(biases_ * shape_.ld)),
      bytes_(scratch_at_ + rest_->scratch_bytes(biases_)) {
  rest_->prepare(biases_, in_, shape_.ld, Activation::none);
}

WeightCorrection::Part WeightCorrection::part(int64_t p) const {
  const int64_t image = p / parts_of_image_, index = p % parts_of_image_;
  return {image * shape_.every + shape_.every * index / parts_of_image_,
          image * shape_.every + shape_.every * (index + 1) / parts_of_image_};
}

void WeightCorrection::sum_up(const float* x, int64_t ldx, int64_t p, int64_t first, int64_t last,
                              std::byte* memory) const {
  const int64_t others = std::max(first, p / parts_of_image_ * shape_.every + shape_.alone);
  float* const sum = floats(memory, 0) + p * in_;
  if (first == part(p).first) std::fill_n(sum, in_, 0.0f);
  if (others < last) add_rows(x + others * ldx, ldx, last - others, in_, sum);
}

RowBias WeightCorrection::biases(const float* x, int64_t ldx, std::byte* memory) const {
  const int64_t grain = 1 + 16384 / (parts_of_image_ * in_ + 1);
  parallel_for(0, images_, grain, [&](int64_t first, int64_t last) {
    for (int64_t image = first; image < last; ++image) write_tokens(x, ldx, image, memory);
  });
  RowBias result = shape_;
  result.data = floats(memory, biases_at_);
  rest_->run(floats(memory, tokens_at_), in_, floats(memory, biases_at_), shape_.ld, biases_, Activation::none,
             memory + scratch_at_);
  return result;
}

// Those of the image that are multiplied.
void WeightCorrection::write_tokens(const float* x, int64_t ldx, int64_t image, std::byte* memory) const {
  const int64_t others = shape_.every - shape_.alone;
  float* const tokens = floats(memory, tokens_at_) + image * shape_.biases_of_every() * in_;
  for (int64_t r = 0; r < shape_.alone; ++r) std::copy_n(x + (image * shape_.every + r) * ldx, in_, tokens + r * in_);
  if (others == 0) return;
  sum_of_rows(floats(memory, 0) + image * parts_of_image_ * in_, in_, parts_of_image_, in_,
              1 / static_cast<float>(others), tokens + shape_.alone * in_);
}

}  // namespace vitrail::kernels
