#include "vitrail/kernels/weight_rest.h"

#include "vitrail/kernels/row_sum.h"

namespace vitrail::kernels {
namespace {

int64_t rounded_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

size_t bytes_of_floats(int64_t floats) { return static_cast<size_t>(rounded_up(floats, 16)) * sizeof(float); }

}  // namespace

WeightRest::WeightRest(std::shared_ptr<const PackedLinear> rest, int64_t rows, int64_t every, int64_t alone)
    : rest_(std::move(rest)),
      rows_(rows),
      in_(rest_->in_features()),
      shape_{nullptr, rounded_up(rest_->out_features(), 64), every, std::min(alone, every)},
      biases_(rows / every * shape_.biases_of_every()),
      tokens_at_(bytes_of_floats(parts() * in_)),  // behind the parts' sums
      biases_at_(tokens_at_ + bytes_of_floats(biases_ * in_)),
      scratch_at_(biases_at_ + bytes_of_floats(biases_ * shape_.ld)),
      bytes_(scratch_at_ + rest_->scratch_bytes(biases_)) {
  rest_->prepare(biases_, in_, shape_.ld, Activation::none);
}

WeightRest::Part WeightRest::part(int64_t p) const {
  const int64_t image = p / kPartsOfImage, index = p % kPartsOfImage;
  return {image * shape_.every + shape_.every * index / kPartsOfImage,
          image * shape_.every + shape_.every * (index + 1) / kPartsOfImage};
}

void WeightRest::sum_up(const float* x, int64_t ldx, int64_t p, std::byte* memory) const {
  const Part rows = part(p);
  const int64_t first = std::max(rows.first, p / kPartsOfImage * shape_.every + shape_.alone);
  sum_of_rows(x + first * ldx, ldx, std::max<int64_t>(0, rows.last - first), in_, 1,
              reinterpret_cast<float*>(memory) + p * in_);
}

RowBias WeightRest::biases(const float* x, int64_t ldx, std::byte* memory) const {
  auto* const tokens = reinterpret_cast<float*>(memory + tokens_at_);
  auto* const biases = reinterpret_cast<float*>(memory + biases_at_);
  const int64_t others = shape_.every - shape_.alone, kept = shape_.biases_of_every();
  for (int64_t image = 0; image < rows_ / shape_.every; ++image) {
    float* const of_image = tokens + image * kept * in_;
    for (int64_t r = 0; r < shape_.alone; ++r) {
      std::copy_n(x + (image * shape_.every + r) * ldx, in_, of_image + r * in_);
    }
    if (others == 0) continue;
    const float* const sums = reinterpret_cast<const float*>(memory) + image * kPartsOfImage * in_;
    sum_of_rows(sums, in_, kPartsOfImage, in_, 1 / static_cast<float>(others), of_image + shape_.alone * in_);
  }
  rest_->run(tokens, in_, biases, shape_.ld, biases_, Activation::none, memory + scratch_at_);
  RowBias result = shape_;
  result.data = biases;
  return result;
}

}  // namespace vitrail::kernels
