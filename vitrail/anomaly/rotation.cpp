// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/rotation.h"

#include <cmath>
#include <numbers>

namespace vitrail::anomaly {
namespace {

// The position in [0, size) of one beyond the edges: … 2 1 | 0 1 2 … size − 1 | size − 2 …
int64_t mirrored(int64_t at, int64_t size) {
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1), offset = ((at % period) + period) % period;
  return offset < size ? offset : period - offset;
}

// Between pixels, linearly.
struct Weighted {
  Weighted(double at, int64_t size)
      : first(mirrored(static_cast<int64_t>(std::floor(at)), size)),
        second(mirrored(static_cast<int64_t>(std::floor(at)) + 1, size)),
        weight(at - std::floor(at)) {}
  int64_t first, second;
  double weight;  // the weight of the second pixel
};

}  // namespace

image::Image rotated(const image::Image& image, double degrees) {
  const double angle = degrees * std::numbers::pi / 180, cosine = std::cos(angle), sine = std::sin(angle);
  const double middle_x = static_cast<double>(image.width - 1) / 2,
               middle_y = static_cast<double>(image.height - 1) / 2;
  image::Image turned = image::make_image(image.width, image.height, image.channels);
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      const double dx = static_cast<double>(x) - middle_x, dy = static_cast<double>(y) - middle_y;
      const Weighted column(cosine * dx - sine * dy + middle_x, image.width);
      const Weighted row(sine * dx + cosine * dy + middle_y, image.height);
      for (int64_t c = 0; c < image.channels; ++c) {
        const auto value = [&](int64_t v, int64_t u) -> double { return image.row(v)[u * image.channels + c]; };
        const double above = std::lerp(value(row.first, column.first), value(row.first, column.second), column.weight);
        const double below =
            std::lerp(value(row.second, column.first), value(row.second, column.second), column.weight);
        turned.row(y)[x * image.channels + c] = static_cast<uint8_t>(std::lround(std::lerp(above, below, row.weight)));
      }
    }
  }
  return turned;
}

}  // namespace vitrail::anomaly
