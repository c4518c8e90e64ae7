// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/image_view.h"

#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/image/color_internal.h"

namespace vitrail::image {
namespace {

constexpr int64_t kMaxViewEdge = 0x7fffffff;  // so that no product of sizes overflows

// The offsets of red, green and blue in a pixel.
struct ColorOrder {
  int red, green, blue;
};

ColorOrder order_of(PixelFormat format) {
  const bool blue_first = format == PixelFormat::bgr || format == PixelFormat::bgra;
  return blue_first ? ColorOrder{2, 1, 0} : ColorOrder{0, 1, 2};
}

Image without_padding(const ImageView& view) {
  Image image = make_image(view.width(), view.height(), view.channels());
  for (int64_t y = 0; y < image.height; ++y) {
    std::memcpy(image.row(y), view.row(y), static_cast<size_t>(image.row_bytes()));
  }
  return image;
}

Image to_rgb(const ImageView& view) {
  Image image = make_image(view.width(), view.height(), 3);
  const ColorOrder order = order_of(view.format());
  const int64_t channels = view.channels();
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* from = view.row(y);
    uint8_t* to = image.row(y);
    for (int64_t x = 0; x < image.width; ++x, from += channels, to += 3) {
      to[0] = from[order.red], to[1] = from[order.green], to[2] = from[order.blue];
    }
  }
  return image;
}

}  // namespace

ImageView::ImageView(const uint8_t* pixels, int64_t width, int64_t height, PixelFormat format, int64_t stride)
    : pixels_(pixels), width_(width), height_(height), stride_(stride), format_(format) {
  if (!pixels || width < 1 || height < 1 || width > kMaxViewEdge || height > kMaxViewEdge) {
    throw Error("image view", "a pointer to pixels and sizes above 0",
                str(pixels ? "" : "a null pointer and ", width, "×", height));
  }
  if (stride == 0) stride_ = width * channels();
  if (stride_ < width * channels()) {
    throw Error("image view", str("rows at least ", width * channels(), " bytes apart"), str(stride));
  }
}

ImageView::ImageView(const Image& image)
    : pixels_(image.pixels.data()),
      width_(image.width),
      height_(image.height),
      stride_(image.row_bytes()),
      format_(image.channels == 1 ? PixelFormat::grey : PixelFormat::rgb) {
  check_image(image, "image");
}

int64_t ImageView::channels() const {
  switch (format_) {
    case PixelFormat::grey:
      return 1;
    case PixelFormat::rgb:
    case PixelFormat::bgr:
      return 3;
    case PixelFormat::rgba:
    case PixelFormat::bgra:
      break;
  }
  return 4;
}

Image to_image(const ImageView& view, ColorMode mode) {
  return to_mode(view.format() == PixelFormat::grey ? without_padding(view) : to_rgb(view), mode);
}

}  // namespace vitrail::image
