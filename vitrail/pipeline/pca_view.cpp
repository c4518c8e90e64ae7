// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/pca_view.h"

#include <charconv>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/image/overlay.h"

namespace vitrail::pipeline {

analysis::Foreground foreground_from_name(const std::string& name, bool invert) {
  using Kind = analysis::Foreground::Kind;
  if (name == "none" && invert) throw Error("invert", "foreground first or a number beside it", "none");
  if (name == "none") return {};
  if (name == "first") return {.kind = Kind::first, .invert = invert};
  double threshold = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), threshold);
  if (error == std::errc() && end == name.data() + name.size() && threshold >= 0 && threshold < 1)
    return {.kind = Kind::threshold, .threshold = threshold, .invert = invert};
  throw Error("foreground", "none, first or a number from 0 to 1", name);
}

image::Image pca_overlay(const image::Image& photo, const analysis::PcaMaps& maps, double opacity,
                         const image::EvalTransform& transform) {
  const int64_t rows = maps.scores.size(0), columns = maps.scores.size(1);
  std::vector<float> shown(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < shown.size(); ++i) shown[i] = std::isfinite(maps.scores.data<float>()[3 * i]) ? 1.0F : 0.0F;
  const image::ColorMap colors{{maps.colors.data<float>(), 3 * shown.size()}, shown, columns, rows};
  return image::overlay(photo, colors,
                        {.opacity = opacity, .region = visible_region(transform, photo.width, photo.height)});
}

}  // namespace vitrail::pipeline
