// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/resize_internal.h"

#include "tests/image/support.h"
#include "vitrail/base/error.h"
#include "vitrail/image/crop_internal.h"

namespace vitrail::image {
namespace {

TEST(Resize, EqualsPillowForEveryFilterSizeAndBox) {
  const Golden golden("resize");
  for (const auto& entry : golden.index.at("cases")) {
    const auto& source = golden.index.at("sources").at(entry.at("source"));
    const int64_t channels = source.at("channels");
    ResizeOptions options;
    if (const auto& box = entry.at("box"); !box.is_null()) options.box = Box{box[0], box[1], box[2], box[3]};
    const Image result = resize(golden.image(source, channels), entry.at("width"), entry.at("height"),
                                filter_from_name(entry.at("filter")), options);
    EXPECT_TRUE(same_pixels(result, golden.image(entry, channels))) << entry.dump();
  }
}

TEST(Resize, AWindowIsACropOfTheFullResult) {
  const Golden golden("resize");
  const Image source = golden.image(golden.index.at("sources").at("smooth"), 3);
  for (const auto& [width, height] :
       {std::pair<int64_t, int64_t>{20, 57}, {45, 21}, {source.width, 9}, {11, source.height}}) {
    for (const Filter filter : {Filter::nearest, Filter::bicubic}) {
      const Image full = resize(source, width, height, filter);
      const Window window{3, 2, 7, 5};
      ResizeOptions options;
      options.window = window;
      Image expected = make_image(window.width, window.height, 3);
      for (int64_t y = 0; y < window.height; ++y) {
        std::memcpy(expected.row(y), full.row(window.top + y) + window.left * 3, expected.row_bytes());
      }
      EXPECT_TRUE(same_pixels(resize(source, width, height, filter, options), expected)) << width << "×" << height;
    }
  }
}

TEST(Resize, CropIsAppliedBeforeResizing) {
  const Golden golden("resize");
  const Image source = golden.image(golden.index.at("sources").at("smooth"), 3);
  for (const Window& window : {Window{3, 5, 20, 30}, Window{0, 0, 9, 9}, Window{19, 21, 10, 19}}) {
    const Image cropped = crop(source, window);
    ResizeOptions options;
    options.crop = window;
    for (const auto& [width, height] : {std::pair<int64_t, int64_t>{15, 12},
                                        {40, 50},
                                        {window.width, 7},
                                        {8, window.height},
                                        {window.width, window.height},
                                        {window.width + 3, 4}}) {
      for (const Filter filter : {Filter::nearest, Filter::bilinear, Filter::bicubic}) {
        EXPECT_TRUE(same_pixels(resize(source, width, height, filter, options), resize(cropped, width, height, filter)))
            << width << "×" << height;
      }
    }
  }
  ResizeOptions outside;
  outside.crop = Window{20, 0, 10, 10};
  EXPECT_THROW(resize(source, 5, 5, Filter::bicubic, outside), Error);
}

TEST(Resize, InvalidSizesAndRectanglesAreErrors) {
  const Image source = make_image(4, 3, 3);
  EXPECT_THROW(resize(source, 0, 3, Filter::bicubic), Error);
  EXPECT_THROW(resize(source, 3, -1, Filter::bicubic), Error);
  EXPECT_THROW(resize(source, int64_t{1} << 40, 3, Filter::nearest), Error);
  EXPECT_THROW(resize(Image{}, 3, 3, Filter::bicubic), Error);
  EXPECT_THROW(resize(Image{4, 3, 3, {}}, 3, 3, Filter::bicubic), Error);
  ResizeOptions box;
  box.box = Box{1, 1, 5, 2};
  EXPECT_THROW(resize(source, 3, 3, Filter::bicubic, box), Error);
  box.box = Box{2, 1, 2, 2};
  EXPECT_THROW(resize(source, 3, 3, Filter::bicubic, box), Error);
  ResizeOptions window;
  window.window = Window{1, 0, 3, 3};
  EXPECT_THROW(resize(source, 3, 3, Filter::bicubic, window), Error);
}

TEST(Filter, HasTheNamesOfTimm) {
  EXPECT_EQ(filter_from_name("bicubic"), Filter::bicubic);
  EXPECT_EQ(filter_from_name("BILINEAR"), Filter::bilinear);
  EXPECT_EQ(filter_from_name("linear"), Filter::bilinear);
  EXPECT_EQ(filter_from_name("Cubic"), Filter::bicubic);
  for (int number = 0; number < 6; ++number) {
    const Filter filter = static_cast<Filter>(number);
    EXPECT_EQ(filter_from_name(name_of(filter)), filter);
  }
  EXPECT_THROW(filter_from_name("random"), Error);
}

}  // namespace
}  // namespace vitrail::image
