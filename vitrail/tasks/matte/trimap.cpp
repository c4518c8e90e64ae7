// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/matte/trimap.h"

#include <algorithm>

namespace vitrail::tasks {
namespace {

constexpr uint8_t kBackground = 0, kUnknown = 128, kForeground = 255;

// What the pixels of a neighbourhood are.
constexpr uint8_t kOutside = 1, kInside = 2;

// The union of up to `band` values before and behind each one, n values with a stride.
void spread(uint8_t* values, int64_t n, int64_t stride, int64_t band, std::vector<uint8_t>& line) {
  line.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) line[static_cast<size_t>(i)] = values[i * stride];
  for (const uint8_t kind : {kOutside, kInside}) {
    int64_t last = -band - 1;  // the last value with the kind, from the left and then from the right
    for (int64_t i = 0; i < n; ++i) {
      if (line[static_cast<size_t>(i)] & kind) last = i;
      if (i - last <= band) values[i * stride] |= kind;
    }
    last = n + band;
    for (int64_t i = n - 1; i >= 0; --i) {
      if (line[static_cast<size_t>(i)] & kind) last = i;
      if (last - i <= band) values[i * stride] |= kind;
    }
  }
}

}  // namespace

image::Image trimap_of(const sam::BinaryMask& mask, int64_t band) {
  image::Image trimap = image::make_image(mask.width, mask.height, 1);
  std::ranges::transform(mask.pixels, trimap.pixels.begin(),
                         [](uint8_t pixel) { return pixel != 0 ? kInside : kOutside; });
  std::vector<uint8_t> line;
  for (int64_t y = 0; y < mask.height; ++y) spread(trimap.row(y), mask.width, 1, band, line);
  for (int64_t x = 0; x < mask.width; ++x) spread(trimap.pixels.data() + x, mask.height, mask.width, band, line);
  std::ranges::transform(trimap.pixels, trimap.pixels.begin(), [](uint8_t kinds) {
    return kinds == kInside ? kForeground : kinds == kOutside ? kBackground : kUnknown;
  });
  return trimap;
}

double unknown_share(const image::Image& trimap) {
  const auto known = [](uint8_t pixel) { return pixel == kBackground || pixel == kForeground; };
  const auto count = std::ssize(trimap.pixels) - std::ranges::count_if(trimap.pixels, known);
  return static_cast<double>(count) / static_cast<double>(std::max<int64_t>(std::ssize(trimap.pixels), 1));
}

}  // namespace vitrail::tasks
