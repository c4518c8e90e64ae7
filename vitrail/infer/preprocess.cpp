// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/preprocess.h"

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::infer {
namespace {

image::ProcessorSteps processor_of(const models::Preprocessing& from) {
  using Resize = image::ProcessorSteps::Resize;
  image::ProcessorSteps steps;
  steps.resize = from.resize_to ? Resize::fixed : from.resize_shortest ? Resize::shortest_edge : Resize::none;
  if (from.resize_to) steps.size = *from.resize_to;
  if (from.resize_shortest) steps.size = {*from.resize_shortest, *from.resize_shortest};
  steps.longest_edge = from.resize_longest;
  steps.crop = from.center_crop;
  steps.rescale = from.rescale_factor;
  steps.resize_floats = from.resize_floats;
  return steps;
}

}  // namespace

image::EvalTransform transform_of(const models::Preprocessing& from, const std::string& where) {
  const std::vector<std::string> missing = from.missing();
  if (!missing.empty()) {
    throw Error(where,
                "preprocessing settings in the model's configuration, or the options " + join(missing, " ") +
                    " (or --preset imagenet|inception|cifar10|mnist)",
                "none");
  }
  image::EvalTransform transform;
  transform.size = *from.input_size;
  transform.interpolation = image::filter_from_name(*from.interpolation);
  transform.mean = *from.mean;
  transform.std = *from.std;
  if (from.rule == models::ResizeRule::huggingface) {
    transform.processor = processor_of(from);
  } else {
    transform.crop_pct = *from.crop_pct;
    transform.crop_mode = image::crop_mode_from_name(from.crop_mode);
    if (from.fill_color) transform.fill_color = static_cast<uint8_t>(*from.fill_color);
  }
  return transform;
}

image::ColorMode color_mode_of(int64_t in_chans) {
  if (in_chans == 3) return image::ColorMode::rgb;
  if (in_chans == 1) return image::ColorMode::grey;
  throw Error("images", "a model of 1 or 3 input channels", str(in_chans));
}

}  // namespace vitrail::infer
