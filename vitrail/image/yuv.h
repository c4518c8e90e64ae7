// SPDX-License-Identifier: Apache-2.0
#pragma once
// Frames of cameras and video decoders: a brightness Y for each pixel, the colours U and V for several.
#include <cstdint>
#include <span>

#include "vitrail/image/image.h"

namespace vitrail::image {

// The bytes of a frame of 8-bit samples, rows from top to bottom.
enum class YuvFormat : uint8_t {
  nv12,  // a plane of Y, and a plane of U and V for 2×2 pixels: U V U V …
  yuyv   // Y U Y V …: U and V are for two pixels of a row; also called YUY2
};

// The standard that relates Y, U and V to red, green and blue: ITU-R BT.601 or BT.709.
enum class YuvMatrix : uint8_t { bt601, bt709 };

// In an odd width or height, the last column or row has U and V of its own.
struct YuvFrame {
  YuvFormat format = YuvFormat::nv12;
  int64_t width = 0, height = 0;
  std::span<const uint8_t> pixels = {};  // the plane of Y, or all of YUYV
  int64_t stride = 0;                    // bytes from row to row; 0: rows without padding
  std::span<const uint8_t> chroma = {};  // NV12's plane of U and V; empty: behind the `height` rows of Y, in `pixels`
  int64_t chroma_stride = 0;             // 0: as `stride`, made even
  YuvMatrix matrix = YuvMatrix::bt601;
  bool full_range = false;  // values from 0 to 255; otherwise Y is from 16 to 235, and U and V from 16 to 240
};

// A copy in RGB, with the U and V of a pixel as they are, as OpenCV's cvtColor.  Throws Error for a size below 1, and
// for planes that are too small.
Image to_rgb(const YuvFrame& frame);

}  // namespace vitrail::image
