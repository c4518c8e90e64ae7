// SPDX-License-Identifier: Apache-2.0
// The references round in several ways; each function here says which one it follows.
#include "vitrail/image/transform_geometry_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"

namespace vitrail::image {
namespace {

// Python's round(): to the nearest integer, halves to the even one (the default floating-point mode).
int64_t round_half_even(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

int64_t half(int64_t difference) { return round_half_even(static_cast<double>(difference) / 2.0); }

struct Size {
  int64_t height = 0, width = 0;
};

// torchvision's Resize(int), which Hugging Face follows: the longer edge is cut to an integer.
Size shortest_edge(const Size& source, int64_t shortest) {
  const auto longer = [&](int64_t longer_edge, int64_t shorter_edge) {
    return static_cast<int64_t>(static_cast<double>(shortest * longer_edge) / static_cast<double>(shorter_edge));
  };
  if (source.width <= source.height) return {longer(source.height, source.width), shortest};
  return {shortest, longer(source.width, source.height)};
}

// Hugging Face's get_size_with_aspect_ratio: as above, smaller where the longest edge would exceed its limit.
Size shortest_and_longest_edge(const Size& source, int64_t shortest, int64_t longest) {
  const double least = static_cast<double>(std::min(source.height, source.width));
  const double most = static_cast<double>(std::max(source.height, source.width));
  double exact = static_cast<double>(shortest);
  if (most / least * exact > static_cast<double>(longest)) {
    exact = static_cast<double>(longest) * least / most;
    shortest = round_half_even(exact);
  }
  if (std::min(source.height, source.width) == shortest) return source;
  if (source.width < source.height) {
    return {static_cast<int64_t>(exact * static_cast<double>(source.height) / static_cast<double>(source.width)),
            shortest};
  }
  return {shortest,
          static_cast<int64_t>(exact * static_cast<double>(source.width) / static_cast<double>(source.height))};
}

// timm's ResizeKeepRatio: the edge that fits first (longest = false) or last reaches its target.
Size keep_ratio(const Size& source, const Size& target, bool longest) {
  const double by_height = static_cast<double>(source.height) / static_cast<double>(target.height);
  const double by_width = static_cast<double>(source.width) / static_cast<double>(target.width);
  const double ratio = longest ? std::max(by_height, by_width) : std::min(by_height, by_width);
  return {round_half_even(static_cast<double>(source.height) / ratio),
          round_half_even(static_cast<double>(source.width) / ratio)};
}

// One axis of torchvision's center_crop: pad to the crop's length if shorter (the larger half after), then cut.
int64_t torchvision_offset(int64_t resized, int64_t crop) {
  if (crop > resized) return -((crop - resized) / 2);
  return half(resized - crop);
}

// One axis of Hugging Face's center_crop: half the difference, rounded down, whether it cuts or pads.
int64_t processor_offset(int64_t resized, int64_t crop) { return (resized - crop) >> 1; }

// No model looks at more, and sizes up to this can be multiplied without care.
constexpr int64_t kMaxEdge = 1 << 20;

void check_edges(const char* what, const std::array<int64_t, 2>& size) {
  if (std::min(size[0], size[1]) < 1 || std::max(size[0], size[1]) > kMaxEdge) {
    throw Error("image transform", str(what, " from 1 to ", kMaxEdge), str(size[0], "×", size[1]));
  }
}

Size timm_resized(const EvalTransform& transform, const Size& source) {
  check_edges("a size", transform.size);
  // Below a thousandth the picture would be enlarged a thousandfold to show its middle.
  if (!(transform.crop_pct >= 1e-3)) throw Error("image transform", "a crop_pct above 0.001", str(transform.crop_pct));
  const auto scaled = [&](int64_t edge) {
    return static_cast<int64_t>(std::floor(static_cast<double>(edge) / transform.crop_pct));
  };
  const Size target{scaled(transform.size[0]), scaled(transform.size[1])};
  switch (transform.crop_mode) {
    case CropMode::squash:
      return target;
    case CropMode::border:
      return keep_ratio(source, target, true);
    case CropMode::center:
      break;
  }
  return target.height == target.width ? shortest_edge(source, target.height) : keep_ratio(source, target, false);
}

Size processor_resized(const ProcessorSteps& steps, const Size& source) {
  if (steps.resize != ProcessorSteps::Resize::none) check_edges("a size", steps.size);
  switch (steps.resize) {
    case ProcessorSteps::Resize::none:
      return source;
    case ProcessorSteps::Resize::fixed:
      return {steps.size[0], steps.size[1]};
    case ProcessorSteps::Resize::shortest_edge:
      break;
  }
  if (steps.longest_edge) return shortest_and_longest_edge(source, steps.size[0], *steps.longest_edge);
  return shortest_edge(source, steps.size[0]);
}

Frame processor_frame(const ProcessorSteps& steps, const Size& source) {
  const Size resized = processor_resized(steps, source);
  Frame frame{resized.width, resized.height, 0, 0, resized.width, resized.height};
  if (steps.crop) {
    check_edges("a crop", *steps.crop);
    frame.height = (*steps.crop)[0], frame.width = (*steps.crop)[1];
    frame.top = processor_offset(resized.height, frame.height);
    frame.left = processor_offset(resized.width, frame.width);
  }
  return frame;
}

}  // namespace

Frame frame_of(const EvalTransform& transform, int64_t width, int64_t height) {
  if (width < 1 || height < 1) throw Error("image transform", "an image with pixels", str(width, "×", height));
  const Size source{height, width};
  Frame frame;
  if (transform.processor) {
    frame = processor_frame(*transform.processor, source);
  } else {
    const Size resized = timm_resized(transform, source);
    const auto [crop_height, crop_width] = transform.size;
    frame = {resized.width,
             resized.height,
             torchvision_offset(resized.width, crop_width),
             torchvision_offset(resized.height, crop_height),
             crop_width,
             crop_height};
  }
  if (frame.resized_width < 1 || frame.resized_height < 1) {
    throw Error("image transform", "an image that keeps at least one pixel when resized",
                str(width, "×", height, ", which becomes ", frame.resized_width, "×", frame.resized_height));
  }
  return frame;
}

std::vector<uint8_t> fill_of(const EvalTransform& transform, int64_t channels) {
  std::vector<uint8_t> fill(static_cast<size_t>(channels), 0);
  if (transform.processor || transform.crop_mode != CropMode::border) return fill;
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = transform.mean[transform.mean.size() == 1 ? 0 : c];
    fill[c] = static_cast<uint8_t>(std::clamp<int64_t>(round_half_even(255 * mean), 0, 255));
  }
  return fill;
}

}  // namespace vitrail::image
