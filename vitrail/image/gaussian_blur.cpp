// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/gaussian_blur_internal.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace vitrail::image {
namespace {

constexpr int kPasses = 3;
constexpr uint32_t kOne = 1u << 24;  // 1 in the fixed point of the weights

// The mean of 2 · radius + 1 values and of a fraction of the two beside them.
struct ExtendedBox {
  int64_t radius;
  uint32_t weight, edge_weight;
};

// The box whose kPasses-fold convolution has this standard deviation, in Pillow's single precision.
ExtendedBox box_of(float sigma) {
  const float variance = sigma * sigma / kPasses;
  const float length = static_cast<float>(std::sqrt(12.0 * static_cast<double>(variance) + 1.0));
  const float whole = static_cast<float>(std::floor((static_cast<double>(length) - 1.0) / 2.0));
  float fraction = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  fraction /= 6 * (variance - (whole + 1) * (whole + 1));
  const float radius = whole + fraction;
  const auto full = static_cast<uint32_t>(radius);
  const auto weight = static_cast<uint32_t>(static_cast<float>(kOne) / (radius * 2 + 1));
  return {static_cast<int64_t>(full), weight, (kOne - (full * 2 + 1) * weight) / 2};
}

// to = the filtered `from`: `count` positions of `lanes` values each.  Filters each lane along the positions.
template <class Lanes>
void filter(const uint8_t* from, int64_t count, Lanes lanes, const ExtendedBox& box, uint32_t* sums, uint8_t* to) {
  const auto at = [&](int64_t i) { return from + std::clamp<int64_t>(i, 0, count - 1) * lanes; };
  std::fill_n(sums, static_cast<int64_t>(lanes), 0u);
  for (int64_t i = -box.radius - 1; i < box.radius; ++i) {
    for (int64_t l = 0; l < lanes; ++l) sums[l] += at(i)[l];
  }
  for (int64_t i = 0; i < count; ++i, to += lanes) {
    const uint8_t *const before = at(i - box.radius - 1), *const last = at(i + box.radius);
    const uint8_t* const behind = at(i + box.radius + 1);
    for (int64_t l = 0; l < lanes; ++l) {
      sums[l] += static_cast<uint32_t>(last[l]) - before[l];
      const uint32_t edges = static_cast<uint32_t>(before[l]) + behind[l];
      to[l] = static_cast<uint8_t>((sums[l] * box.weight + edges * box.edge_weight + kOne / 2) >> 24);
    }
  }
}

void filter_rows(const Image& from, const ExtendedBox& box, uint32_t* sums, uint8_t* to) {
  for (int64_t y = 0; y < from.height; ++y, to += from.row_bytes()) {
    if (from.channels == 3) {
      filter(from.row(y), from.width, std::integral_constant<int64_t, 3>(), box, sums, to);
    } else {
      filter(from.row(y), from.width, std::integral_constant<int64_t, 1>(), box, sums, to);
    }
  }
}

}  // namespace

void gaussian_blur(Image& image, double radius) {
  if (radius == 0) return;
  const ExtendedBox box = box_of(static_cast<float>(radius));
  std::vector<uint32_t> sums(static_cast<size_t>(image.row_bytes()));
  std::vector<uint8_t> filtered(image.pixels.size());
  for (int pass = 0; pass < 2 * kPasses; ++pass) {
    if (pass < kPasses) {
      filter_rows(image, box, sums.data(), filtered.data());
    } else {
      filter(image.pixels.data(), image.height, image.row_bytes(), box, sums.data(), filtered.data());
    }
    std::swap(image.pixels, filtered);
  }
}

}  // namespace vitrail::image
