// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/prompt_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/sam/prompt_file.h"

namespace vitrail::sam {
namespace {

// Finite numbers with commas between them; none for other text.
std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  const char *at = text.data(), *const end = at + text.size();
  while (true) {
    double number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || !std::isfinite(number)) return {};
    numbers.push_back(number);
    if (next == end) return numbers;
    if (*next != ',') return {};
    at = next + 1;
  }
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

}  // namespace

Point parse_point(std::string_view text, const std::string& where) {
  const std::vector<double> numbers = numbers_of(text);
  const bool labelled = numbers.size() == 3 && (numbers[2] == 0 || numbers[2] == 1);
  if (numbers.size() != 2 && !labelled) {
    throw Error(where, "X,Y or X,Y,LABEL in pixels, with the label 1 (in the object) or 0 (outside it)", quoted(text));
  }
  return {numbers[0], numbers[1], labelled ? static_cast<int>(numbers[2]) : 1};
}

Box parse_box(std::string_view text, const std::string& where) {
  const std::vector<double> numbers = numbers_of(text);
  if (numbers.size() != 4)
    throw Error(where, "X0,Y0,X1,Y1 in pixels, the upper left and the lower right corner", quoted(text));
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

BinaryMask mask_of_image(const image::Image& grey, const std::string& where) {
  BinaryMask mask{grey.width, grey.height, grey.pixels};
  const uint8_t inside = *std::ranges::max_element(mask.pixels);
  for (uint8_t& pixel : mask.pixels) {
    if (pixel != 0 && pixel != inside)
      throw Error(where, "a mask with two values, 0 outside the object", "an image of several values");
    pixel = pixel != 0 ? 1 : 0;
  }
  if (inside == 0) throw Error(where, "a mask with pixels in the object", "none");
  return mask;
}

Tensor logits_of_image_mask(const BinaryMask& mask, int64_t width, int64_t height, int64_t size) {
  if (mask.width == width && mask.height == height) return logits_of(mask, size);
  throw Error("mask", str("the image's size ", width, "×", height), str(mask.width, "×", mask.height));
}

}  // namespace vitrail::sam
