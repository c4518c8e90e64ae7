// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "vitrail/c_api/handles_internal.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/yuv.h"

namespace vitrail::c_api {
namespace {

image::DecodeOptions decode_options(const vitrail_model* model, int apply_exif) {
  return {.mode = model ? model->loaded->color_mode() : image::ColorMode::rgb, .apply_exif = apply_exif != 0};
}

vitrail_image* new_image(image::Image pixels) {
  const image::ImageView view(pixels);  // stays valid: a moved vector keeps its memory
  return new vitrail_image{std::move(pixels), view};
}

image::PixelFormat format_of(vitrail_pixel_format format) {
  switch (format) {
    case VITRAIL_GREY:
      return image::PixelFormat::grey;
    case VITRAIL_RGB:
      return image::PixelFormat::rgb;
    case VITRAIL_BGR:
      return image::PixelFormat::bgr;
    case VITRAIL_RGBA:
      return image::PixelFormat::rgba;
    case VITRAIL_BGRA:
      return image::PixelFormat::bgra;
  }
  throw Error("format", "a vitrail_pixel_format", str(static_cast<int>(format)));
}

image::YuvFrame yuv_frame(const vitrail_yuv_frame* given) {
  required(given, "frame");
  const vitrail_yuv_frame frame = options_or(given, VITRAIL_YUV_FRAME_INIT, "vitrail_yuv_frame");
  int format = 0;  // in C, an enumeration may have any value
  static_assert(sizeof format == sizeof frame.format);
  std::memcpy(&format, &frame.format, sizeof format);
  if (format != VITRAIL_NV12 && format != VITRAIL_YUYV) throw Error("format", "a vitrail_yuv_format", str(format));
  image::YuvFrame result{
      .format = format == VITRAIL_NV12 ? image::YuvFormat::nv12 : image::YuvFormat::yuyv,
      .width = frame.width,
      .height = frame.height,
      .pixels = {&required(frame.pixels, "pixels"), frame.size},
      .stride = frame.stride,
      .chroma_stride = frame.chroma_stride,
      .matrix = frame.bt709 ? image::YuvMatrix::bt709 : image::YuvMatrix::bt601,
      .full_range = frame.full_range != 0,
  };
  if (frame.chroma) result.chroma = {frame.chroma, frame.chroma_size};
  return result;
}

// Throws Error if the last pixel of the view is beyond `size` bytes.
void check_extent(const image::ImageView& view, size_t size) {
  const auto width = static_cast<size_t>(view.width() * view.channels());
  const auto rows = static_cast<size_t>(view.height() - 1), stride = static_cast<size_t>(view.stride());
  if (rows > 0 && stride > (SIZE_MAX - width) / rows) throw Error("stride", "rows inside of memory", str(stride));
  if (rows * stride + width > size) {
    throw Error("pixels", str(rows * stride + width, " bytes"), str(size));
  }
}

}  // namespace

std::vector<image::ImageView> views_of(const vitrail_image* const* images, size_t count) {
  if (count > 0) required(images, "images");
  std::vector<image::ImageView> views;
  for (size_t i = 0; i < count; ++i) views.push_back(required(images[i], "images").view);
  return views;
}

}  // namespace vitrail::c_api

using vitrail::c_api::guarded;
using vitrail::c_api::required;

extern "C" {

vitrail_status* vitrail_image_read(const vitrail_model* model, const char* path, int apply_exif,
                                   vitrail_image** image) {
  return guarded([&] {
    using namespace vitrail::c_api;
    vitrail_image*& result = required(image, "image");
    result = new_image(vitrail::image::read_image(&required(path, "path"), decode_options(model, apply_exif)));
  });
}

vitrail_status* vitrail_image_decode(const vitrail_model* model, const void* bytes, size_t size, int apply_exif,
                                     vitrail_image** image) {
  return guarded([&] {
    using namespace vitrail::c_api;
    if (!bytes) throw vitrail::Error("bytes", "a pointer", "NULL");
    vitrail_image*& result = required(image, "image");
    result = new_image(vitrail::image::decode(std::span(static_cast<const std::byte*>(bytes), size),
                                              decode_options(model, apply_exif), "image"));
  });
}

vitrail_status* vitrail_image_view(const uint8_t* pixels, size_t size, int64_t width, int64_t height, int64_t stride,
                                   vitrail_pixel_format format, vitrail_image** image) {
  return guarded([&] {
    const vitrail::image::ImageView view(pixels, width, height, vitrail::c_api::format_of(format), stride);
    vitrail::c_api::check_extent(view, size);
    vitrail_image*& result = required(image, "image");
    result = new vitrail_image{std::nullopt, view};
  });
}

vitrail_status* vitrail_image_from_yuv(const vitrail_yuv_frame* frame, vitrail_image** image) {
  return guarded([&] {
    using namespace vitrail::c_api;
    vitrail_image*& result = required(image, "image");
    result = new_image(vitrail::image::to_rgb(yuv_frame(frame)));
  });
}

int64_t vitrail_image_width(const vitrail_image* image) { return image->view.width(); }
int64_t vitrail_image_height(const vitrail_image* image) { return image->view.height(); }
void vitrail_image_free(vitrail_image* image) { delete image; }

}  // extern "C"
