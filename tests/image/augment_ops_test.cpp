// SPDX-License-Identifier: Apache-2.0
// Point operations, enhancements, affine maps and crops against Pillow and torchvision.
#include <zlib.h>

#include <map>

#include "tests/image/support.h"
#include "vitrail/base/error.h"
#include "vitrail/image/affine_internal.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/image/enhance_internal.h"
#include "vitrail/image/gaussian_blur_internal.h"
#include "vitrail/image/point_operations_internal.h"

namespace vitrail::image {
namespace {

using Arguments = std::vector<double>;
using Operation = std::function<Image(Image, const Arguments&, const Fill&)>;

AffineMatrix matrix_of(const Arguments& a) { return {a[0], a[1], a[2], a[3], a[4], a[5]}; }

// Wraps an operation that works in place.
template <class Run>
Operation in_place(Run run) {
  return [run](Image image, const Arguments& a, const Fill&) {
    run(image, a);
    return image;
  };
}

Operation operation_named(const std::string& name) {
  static const std::map<std::string, Operation> table{
      {"brightness", in_place([](Image& i, const Arguments& a) { adjust_brightness(i, a[0]); })},
      {"contrast", in_place([](Image& i, const Arguments& a) { adjust_contrast(i, a[0]); })},
      {"color", in_place([](Image& i, const Arguments& a) { adjust_color(i, a[0]); })},
      {"sharpness", in_place([](Image& i, const Arguments& a) { adjust_sharpness(i, a[0]); })},
      {"hue", in_place([](Image& i, const Arguments& a) { adjust_hue(i, a[0]); })},
      {"blur", in_place([](Image& i, const Arguments& a) { gaussian_blur(i, a[0]); })},
      {"autocontrast", in_place([](Image& i, const Arguments&) { autocontrast(i); })},
      {"equalize", in_place([](Image& i, const Arguments&) { equalize(i); })},
      {"invert", in_place([](Image& i, const Arguments&) { invert(i); })},
      {"mirror", in_place([](Image& i, const Arguments&) { mirror(i); })},
      {"posterize", in_place([](Image& i, const Arguments& a) { posterize(i, static_cast<int>(a[0])); })},
      {"solarize", in_place([](Image& i, const Arguments& a) { solarize(i, a[0]); })},
      {"solarize_add",
       in_place([](Image& i, const Arguments& a) { solarize_add(i, static_cast<int>(a[0]), static_cast<int>(a[1])); })},
  };
  const size_t space = name.find(' ');
  if (space == name.npos) return table.at(name);
  const std::string word = name.substr(space + 1);
  if (name.starts_with("crop")) {
    const Padding padding = word == "reflect" ? Padding::reflect : Padding::constant;
    return [padding](Image image, const Arguments& a, const Fill& fill) {
      const Window window{static_cast<int64_t>(a[0]), static_cast<int64_t>(a[1]), image.width, image.height};
      return crop(image, window, padding, fill);
    };
  }
  const Filter filter = filter_from_name(word);
  return [name, filter](Image image, const Arguments& a, const Fill& fill) {
    if (name.starts_with("affine")) return affine(image, matrix_of(a), filter, fill);
    if (name.starts_with("rotate")) return rotate(image, a[0], filter, fill);
    const AffineParts parts{.degrees = a[0], .shift_x = a[1], .shift_y = a[2], .scale = a[3]};
    return affine(image, affine_matrix(parts, image.width, image.height), filter, fill);
  };
}

TEST(AugmentOps, EqualPillowOnOddSizesInColourAndGrey) {
  const Golden golden("augment");
  for (const auto& entry : golden.index.at("cases")) {
    const auto& source = golden.index.at("sources").at(entry[0].get<std::string>());
    const int64_t channels = source.at("channels");
    Fill fill{};
    const auto& values = golden.index.at("fill").at(std::to_string(channels));
    for (size_t c = 0; c < values.size(); ++c) fill[c] = values[c];
    const Image result = operation_named(entry[1])(golden.image(source, channels), entry[2].get<Arguments>(), fill);
    ASSERT_EQ(static_cast<int64_t>(result.pixels.size()), result.height * result.row_bytes());
    const auto sum = crc32(0, result.pixels.data(), static_cast<uInt>(result.pixels.size()));
    EXPECT_EQ(sum, entry[3].get<uLong>()) << entry.dump();
  }
}

TEST(AugmentOps, PosterizeToZeroBitsGivesBlack) {
  Image image{2, 1, 1, {255, 7}};
  posterize(image, 0);
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{0, 0}));
}

TEST(AugmentOps, AffineRefusesOtherFilters) {
  EXPECT_THROW(affine(make_image(3, 3, 3), {1, 0, 0, 0, 1, 0}, Filter::lanczos, {}), Error);
}

TEST(Crop, AWindowOutsideTheImageIsFill) {
  const Image image{2, 2, 1, {1, 2, 3, 4}};
  for (const Window& window : {Window{5, 0, 2, 2}, Window{-7, 0, 2, 2}, Window{0, 9, 2, 2}, Window{0, -2, 2, 2}}) {
    EXPECT_EQ(crop(image, window, Padding::constant, {9}).pixels, (std::vector<uint8_t>{9, 9, 9, 9}));
  }
}

TEST(Crop, InvalidWindowsAreErrors) {
  const Image image = make_image(5, 5, 3);
  EXPECT_THROW(crop(image, {0, 0, 0, 2}), Error);
  EXPECT_THROW(crop(image, {-5, 0, 5, 5}, Padding::reflect), Error);
  EXPECT_THROW(crop(image, {0, 5, 5, 5}, Padding::reflect), Error);
  EXPECT_NO_THROW(crop(image, {-4, 4, 5, 5}, Padding::reflect));
}

}  // namespace
}  // namespace vitrail::image
