// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/transform.h"

#include "tests/image/support.h"
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
  if (!options.value("do_rescale", true)) steps.rescale.reset();
  if (options.contains("rescale_factor")) steps.rescale = options.at("rescale_factor").get<double>();
  steps.normalize = options.value("do_normalize", true);
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

// Beyond an image: black, or with timm's border mode the mean.
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

}  // namespace
}  // namespace vitrail::image
