// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a picture to a model's input, as the reference evaluation pipelines do it on Pillow images: timm's
// (transforms_imagenet_eval) and Hugging Face's Pillow-based image processors (ViT, DeiT, BiT/DINOv2).
// The resized pixels are equal to theirs, and so is the normalised float32 result.
#include <array>
#include <optional>
#include <vector>

#include "vitrail/image/filter.h"
#include "vitrail/image/image.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::image {

// timm's crop_mode.  center: the shortest edge becomes size / crop_pct, then the centre is cut out; squash: both edges
// do, the aspect ratio is lost; border: the longest edge does, the rest is filled with the mean.
enum class CropMode { center, squash, border };
CropMode crop_mode_from_name(const std::string& name);

// What a Hugging Face processor is configured with (preprocessor_config.json).  It replaces timm's steps.
struct ProcessorSteps {
  enum class Resize { none, fixed, shortest_edge };
  Resize resize = Resize::fixed;
  std::array<int64_t, 2> size{224, 224};        // fixed: height, width; shortest_edge: that edge, twice
  std::optional<int64_t> longest_edge;          // with shortest_edge: the longest edge is not to exceed this
  std::optional<std::array<int64_t, 2>> crop;   // do_center_crop: height, width; black where the picture is smaller
  std::optional<double> rescale = 1.0 / 255.0;  // do_rescale
  bool normalize = true;                        // do_normalize
};

struct EvalTransform {
  std::array<int64_t, 2> size{224, 224};  // of the result: height, width
  double crop_pct = 0.875;
  CropMode crop_mode = CropMode::center;
  Filter interpolation = Filter::bicubic;
  std::vector<double> mean{0.485, 0.456, 0.406}, std{0.229, 0.224, 0.225};  // one per channel, or one for all
  std::optional<ProcessorSteps> processor;  // given: size, crop_pct and crop_mode above are not used
};

// Height and width of what the transform makes of a picture of this size.
std::array<int64_t, 2> output_size(const EvalTransform& transform, int64_t width, int64_t height);

// Resized, cropped and padded, still 8 bits: the picture that the model sees.
// Throws Error for a configuration that makes no sense and for a picture that would shrink to nothing.
Image apply_geometry(const Image& source, const EvalTransform& transform);

// Writes the normalised picture to out [channels, height, width]; height and width are output_size().
void apply_into(const Image& source, const EvalTransform& transform, float* out);
Tensor apply(const Image& source, const EvalTransform& transform);  // [channels, height, width], f32

}  // namespace vitrail::image
