// SPDX-License-Identifier: Apache-2.0
// Photographs in the shared assets, from various cameras and programs.
#include <zlib.h>

#include "tests/image/support.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/transform.h"

namespace vitrail::image {
namespace {

uint32_t checksum(const void* data, size_t bytes) {
  return static_cast<uint32_t>(crc32(0, static_cast<const Bytef*>(data), static_cast<uInt>(bytes)));
}

TEST(Photos, DecodeAndTransformToTheBytesOfPillowAndTimm) {
  VITRAIL_NEED_ASSETS(folder);
  const auto index = nlohmann::json::parse(std::ifstream(testing::fixture("image/photos.json")));
  EvalTransform transform;
  transform.crop_pct = 0.9;
  for (const auto& entry : index.at("cases")) {
    const std::filesystem::path path = folder / "images" / entry.at("file").get<std::string>();
    const Image rgb = read_image(path);
    ASSERT_EQ(rgb.width, entry.at("width")) << path;
    ASSERT_EQ(rgb.height, entry.at("height")) << path;
    EXPECT_EQ(checksum(rgb.pixels.data(), rgb.pixels.size()), entry.at("rgb")) << path;
    DecodeOptions grey_options;
    grey_options.mode = ColorMode::grey;
    const Image grey = read_image(path, grey_options);
    EXPECT_EQ(checksum(grey.pixels.data(), grey.pixels.size()), entry.at("grey")) << path;
    const Tensor input = apply(rgb, transform);
    EXPECT_EQ(checksum(input.raw(), static_cast<size_t>(input.numel()) * sizeof(float)), entry.at("timm")) << path;
  }
}

}  // namespace
}  // namespace vitrail::image
