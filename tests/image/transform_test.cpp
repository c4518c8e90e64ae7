// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/transform.h"

#include <cmath>

#include "tests/image/support.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/transform_geometry_internal.h"

namespace vitrail::image {
namespace {

using nlohmann::json;

std::array<int64_t, 2> height_width(const json& size) { return {size.at("height"), size.at("width")}; }

ProcessorSteps processor_from(const json& options) {
  ProcessorSteps steps;
  steps.resize = ProcessorSteps::Resize::none;
  if (options.at("do_resize")) {
    const json& size = options.at("size");
    if (size.contains("height")) {
      steps.resize = ProcessorSteps::Resize::fixed;
      steps.size = height_width(size);
    } else {
      steps.resize = ProcessorSteps::Resize::shortest_edge;
      steps.size = {size.at("shortest_edge"), size.at("shortest_edge")};
      if (size.contains("longest_edge")) steps.longest_edge = size.at("longest_edge").get<int64_t>();
    }
  }
  if (options.at("do_center_crop")) steps.crop = height_width(options.at("crop_size"));
  if (!options.value("do_rescale", true)) steps.rescale = 1;
  if (options.contains("rescale_factor")) steps.rescale = options.at("rescale_factor").get<double>();
  return steps;
}

EvalTransform transform_from(const json& entry, const json& index) {
  EvalTransform transform;
  transform.mean = index.at("mean").get<std::vector<double>>();
  transform.std = index.at("std").get<std::vector<double>>();
  if (entry.contains("timm")) {
    const json& options = entry.at("timm");
    transform.size = {options.at("size")[0], options.at("size")[1]};
    transform.crop_pct = options.at("crop_pct");
    transform.crop_mode = crop_mode_from_name(options.at("crop_mode"));
    transform.interpolation = filter_from_name(options.at("interpolation"));
  } else {
    const json& options = entry.at("hugging_face");
    transform.processor = processor_from(options);
    if (!options.value("do_normalize", true)) transform.mean = {0}, transform.std = {1};
    transform.interpolation = static_cast<Filter>(options.value("resample", 2));
  }
  return transform;
}

// The operations have the reference's order and precision, so the values are equal.
TEST(EvalTransform, EqualsTimmAndHuggingFaceBitForBit) {
  const Golden golden("transform");
  for (const json& entry : golden.index.at("cases")) {
    const Image source = golden.image(golden.index.at("sources").at(entry.at("source")), 3);
    const Tensor result = apply(source, transform_from(entry, golden.index));
    const json& shape = entry.at("shape");
    ASSERT_EQ(result.shape(), (Shape{shape[0], shape[1], shape[2]})) << entry.dump();
    const std::vector<float> expected = golden.floats(entry, result.numel());
    for (int64_t i = 0; i < result.numel(); ++i) {
      ASSERT_EQ(result.data<float>()[i], expected[i]) << "element " << i << " of " << entry.dump();
    }
  }
}

TEST(EvalTransform, OutputSizeNeedsOnlyTheImageSize) {
  EvalTransform transform;
  EXPECT_EQ(output_size(transform, 640, 480), (std::array<int64_t, 2>{224, 224}));
  transform.processor = ProcessorSteps{};
  transform.processor->resize = ProcessorSteps::Resize::shortest_edge;
  EXPECT_EQ(output_size(transform, 640, 480), (std::array<int64_t, 2>{224, 298}));
}

TEST(EvalTransform, VisibleRegionIsThePartOfTheImageThatTheModelSees) {
  EvalTransform transform;
  transform.size = {8, 8};
  transform.crop_pct = 0.8;
  const auto region = [&](int64_t width, int64_t height) {
    const Region r = visible_region(transform, width, height);
    return std::array{r.left, r.top, r.right, r.bottom};
  };
  // 40 × 20 is resized to 20 × 10: the crop of 8 × 8 begins at (6, 1).
  EXPECT_EQ(region(40, 20), (std::array{12.0, 2.0, 28.0, 18.0}));
  transform.crop_mode = CropMode::squash;
  transform.crop_pct = 1;
  EXPECT_EQ(region(40, 20), (std::array{0.0, 0.0, 40.0, 20.0}));
  transform.crop_mode = CropMode::border;  // resized to 8 × 4, with 2 rows of padding on both sides
  EXPECT_EQ(region(40, 20), (std::array{0.0, -10.0, 40.0, 30.0}));
}

// Beyond an image: black, or with timm's border mode the mean or one colour.
TEST(EvalTransform, PaddingIsBlackOrTheMean) {
  EvalTransform transform;
  transform.mean = {0.5, 0.1, 1.0};
  EXPECT_EQ(padding_of(transform, 3), (std::vector<uint8_t>{0, 0, 0}));
  transform.crop_mode = CropMode::border;
  EXPECT_EQ(padding_of(transform, 3), (std::vector<uint8_t>{128, 26, 255})) << "halves to even";
  transform.processor = ProcessorSteps{};
  EXPECT_EQ(padding_of(transform, 3), (std::vector<uint8_t>{0, 0, 0}));
  transform.processor.reset();
  transform.mean = {0.5};
  EXPECT_EQ(padding_of(transform, 3), (std::vector<uint8_t>{128, 128, 128}));
  transform.fill_color = 7;
  EXPECT_EQ(padding_of(transform, 3), (std::vector<uint8_t>{7, 7, 7}));
  transform.crop_mode = CropMode::center;
  EXPECT_EQ(padding_of(transform, 3), (std::vector<uint8_t>{0, 0, 0}));
}

TEST(EvalTransform, GreyImagesHaveOneMean) {
  EvalTransform transform;
  transform.size = {8, 8};
  transform.mean = {0.5}, transform.std = {0.25};
  Image grey = make_image(20, 10, 1);
  std::fill(grey.pixels.begin(), grey.pixels.end(), uint8_t{255});
  const Tensor result = apply(grey, transform);
  EXPECT_EQ(result.shape(), (Shape{1, 8, 8}));
  EXPECT_EQ(result.data<float>()[0], 2.0f);
}

// A strip of height 1 would be resized to 24 million columns; only the cropped centre is computed.
TEST(EvalTransform, OnlyTheCropIsComputed) {
  const Image strip = make_image(100'000, 1, 3);
  EXPECT_EQ(apply(strip, EvalTransform{}).shape(), (Shape{3, 224, 224}));
}

TEST(EvalTransform, InvalidConfigurationsAreErrors) {
  const Image image = make_image(10, 10, 3);
  const auto refused = [&](auto change) {
    EvalTransform transform;
    change(transform);
    EXPECT_THROW(apply(image, transform), Error);
  };
  refused([](EvalTransform& t) { t.size = {0, 224}; });
  refused([](EvalTransform& t) { t.size = {224, int64_t{1} << 60}; });
  refused([](EvalTransform& t) { t.crop_pct = 0; });
  refused([](EvalTransform& t) { t.crop_pct = 1000, t.crop_mode = CropMode::squash; });  // resized to zero pixels
  refused([](EvalTransform& t) { t.mean = {0.5, 0.5}; });
  refused([](EvalTransform& t) { t.mean.clear(), t.crop_mode = CropMode::border; });
  refused([](EvalTransform& t) { t.std = {1, 0, 1}; });
  EXPECT_THROW(crop_mode_from_name("middle"), Error);
}

TEST(EvalTransform, HasTheDefaultsOfTimmAndOfViTsProcessor) {
  const EvalTransform transform;
  EXPECT_EQ(transform.size, (std::array<int64_t, 2>{224, 224}));
  EXPECT_EQ(transform.crop_pct, 0.875);
  EXPECT_EQ(transform.crop_mode, CropMode::center);
  EXPECT_EQ(transform.interpolation, Filter::bicubic);
  EXPECT_EQ(transform.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(transform.std, (std::vector<double>{0.229, 0.224, 0.225}));
  EXPECT_FALSE(transform.processor);
  const ProcessorSteps steps;
  EXPECT_EQ(steps.resize, ProcessorSteps::Resize::fixed);
  EXPECT_EQ(steps.size, (std::array<int64_t, 2>{224, 224}));
  EXPECT_FALSE(steps.longest_edge || steps.crop);
  EXPECT_EQ(steps.rescale, 1.0 / 255.0);
  EXPECT_FALSE(steps.resize_floats);
  EXPECT_TRUE(steps.antialias);
}

// Plans of timm by hand: what is resized to which size, and where the crop begins.
TEST(EvalTransform, ResizesAndCropsAsTimm) {
  struct Case {
    CropMode mode;
    std::array<int64_t, 2> size;  // height, width
    double crop_pct;
    std::array<int64_t, 2> image;    // width, height
    std::array<int64_t, 2> resized;  // width, height
    std::array<int64_t, 2> at;       // left, top
  };
  const CropMode center = CropMode::center, squash = CropMode::squash, border = CropMode::border;
  const Case cases[] = {
      {center, {10, 10}, 0.9, {40, 22}, {20, 11}, {5, 0}},  // 10 / 0.9 is 11; half of 10, and of 1: 0.5 to even 0
      {center, {10, 10}, 1, {21, 50}, {10, 23}, {0, 6}},    // 10 · 50 / 21 is 23.8; half of 13 is 6.5, to even 6
      {center, {10, 10}, 1, {50, 27}, {18, 10}, {4, 0}},    // 18.5
      {center, {10, 10}, 1, {50, 30}, {16, 10}, {3, 0}},    // 16.7
      {center, {10, 10}, 1.3, {50, 50}, {7, 7}, {-1, -1}},  // padded by 3: one pixel before, two behind
      {center, {10, 20}, 1, {50, 40}, {20, 16}, {0, 3}},    // the smallest size that covers the target
      {center, {20, 10}, 1, {50, 40}, {25, 20}, {8, 0}},    // half of 15 is 7.5, to even 8
      {squash, {10, 20}, 0.8, {33, 77}, {25, 12}, {2, 1}},  // half of 5 is 2.5, to even 2
      {border, {10, 20}, 1, {50, 40}, {12, 10}, {-4, 0}},   // 12.5 to even
      {border, {20, 10}, 1, {50, 40}, {10, 8}, {0, -6}},    // the largest size inside the target
      {border, {10, 10}, 0.5, {30, 15}, {20, 10}, {5, 0}},
  };
  for (const Case& each : cases) {
    EvalTransform transform;
    transform.crop_mode = each.mode, transform.size = each.size, transform.crop_pct = each.crop_pct;
    const ResizeAndCrop plan = resize_and_crop_of(transform, each.image[0], each.image[1]);
    const std::string name = std::to_string(each.image[0]) + "×" + std::to_string(each.image[1]);
    EXPECT_EQ((std::array{plan.resized_width, plan.resized_height}), each.resized) << name;
    EXPECT_EQ((std::array{plan.left, plan.top}), each.at) << name;
    EXPECT_EQ((std::array{plan.height, plan.width}), each.size) << name;
    EXPECT_EQ(output_size(transform, each.image[0], each.image[1]), each.size) << name;
  }
}

// Hugging Face's get_size_with_aspect_ratio and center_crop, by hand.
TEST(EvalTransform, ResizesAndCropsAsHuggingFace) {
  using Resize = ProcessorSteps::Resize;
  struct Case {
    Resize resize;
    std::array<int64_t, 2> size;  // height, width
    std::optional<int64_t> longest;
    std::optional<std::array<int64_t, 2>> crop;  // height, width
    std::array<int64_t, 2> image;                // width, height
    std::array<int64_t, 2> resized;              // width, height
    std::array<int64_t, 2> at;                   // left, top
  };
  const Case cases[] = {
      {Resize::none, {9, 9}, {}, {}, {40, 22}, {40, 22}, {0, 0}},
      {Resize::none, {9, 9}, {}, {{17, 45}}, {40, 22}, {40, 22}, {-3, 2}},  // −5 / 2 is −3, 5 / 2 is 2
      {Resize::fixed, {9, 14}, {}, {{12, 5}}, {40, 22}, {14, 9}, {4, -2}},
      {Resize::shortest_edge, {15, 15}, {}, {}, {40, 22}, {27, 15}, {0, 0}},
      {Resize::shortest_edge, {15, 15}, {}, {}, {22, 40}, {15, 27}, {0, 0}},
      {Resize::shortest_edge, {15, 15}, 27, {}, {40, 22}, {27, 15}, {0, 0}},  // 27.3 is above the limit: 14.85
      {Resize::shortest_edge, {15, 15}, 28, {}, {40, 22}, {27, 15}, {0, 0}},
      {Resize::shortest_edge, {15, 15}, 20, {}, {40, 22}, {20, 11}, {0, 0}},
      {Resize::shortest_edge, {15, 15}, 20, {}, {22, 40}, {11, 20}, {0, 0}},
      {Resize::shortest_edge, {224, 224}, 250, {}, {640, 480}, {250, 188}, {0, 0}},  // 187.5, to even 188
      {Resize::shortest_edge, {224, 224}, 250, {}, {480, 640}, {188, 250}, {0, 0}},
      {Resize::shortest_edge, {22, 22}, 50, {}, {40, 22}, {40, 22}, {0, 0}},  // has the size
      {Resize::shortest_edge, {30, 30}, 100, {}, {7, 7}, {30, 30}, {0, 0}},
      {Resize::shortest_edge, {30, 30}, 20, {}, {7, 7}, {20, 20}, {0, 0}},
  };
  for (const Case& each : cases) {
    EvalTransform transform;
    transform.size = {3, 4};  // not used
    transform.processor =
        ProcessorSteps{.resize = each.resize, .size = each.size, .longest_edge = each.longest, .crop = each.crop};
    const ResizeAndCrop plan = resize_and_crop_of(transform, each.image[0], each.image[1]);
    const std::string name = std::to_string(each.image[0]) + "×" + std::to_string(each.image[1]) + " to " +
                             std::to_string(each.size[0]) + " " + std::to_string(each.longest.value_or(0));
    EXPECT_EQ((std::array{plan.resized_width, plan.resized_height}), each.resized) << name;
    EXPECT_EQ((std::array{plan.left, plan.top}), each.at) << name;
    const std::array<int64_t, 2> whole{each.resized[1], each.resized[0]};
    EXPECT_EQ((std::array{plan.height, plan.width}), each.crop.value_or(whole)) << name;
  }
}

TEST(EvalTransform, RefusalsNameTheirLimits) {
  const auto refusal = [](const auto& change, int64_t width = 10, int64_t height = 10) {
    EvalTransform transform;
    change(transform);
    return testing::error_of([&] { resize_and_crop_of(transform, width, height); });
  };
  const auto processor = [](EvalTransform& t) -> ProcessorSteps& { return t.processor.emplace(); };
  const std::string begin = "image transform: expected ";
  EXPECT_EQ(refusal([](auto& t) { t.size = {0, 7}; }), begin + "a size from 1 to 1048576, got 0×7");
  EXPECT_EQ(refusal([](auto& t) { t.size = {7, -1}; }), begin + "a size from 1 to 1048576, got 7×-1");
  EXPECT_EQ(refusal([](auto& t) { t.size = {7, 1048577}; }), begin + "a size from 1 to 1048576, got 7×1048577");
  EXPECT_EQ(refusal([](auto& t) { t.size = {1048577, 7}; }), begin + "a size from 1 to 1048576, got 1048577×7");
  EXPECT_EQ(refusal([](auto& t) { t.crop_pct = 0.0009; }), begin + "a crop_pct above 0.001, got 0.0009");
  EXPECT_EQ(refusal([](auto& t) { t.crop_pct = std::nan(""); }), begin + "a crop_pct above 0.001, got nan");
  EXPECT_EQ(refusal([](auto&) {}, 0, 5), begin + "an image with pixels, got 0×5");
  EXPECT_EQ(refusal([](auto&) {}, 5, 0), begin + "an image with pixels, got 5×0");
  EXPECT_EQ(refusal([&](auto& t) { processor(t).size = {0, 9}; }), begin + "a size from 1 to 1048576, got 0×9");
  EXPECT_EQ(refusal([&](auto& t) { processor(t).crop = {9, 0}; }), begin + "a crop from 1 to 1048576, got 9×0");
  EXPECT_EQ(refusal([](auto& t) {
              t.size = {5, 5}, t.crop_pct = 10, t.crop_mode = CropMode::squash;
            }),
            begin + "an image of at least one pixel after resizing, got 10×10, resized to 0×0");
  EXPECT_EQ(refusal(
                [&](auto& t) {
                  processor(t).resize = ProcessorSteps::Resize::shortest_edge;
                  t.processor->size = {1, 1}, t.processor->longest_edge = 3;
                },
                1000, 10),
            begin + "an image of at least one pixel after resizing, got 1000×10, resized to 3×0");
  for (const auto& size : {std::array<int64_t, 2>{1, 1048576}, {1048576, 1}}) {
    EvalTransform transform;
    transform.size = size, transform.crop_mode = CropMode::squash, transform.crop_pct = 1;
    EXPECT_NO_THROW(resize_and_crop_of(transform, 10, 10));
  }
  EvalTransform smallest;
  smallest.size = {2, 2}, smallest.crop_pct = 1e-3;
  EXPECT_EQ(resize_and_crop_of(smallest, 10, 10).resized_width, 2000);
  EXPECT_ERROR(testing::error_of([] { crop_mode_from_name("middle"); }), "crop_mode", "'middle'");
  EXPECT_EQ(crop_mode_from_name("center"), CropMode::center);
  EXPECT_EQ(crop_mode_from_name("squash"), CropMode::squash);
  EXPECT_EQ(crop_mode_from_name("border"), CropMode::border);
}

TEST(EvalTransform, PaddingIsClampedToABytesRange) {
  EvalTransform transform;
  transform.crop_mode = CropMode::border;
  transform.mean = {-0.5, 1.5, 24.5 / 255};
  EXPECT_EQ(padding_of(transform, 3), (std::vector<uint8_t>{0, 255, 24})) << "halves to even";
  EXPECT_EQ(padding_of(transform, 1), (std::vector<uint8_t>{0}));
}

// The border of the image is one colour, so that each pixel's place shows.
TEST(EvalTransform, PaddingIsAroundTheImage) {
  EvalTransform transform;
  transform.size = {6, 4}, transform.crop_pct = 1, transform.crop_mode = CropMode::border;
  transform.mean = {0.2, 0.4, 0.6};
  Image source = make_image(4, 3, 3);
  std::fill(source.pixels.begin(), source.pixels.end(), uint8_t{250});
  const Image result = apply_geometry(source, transform);
  ASSERT_EQ(result.width, 4);
  ASSERT_EQ(result.height, 6);
  for (int64_t y = 0; y < 6; ++y) {
    const bool inside = y >= 1 && y < 4;  // three rows are added: one above, two below
    for (int64_t x = 0; x < 4; ++x) {
      for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(result.row(y)[3 * x + c], inside ? 250 : 51 * (c + 1)) << x << " " << y;
    }
  }
}

}  // namespace
}  // namespace vitrail::image
