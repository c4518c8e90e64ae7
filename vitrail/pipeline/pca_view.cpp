// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/pca_view.h"

#include <charconv>
#include <cmath>
#include <tuple>

#include "vitrail/base/error.h"
#include "vitrail/image/overlay.h"

namespace vitrail::pipeline {

void describe_pca(Fields& fields, PcaOptions& options) {
  fields.integer({"layer", "Index of the block; negative counts from the end"}, options.features.layers.front());
  fields.boolean({"final_norm", "Skip the final norm", "no-norm"}, options.features.final_norm);
  fields.text({"foreground",
               "none: all patches; first: those on the side of the first component that has fewer patches at the "
               "images' borders; a number: those whose first component, scaled to 0 to 1, is above it"},
              options.foreground);
  fields.boolean({"invert", "Take the other side of the first component as foreground"}, options.invert);
  fields.number({"opacity", "Opacity of the colours over the image"}, options.opacity, {0, 1});
}

analysis::Foreground foreground_of(const PcaOptions& options) {
  using Kind = analysis::Foreground::Kind;
  const auto& [name, invert] = std::tie(options.foreground, options.invert);
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
