// SPDX-License-Identifier: Apache-2.0
#pragma once
// The evaluation transform: from an image to a model's input, as timm's transforms_imagenet_eval and Hugging Face's
// Pillow-based image processors (ViT, DeiT, BiT/DINOv2) compute it.  The resized pixels and the normalised float32
// values equal theirs.
#include <array>
#include <optional>
#include <vector>

#include "vitrail/image/filter.h"
#include "vitrail/image/image_view.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::image {

// timm's crop_mode.  center: the shortest edge is resized to size / crop_pct, then the centre is cropped; squash: both
// edges are resized, ignoring the aspect ratio; border: the longest edge is resized, then padded.
enum class CropMode { center, squash, border };
CropMode crop_mode_from_name(const std::string& name);  // throws Error for an unknown name

// The configuration of a Hugging Face processor (preprocessor_config.json), used instead of timm's steps.
struct ProcessorSteps {
  enum class Resize { none, fixed, shortest_edge };
  Resize resize = Resize::fixed;
  std::array<int64_t, 2> size{224, 224};         // fixed: height, width; shortest_edge: that edge, twice
  std::optional<int64_t> longest_edge{};         // with shortest_edge: upper limit of the longest edge
  std::optional<std::array<int64_t, 2>> crop{};  // do_center_crop: height, width; smaller images are padded with black
  double rescale = 1.0 / 255.0;                  // rescale_factor; 1 without do_rescale
  // Resizes the rescaled floats instead of bytes, as DINOv3's processor; with Resize::fixed and without crop.
  bool resize_floats = false;
  bool antialias = true;  // false, with resize_floats and bilinear: two samples along each axis, as torch's interpolate
};

struct EvalTransform {
  std::array<int64_t, 2> size{224, 224};  // height and width of the result
  double crop_pct = 0.875;
  CropMode crop_mode = CropMode::center;
  std::optional<uint8_t> fill_color{};  // border: each channel of the padding; unset: the mean, as timm
  Filter interpolation = Filter::bicubic;
  std::vector<double> mean{0.485, 0.456, 0.406}, std{0.229, 0.224, 0.225};  // one per channel, or one for all
  std::optional<ProcessorSteps> processor{};  // if set, size, crop_pct and crop_mode above are ignored
};

// Height and width of the transform's result for an image of this size.
std::array<int64_t, 2> output_size(const EvalTransform& transform, int64_t width, int64_t height);

// The resized, cropped and padded image, 8 bits per channel: the pixels that the model sees.  Grey images stay grey,
// all others give red, green, blue; the source is copied only if it has alpha, which is dropped. Throws Error for an
// invalid configuration, and if the image would be resized to zero pixels.
Image apply_geometry(const ImageView& source, const EvalTransform& transform);

// A rectangle in pixels with fractions, left ≤ x < right.
struct Region {
  double left = 0, top = 0, right = 0, bottom = 0;
};

// The part of an image of this size that the model sees.  It extends beyond the image where the transform pads.
Region visible_region(const EvalTransform& transform, int64_t width, int64_t height);

// The normalised image, written to out [channels, height, width] of output_size().
void apply_into(const ImageView& source, const EvalTransform& transform, float* out);
Tensor apply(const ImageView& source, const EvalTransform& transform);  // [channels, height, width], f32

}  // namespace vitrail::image
