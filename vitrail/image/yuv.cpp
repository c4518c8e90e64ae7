// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/yuv.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/text.h"

namespace vitrail::image {
namespace {

// So that no product of sizes overflows.
constexpr int64_t kMaxFrameEdge = 0x7fffffff, kMaxFrameStride = int64_t{1} << 40;
constexpr int kFractionBits = 16;

// What a unit of Y, U and V adds to red, green and blue, in fixed point.
struct YuvWeights {
  int black, y, v_red, u_green, v_green, u_blue;
};

// Red and blue have the shares kr and kb of Y (BT.601-7, section 2.5.1; BT.709-6, section 3.2).
YuvWeights weights_of(const YuvFrame& frame) {
  const bool hd = frame.matrix == YuvMatrix::bt709;
  const double kr = hd ? 0.2126 : 0.299, kb = hd ? 0.0722 : 0.114, kg = 1 - kr - kb;
  const double y = frame.full_range ? 1 : 255.0 / 219, c = frame.full_range ? 1 : 255.0 / 224;
  const auto fixed = [](double weight) { return static_cast<int>(std::lround(weight * (1 << kFractionBits))); };
  return {.black = frame.full_range ? 0 : 16,
          .y = fixed(y),
          .v_red = fixed(c * 2 * (1 - kr)),
          .u_green = fixed(-c * 2 * kb * (1 - kb) / kg),
          .v_green = fixed(-c * 2 * kr * (1 - kr) / kg),
          .u_blue = fixed(c * 2 * (1 - kb))};
}

uint8_t rounded_byte(int fixed) {
  return static_cast<uint8_t>(std::clamp((fixed + (1 << (kFractionBits - 1))) >> kFractionBits, 0, 255));
}

// Values of Y below black count as black, as in OpenCV.
void write_pixel(const YuvWeights& weights, int y, int u, int v, uint8_t* rgb) {
  const int grey = weights.y * std::max(y - weights.black, 0);
  u -= 128, v -= 128;
  rgb[0] = rounded_byte(grey + weights.v_red * v);
  rgb[1] = rounded_byte(grey + weights.u_green * u + weights.v_green * v);
  rgb[2] = rounded_byte(grey + weights.u_blue * u);
}

// Rows of a frame's plane, `stride` bytes apart.
struct Plane {
  std::span<const uint8_t> bytes;
  int64_t stride;
  const uint8_t* row(int64_t y) const { return bytes.data() + y * stride; }
};

Plane plane_of(const char* name, std::span<const uint8_t> bytes, int64_t rows, int64_t row_bytes, int64_t stride) {
  const std::string where = str("yuv frame: ", name);
  if (stride < row_bytes || stride > kMaxFrameStride) {
    throw Error(where, str("rows at least ", row_bytes, " bytes apart"), str(stride));
  }
  const int64_t size = std::ssize(bytes);
  if (size < row_bytes || (rows > 1 && stride > (size - row_bytes) / (rows - 1))) {
    throw Error(where, str(counted(rows, "row"), " of ", row_bytes, " bytes, ", stride, " bytes apart"),
                counted(size, "byte"));
  }
  return {bytes, stride};
}

Image nv12_to_rgb(const YuvFrame& frame, const YuvWeights& weights) {
  const int64_t chroma_rows = (frame.height + 1) / 2, chroma_bytes = (frame.width + 1) / 2 * 2;
  const int64_t stride = frame.stride == 0 ? frame.width : frame.stride;
  const Plane luma = plane_of("pixels", frame.pixels, frame.height, frame.width, stride);
  std::span<const uint8_t> behind = frame.pixels.subspan(
      std::min(static_cast<size_t>(frame.height) * static_cast<size_t>(stride), frame.pixels.size()));
  const Plane chroma = plane_of("chroma", frame.chroma.empty() ? behind : frame.chroma, chroma_rows, chroma_bytes,
                                frame.chroma_stride == 0 ? stride + stride % 2 : frame.chroma_stride);
  Image image = make_image(frame.width, frame.height, 3);
  for (int64_t y = 0; y < frame.height; ++y) {
    const uint8_t* const from = luma.row(y);
    const uint8_t* const colors = chroma.row(y / 2);
    uint8_t* to = image.row(y);
    for (int64_t x = 0; x < frame.width; ++x, to += 3) {
      const uint8_t* const uv = colors + x / 2 * 2;
      write_pixel(weights, from[x], uv[0], uv[1], to);
    }
  }
  return image;
}

Image yuyv_to_rgb(const YuvFrame& frame, const YuvWeights& weights) {
  const int64_t row_bytes = (frame.width + 1) / 2 * 4;
  const Plane pairs =
      plane_of("pixels", frame.pixels, frame.height, row_bytes, frame.stride == 0 ? row_bytes : frame.stride);
  Image image = make_image(frame.width, frame.height, 3);
  for (int64_t y = 0; y < frame.height; ++y) {
    const uint8_t* const from = pairs.row(y);
    uint8_t* to = image.row(y);
    for (int64_t x = 0; x < frame.width; ++x, to += 3) {
      const uint8_t* const pair = from + x / 2 * 4;
      write_pixel(weights, from[2 * x], pair[1], pair[3], to);
    }
  }
  return image;
}

}  // namespace

Image to_rgb(const YuvFrame& frame) {
  if (frame.width < 1 || frame.height < 1 || frame.width > kMaxFrameEdge || frame.height > kMaxFrameEdge) {
    throw Error("yuv frame", "sizes above 0", str(frame.width, "×", frame.height));
  }
  const YuvWeights weights = weights_of(frame);
  return frame.format == YuvFormat::nv12 ? nv12_to_rgb(frame, weights) : yuyv_to_rgb(frame, weights);
}

}  // namespace vitrail::image
