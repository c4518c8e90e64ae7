// SPDX-License-Identifier: Apache-2.0
// Images that are odd in themselves or for their set.
#include <algorithm>
#include <array>
#include <cmath>

#include "apps/vitrail/audit/findings.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::app {
namespace {

constexpr double kDark = 0.12, kBright = 0.9;  // nearly all pixels are below, or above
constexpr double kUniform = 0.015;             // standard deviation of luminance
constexpr double kElongated = 4;               // aspect ratio, relative to the set's median
constexpr double kSmall = 4;                   // times that the set's median is larger
constexpr int64_t kSampledPixels = 1 << 18;    // enough for percentiles

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

double aspect_of(const AuditedImage& image) {
  const auto [low, high] = std::minmax(image.width, image.height);
  return static_cast<double>(high) / static_cast<double>(low);
}

double side_of(const AuditedImage& image) { return static_cast<double>(std::min(image.width, image.height)); }

}  // namespace

Luminance luminance_of(const image::Image& image) {
  std::array<int64_t, 256> counts{};
  const int64_t pixels = image.width * image.height;
  const int64_t step = std::max<int64_t>(1, pixels / kSampledPixels);
  for (int64_t i = 0; i < pixels; i += step) {
    const uint8_t* const p = image.pixels.data() + i * image.channels;
    ++counts[image.channels == 1 ? p[0] : static_cast<size_t>((299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000)];
  }
  double total = 0, sum = 0, squares = 0;
  for (size_t v = 0; v < counts.size(); ++v) {
    const double value = static_cast<double>(v) / 255, count = static_cast<double>(counts[v]);
    total += count, sum += count * value, squares += count * value * value;
  }
  const auto percentile = [&](double share) {
    double below = 0;
    size_t v = 0;
    while (v < 255 && (below += static_cast<double>(counts[v])) < share * total) ++v;
    return static_cast<double>(v) / 255;
  };
  const double mean = sum / total;
  return {percentile(0.01), percentile(0.99), std::sqrt(std::max(0.0, squares / total - mean * mean))};
}

void find_odd(Audit& audit) {
  std::vector<double> aspects, sides;
  for (const AuditedImage& image : audit.images) {
    if (!image.error.empty()) continue;
    aspects.push_back(aspect_of(image));
    sides.push_back(side_of(image));
  }
  if (aspects.empty()) return;
  const double aspect = median(std::move(aspects)), side = median(std::move(sides));
  for (size_t i = 0; i < audit.images.size(); ++i) {
    const AuditedImage& image = audit.images[i];
    if (!image.error.empty()) continue;
    std::vector<std::string> reasons;
    const Luminance& light = image.luminance;
    if (light.deviation < kUniform) {
      reasons.emplace_back("of one colour");
    } else if (light.high < kDark) {
      reasons.emplace_back("very dark");
    } else if (light.low > kBright) {
      reasons.emplace_back("very bright");
    }
    const std::string size = str(image.width, "×", image.height);
    if (aspect_of(image) > kElongated * aspect) reasons.push_back("elongated: " + size);
    if (side_of(image) * kSmall < side) reasons.push_back("small: " + size);
    if (!reasons.empty()) audit.findings.push_back({FindingKind::odd, {i}, join(reasons)});
  }
}

}  // namespace vitrail::app
