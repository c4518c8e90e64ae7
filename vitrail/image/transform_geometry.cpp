// SPDX-License-Identifier: Apache-2.0
// Sizes and offsets with the rounding of the reference that each function names.
#include "vitrail/image/transform_geometry_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"

namespace vitrail::image {
namespace {

// Python's round(): halves to the even integer, the default floating-point rounding mode.
int64_t round_half_even(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

int64_t half(int64_t difference) { return round_half_even(static_cast<double>(difference) / 2.0); }

struct Size {
  int64_t height = 0, width = 0;
};

// torchvision's Resize(int) and Hugging Face: the longer edge is truncated to an integer.
Size shortest_edge(const Size& source, int64_t shortest) {
  const auto longer = [&](int64_t longer_edge, int64_t shorter_edge) {
    return static_cast<int64_t>(static_cast<double>(shortest * longer_edge) / static_cast<double>(shorter_edge));
  };
  if (source.width <= source.height) return {longer(source.height, source.width), shortest};
  return {shortest, longer(source.width, source.height)};
}

// Hugging Face's get_size_with_aspect_ratio: as above, but smaller if the longest edge would exceed its limit.
Size shortest_and_longest_edge(const Size& source, int64_t shortest, int64_t longest) {
  const double min_edge = static_cast<double>(std::min(source.height, source.width));
  const double max_edge = static_cast<double>(std::max(source.height, source.width));
  double exact = static_cast<double>(shortest);
  if (max_edge / min_edge * exact > static_cast<double>(longest)) {
    exact = static_cast<double>(longest) * min_edge / max_edge;
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

// timm's ResizeKeepRatio: the largest size inside the target (longest), or the smallest size that covers it.
Size keep_ratio(const Size& source, const Size& target, bool longest) {
  const double by_height = static_cast<double>(source.height) / static_cast<double>(target.height);
  const double by_width = static_cast<double>(source.width) / static_cast<double>(target.width);
  const double ratio = longest ? std::max(by_height, by_width) : std::min(by_height, by_width);
  return {round_half_even(static_cast<double>(source.height) / ratio),
          round_half_even(static_cast<double>(source.width) / ratio)};
}

// One axis of torchvision's center_crop: pads to the crop's length if shorter (the larger half at the end), then crops.
int64_t torchvision_offset(int64_t resized, int64_t crop) {
  if (crop > resized) return -((crop - resized) / 2);
  return half(resized - crop);
}

// One axis of Hugging Face's center_crop: half the difference, rounded down, for cropping and padding.
int64_t processor_offset(int64_t resized, int64_t crop) { return (resized - crop) >> 1; }

// Larger than the input of any model; products of two such sizes do not overflow.
constexpr int64_t kMaxEdge = 1 << 20;

void check_edges(const char* what, const std::array<int64_t, 2>& size) {
  if (std::min(size[0], size[1]) < 1 || std::max(size[0], size[1]) > kMaxEdge) {
    throw Error("image transform", str(what, " from 1 to ", kMaxEdge), str(size[0], "×", size[1]));
  }
}

Size timm_resized(const EvalTransform& transform, const Size& source) {
  check_edges("a size", transform.size);
  // A smaller crop_pct would enlarge the image a thousandfold.
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

ResizeAndCrop processor_plan(const ProcessorSteps& steps, const Size& source) {
  const Size resized = processor_resized(steps, source);
  ResizeAndCrop plan{resized.width, resized.height, 0, 0, resized.width, resized.height};
  if (steps.crop) {
    check_edges("a crop", *steps.crop);
    plan.height = (*steps.crop)[0], plan.width = (*steps.crop)[1];
    plan.top = processor_offset(resized.height, plan.height);
    plan.left = processor_offset(resized.width, plan.width);
  }
  return plan;
}

}  // namespace

ResizeAndCrop resize_and_crop_of(const EvalTransform& transform, int64_t width, int64_t height) {
  if (width < 1 || height < 1) throw Error("image transform", "an image with pixels", str(width, "×", height));
  const Size source{height, width};
  ResizeAndCrop plan;
  if (transform.processor) {
    plan = processor_plan(*transform.processor, source);
  } else {
    const Size resized = timm_resized(transform, source);
    const auto [crop_height, crop_width] = transform.size;
    plan = {resized.width,
            resized.height,
            torchvision_offset(resized.width, crop_width),
            torchvision_offset(resized.height, crop_height),
            crop_width,
            crop_height};
  }
  if (plan.resized_width < 1 || plan.resized_height < 1) {
    throw Error("image transform", "an image of at least one pixel after resizing",
                str(width, "×", height, ", resized to ", plan.resized_width, "×", plan.resized_height));
  }
  return plan;
}

std::vector<uint8_t> padding_of(const EvalTransform& transform, int64_t channels) {
  std::vector<uint8_t> fill(static_cast<size_t>(channels), 0);
  if (transform.processor || transform.crop_mode != CropMode::border) return fill;
  if (transform.fill_color) return std::vector<uint8_t>(fill.size(), *transform.fill_color);
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = transform.mean[transform.mean.size() == 1 ? 0 : c];
    fill[c] = static_cast<uint8_t>(std::clamp<int64_t>(round_half_even(255 * mean), 0, 255));
  }
  return fill;
}

}  // namespace vitrail::image
