// SPDX-License-Identifier: Apache-2.0
// Decodes WebP with libwebp.  libwebp decodes still images only, so the first frame of an animation is extracted from
// the container here.
#include <webp/decode.h>

#include <cstring>
#include <optional>

#include "vitrail/base/error.h"
#include "vitrail/image/codecs_internal.h"
#include "vitrail/image/color_internal.h"
#include "vitrail/image/riff_internal.h"

namespace vitrail::image {
namespace {

int64_t little_24(Bytes bytes, size_t at) {
  return std::to_integer<int64_t>(bytes[at]) | std::to_integer<int64_t>(bytes[at + 1]) << 8 |
         std::to_integer<int64_t>(bytes[at + 2]) << 16;
}

const uint8_t* raw(Bytes bytes) { return reinterpret_cast<const uint8_t*>(bytes.data()); }

[[noreturn]] void fail(const std::string& where, const std::string& got) {
  throw Error(where, "a complete WebP image", got);
}

WebPBitstreamFeatures features_of(Bytes bytes, const std::string& where) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(raw(bytes), bytes.size(), &features);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA) fail(where, "the end of the file");
  if (status != VP8_STATUS_OK) fail(where, str("a broken header (libwebp's status ", status, ")"));
  return features;
}

// Decodes a still image into `image` at (left, top).  Alpha is dropped without changing the colours.
void decode_still(Bytes bytes, Image& image, int64_t left, int64_t top, const std::string& where) {
  const int64_t offset = top * image.row_bytes() + left * image.channels;
  const uint8_t* done = WebPDecodeRGBInto(raw(bytes), bytes.size(), image.pixels.data() + offset,
                                          image.pixels.size() - offset, static_cast<int>(image.row_bytes()));
  if (done == nullptr) fail(where, "truncated or broken data");
}

struct AnimationFrame {
  int64_t canvas_width = 0, canvas_height = 0, left = 0, top = 0, width = 0, height = 0;
  Bytes data;  // the chunks of a still image
};

// Reads the canvas size from the extended header (VP8X) and the frame from the first ANMF chunk.
AnimationFrame first_frame(Bytes bytes, const std::string& where) {
  AnimationFrame frame;
  const std::optional<Bytes> header = find_riff_chunk(bytes, "VP8X"), chunk = find_riff_chunk(bytes, "ANMF");
  if (!header || header->size() < 10 || !chunk || chunk->size() < 16) fail(where, "an animation without a frame");
  frame.canvas_width = little_24(*header, 4) + 1, frame.canvas_height = little_24(*header, 7) + 1;
  frame.left = little_24(*chunk, 0) * 2, frame.top = little_24(*chunk, 3) * 2;
  frame.width = little_24(*chunk, 6) + 1, frame.height = little_24(*chunk, 9) + 1;
  frame.data = chunk->subspan(16);
  const WebPBitstreamFeatures features = features_of(frame.data, where);
  if (features.has_animation || features.width != frame.width || features.height != frame.height ||
      frame.left + frame.width > frame.canvas_width || frame.top + frame.height > frame.canvas_height) {
    fail(where, "a frame outside its canvas");
  }
  return frame;
}

}  // namespace

Image decode_webp(Bytes bytes, const DecodeOptions& options, const std::string& where) {
  const WebPBitstreamFeatures features = features_of(bytes, where);
  check_size(features.width, features.height, options.max_pixels, where);
  constexpr int64_t kArgbBytes = 4;  // libwebp's lossless decoder has them
  Image image;
  if (features.has_animation) {
    const AnimationFrame frame = first_frame(bytes, where);
    check_size(frame.canvas_width, frame.canvas_height, options.max_pixels, where);
    reserve_pixels(where, frame.canvas_width, frame.canvas_height, kArgbBytes);
    image = make_image(frame.canvas_width, frame.canvas_height, 3);  // black around the frame
    decode_still(frame.data, image, frame.left, frame.top, where);
  } else {
    reserve_pixels(where, features.width, features.height, kArgbBytes);
    image = make_image(features.width, features.height, 3);
    decode_still(bytes, image, 0, 0, where);
  }
  return to_mode(std::move(image), options.mode);
}

}  // namespace vitrail::image
