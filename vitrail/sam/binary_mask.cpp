// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/binary_mask.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::sam {
namespace {

constexpr int64_t kGrain = 1 << 16;  // logits of a task: enough to be worth a thread

// The contiguous logits of a mask.
Tensor checked(const Tensor& logits) {
  if (logits.rank() != 2 || logits.dtype() != DType::f32) {
    throw Error("mask", "logits [height, width] f32", str(logits.shape(), " ", name_of(logits.dtype())));
  }
  return logits.contiguous();
}

int64_t count_above(const Tensor& logits, float limit) {
  const float* values = logits.data<float>();
  std::atomic<int64_t> total = 0;
  parallel_for(0, logits.numel(), kGrain, [&](int64_t first, int64_t last) {
    int64_t count = 0;
    for (int64_t i = first; i < last; ++i) count += values[i] > limit;
    total += count;
  });
  return total;
}

}  // namespace

BinaryMask make_mask(int64_t width, int64_t height) {
  return {width, height, std::vector<uint8_t>(static_cast<size_t>(width * height))};
}

BinaryMask threshold(const Tensor& logits, float threshold) {
  const Tensor values = checked(logits);
  BinaryMask mask = make_mask(values.size(1), values.size(0));
  const float* from = values.data<float>();
  parallel_for(0, values.numel(), kGrain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) mask.pixels[static_cast<size_t>(i)] = from[i] > threshold ? 1 : 0;
  });
  return mask;
}

int64_t area(const BinaryMask& mask) { return std::count(mask.pixels.begin(), mask.pixels.end(), uint8_t{1}); }

PixelBox bounding_box(const BinaryMask& mask) {
  PixelBox box{mask.width, mask.height, -1, -1};
  for (int64_t y = 0; y < mask.height; ++y) {
    const uint8_t* row = mask.row(y);
    const auto* first = static_cast<const uint8_t*>(std::memchr(row, 1, static_cast<size_t>(mask.width)));
    if (!first) continue;
    const auto* last = static_cast<const uint8_t*>(::memrchr(row, 1, static_cast<size_t>(mask.width)));
    box = {std::min(box.x0, static_cast<int64_t>(first - row)), std::min(box.y0, y),
           std::max(box.x1, static_cast<int64_t>(last - row)), y};
  }
  return box.x1 < 0 ? PixelBox{} : box;
}

float stability_score(const Tensor& logits, float offset) {
  const Tensor values = checked(logits);
  const auto inner = static_cast<float>(count_above(values, offset));
  const auto outer = static_cast<float>(count_above(values, -offset));
  return outer == 0 && inner == 0 ? std::numeric_limits<float>::quiet_NaN() : inner / outer;
}

BinaryMask uncrop(const BinaryMask& mask, int64_t x, int64_t y, int64_t width, int64_t height) {
  if (x < 0 || y < 0 || x + mask.width > width || y + mask.height > height) {
    throw Error("uncrop", str("a mask inside of ", width, "×", height),
                str(mask.width, "×", mask.height, " at ", x, ",", y));
  }
  if (mask.width == width && mask.height == height) return mask;
  BinaryMask result = make_mask(width, height);
  for (int64_t row = 0; row < mask.height; ++row) std::copy_n(mask.row(row), mask.width, result.row(y + row) + x);
  return result;
}

}  // namespace vitrail::sam
