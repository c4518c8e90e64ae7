// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images as the input of the image encoder.
#include <array>
#include <cstdint>

#include "vitrail/image/image_view.h"
#include "vitrail/models/sam/config.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::sam {

// The input of a model: a frame of size × size pixels, and how an image gets into it.
struct InputFrame {
  int64_t size = 0;
  models::SamPreprocessing preprocessing = models::SamPreprocessing::segment_anything;

  // Height and width of an image in the frame: its long side has the frame's, or both have.
  std::array<int64_t, 2> sides(int64_t height, int64_t width) const;
  // The image as RGB of these sides, as Pillow's BILINEAR or by cubic splines.  Throws Error for an image whose short
  // side would be resized to nothing.
  image::Image resized(const image::ImageView& view) const;
  // Writes what resized() gives, normalised, with zeros on the right and below to `input` [3, size, size].
  void write(const image::Image& resized, float* input) const;
  // The logits [height, width] of a mask [h, w] at the image's size.
  Tensor image_logits(const Tensor& mask, int64_t height, int64_t width) const;
};

InputFrame input_frame(const models::SamConfig& config);

}  // namespace vitrail::sam
