// SPDX-License-Identifier: Apache-2.0
#pragma once
// ImageView: an 8-bit image in memory that belongs to someone else, such as the frame of a camera or of another
// library.
#include <cstdint>

#include "vitrail/image/image.h"

namespace vitrail::image {

// The bytes of a pixel, in the order of their addresses.
enum class PixelFormat : uint8_t { grey, rgb, bgr, rgba, bgra };

// Rows from top to bottom, `stride` bytes apart.  The memory must outlive the view.
class ImageView {
 public:
  // stride 0: rows without padding.  Throws Error for a null pointer, an empty image, or a stride that is too small.
  ImageView(const uint8_t* pixels, int64_t width, int64_t height, PixelFormat format, int64_t stride = 0);
  // Implicit, so that functions of views take images.  Throws Error as check_image.
  ImageView(const Image& image);

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int64_t stride() const { return stride_; }
  PixelFormat format() const { return format_; }
  int64_t channels() const;  // bytes of a pixel: 1, 3 or 4
  const uint8_t* row(int64_t y) const { return pixels_ + y * stride_; }

 private:
  const uint8_t* pixels_;
  int64_t width_, height_, stride_;
  PixelFormat format_;
};

// A copy in this colour mode: alpha is dropped, and colours become grey by Pillow's convert("L").
Image to_image(const ImageView& view, ColorMode mode);

}  // namespace vitrail::image
