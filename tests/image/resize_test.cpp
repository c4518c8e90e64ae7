// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/resize_internal.h"

#include "tests/image/support.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
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

ResizeOptions with_crop(const Window& crop) {
  ResizeOptions options;
  options.crop = crop;
  return options;
}
ResizeOptions with_box(const Box& box) {
  ResizeOptions options;
  options.box = box;
  return options;
}
ResizeOptions with_window(const Window& window) {
  ResizeOptions options;
  options.window = window;
  return options;
}
Image counting_image(int64_t width, int64_t height, int64_t channels) {
  Image image = make_image(width, height, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * i / 3 + 37 * (i % 7));
  return image;
}

// Pillow 13 begins along y if more than twice as many rows are removed as columns.  A pass alone is a resize of one
// axis, so that both orders can be made.
TEST(Resize, BeginsAlongTheAxisOfPillow) {
  const Image source = counting_image(40, 60, 3);
  struct Case {
    int64_t width, height;
    bool rows_first;
  };
  for (const Case& each : {Case{30, 40, false},
                           {30, 39, true},
                           {30, 41, false},
                           {41, 59, true},
                           {41, 61, false},
                           {39, 58, false},
                           {39, 57, true},
                           {20, 61, false}}) {
    for (const Filter filter : {Filter::bilinear, Filter::bicubic}) {
      const Image along_y = resize(resize(source, 40, each.height, filter), each.width, each.height, filter);
      const Image along_x = resize(resize(source, each.width, 60, filter), each.width, each.height, filter);
      ASSERT_NE(along_x.pixels, along_y.pixels) << "the orders differ by their rounding";
      EXPECT_TRUE(same_pixels(resize(source, each.width, each.height, filter), each.rows_first ? along_y : along_x))
          << each.width << "×" << each.height;
    }
  }
}

TEST(Resize, RefusalsSayWhatIsOutside) {
  const Image source = make_image(5, 4, 3);
  const auto refusal = [&](int64_t width, int64_t height, const ResizeOptions& options = {}) {
    return testing::error_of([&] { resize(source, width, height, Filter::bilinear, options); });
  };
  const std::string begin = "resize: expected ", sizes = "a size from 1×1 to 2147483647×2147483647, got ";
  EXPECT_EQ(refusal(0, 3), begin + sizes + "0×3");
  EXPECT_EQ(refusal(3, 0), begin + sizes + "3×0");
  EXPECT_EQ(refusal(2147483648, 3), begin + sizes + "2147483648×3");
  EXPECT_EQ(refusal(3, 2147483648), begin + sizes + "3×2147483648");
  const auto crop = [&](const Window& window) { return refusal(2, 2, with_crop(window)); };
  EXPECT_EQ(crop({-1, 0, 2, 2}), begin + "a crop inside 5×4, got 2×2 at -1, 0");
  EXPECT_EQ(crop({0, -1, 2, 2}), begin + "a crop inside 5×4, got 2×2 at 0, -1");
  EXPECT_EQ(crop({0, 0, 0, 2}), begin + "a crop inside 5×4, got 0×2 at 0, 0");
  EXPECT_EQ(crop({0, 0, 2, 0}), begin + "a crop inside 5×4, got 2×0 at 0, 0");
  EXPECT_EQ(crop({3, 0, 3, 2}), begin + "a crop inside 5×4, got 3×2 at 3, 0");
  EXPECT_EQ(crop({0, 2, 2, 3}), begin + "a crop inside 5×4, got 2×3 at 0, 2");
  const auto box = [&](const Box& given) { return refusal(2, 2, with_box(given)); };
  EXPECT_EQ(box({-0.5, 0, 2, 2}), begin + "a box inside 5 pixels, got [-0.5, 2)");
  EXPECT_EQ(box({0, 0, 5.5, 2}), begin + "a box inside 5 pixels, got [0, 5.5)");
  EXPECT_EQ(box({2, 0, 2, 2}), begin + "a box inside 5 pixels, got [2, 2)");
  EXPECT_EQ(box({0, 1, 2, 4.25}), begin + "a box inside 4 pixels, got [1, 4.25)");
  const auto window = [&](const Window& given) { return refusal(6, 7, with_window(given)); };
  EXPECT_EQ(window({-1, 0, 2, 2}), begin + "a window inside 6 pixels, got [-1, 1)");
  EXPECT_EQ(window({5, 0, 2, 2}), begin + "a window inside 6 pixels, got [5, 7)");
  EXPECT_EQ(window({0, 0, 0, 2}), begin + "a window inside 6 pixels, got [0, 0)");
  EXPECT_EQ(window({0, 6, 2, 2}), begin + "a window inside 7 pixels, got [6, 8)");
  const std::vector<uint8_t> bytes(4 * 20);
  EXPECT_ERROR(testing::error_of([&] { resize(ImageView(bytes.data(), 5, 4, PixelFormat::rgba), 2, 2, Filter::box); }),
               "resize", "4 channels");
}

TEST(Resize, AcceptsWhatEndsAtTheEdges) {
  const Image source = counting_image(5, 4, 3);
  EXPECT_NO_THROW(resize(source, 2, 2, Filter::box, with_crop({3, 2, 2, 2})));
  EXPECT_NO_THROW(resize(source, 2, 2, Filter::box, with_box({4.5, 3.5, 5, 4})));
  EXPECT_EQ(resize(source, 6, 7, Filter::box, with_window({5, 6, 1, 1})).pixels.size(), 3u);
  const Image corner = resize(source, 2147483647, 2147483647, Filter::nearest, with_window({0, 0, 2, 1}));
  EXPECT_EQ(corner.pixels, (std::vector<uint8_t>{source.pixels[0], source.pixels[1], source.pixels[2], source.pixels[0],
                                                 source.pixels[1], source.pixels[2]}));
  // Nothing is resampled, but the crop and the window apply.
  ResizeOptions both = with_crop({1, 1, 4, 3});
  both.window = Window{2, 1, 2, 1};
  const Image part = resize(source, 4, 3, Filter::lanczos, both);
  EXPECT_EQ(part.pixels, std::vector<uint8_t>(source.row(2) + 9, source.row(2) + 15));
  // The box of a whole pixel moves the image as a crop does.
  EXPECT_TRUE(same_pixels(resize(source, 4, 3, Filter::bicubic, with_box({1, 1, 5, 4})),
                          resize(source, 4, 3, Filter::bicubic, with_crop({1, 1, 4, 3}))));
}

}  // namespace
}  // namespace vitrail::image
