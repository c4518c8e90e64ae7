// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helpers of the image tests: golden files, and comparisons that report the largest difference.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "vitrail/image/image.h"

namespace vitrail::image {

inline std::vector<uint8_t> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A golden file of tools/golden/image_*.py with its raw data.
struct Golden {
  explicit Golden(const std::string& name)
      : index(nlohmann::json::parse(std::ifstream(testing::fixture("image/" + name + ".json")))),
        raw(read_bytes(testing::fixture("image/" + name + ".raw"))) {}

  Image image(const nlohmann::json& entry, int64_t channels) const {
    Image result = make_image(entry.at("width"), entry.at("height"), channels);
    std::memcpy(result.pixels.data(), raw.data() + entry.at("offset").get<size_t>(), result.pixels.size());
    return result;
  }

  std::vector<float> floats(const nlohmann::json& entry, size_t count) const {
    std::vector<float> result(count);
    std::memcpy(result.data(), raw.data() + entry.at("offset").get<size_t>(), count * sizeof(float));
    return result;
  }

  nlohmann::json index;
  std::vector<uint8_t> raw;
};

inline ::testing::AssertionResult same_pixels(const Image& got, const Image& expected) {
  if (got.width != expected.width || got.height != expected.height || got.channels != expected.channels) {
    return ::testing::AssertionFailure() << "got " << got.width << "×" << got.height << "×" << got.channels
                                         << ", expected " << expected.width << "×" << expected.height << "×"
                                         << expected.channels;
  }
  size_t different = 0, worst = 0;
  const auto distance = [&](size_t i) { return std::abs(int{got.pixels[i]} - int{expected.pixels[i]}); };
  for (size_t i = 0; i < expected.pixels.size(); ++i) {
    if (got.pixels[i] != expected.pixels[i]) ++different;
    if (distance(i) > distance(worst)) worst = i;
  }
  if (different == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << different << " of " << expected.pixels.size() << " bytes differ, most at "
                                       << worst << ": got " << int{got.pixels[worst]} << ", expected "
                                       << int{expected.pixels[worst]};
}

}  // namespace vitrail::image
