// SPDX-License-Identifier: Apache-2.0
// Masks against pycocotools, segment_anything.utils.amg, OpenCV and torchvision.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/sam/box_nms.h"
#include "vitrail/sam/crops.h"
#include "vitrail/sam/polygons.h"
#include "vitrail/sam/rle.h"
#include "vitrail/sam/small_regions.h"

namespace vitrail::sam::masks_test {  // vitrail::sam has Masks, too
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;

const testing::Golden& golden() {
  static const testing::Golden golden = testing::read_golden(testing::fixture("sam/masks.safetensors"));
  return golden;
}

const json& config() {
  static const json config = json::parse(golden().config);
  return config;
}

BinaryMask mask_of(const std::string& name) {
  const Tensor& tensor = golden()[name];
  return {tensor.size(1), tensor.size(0), {tensor.data<uint8_t>(), tensor.data<uint8_t>() + tensor.numel()}};
}

PixelBox box_of(const json& values) {
  return {values[0].get<int64_t>(), values[1].get<int64_t>(), values[2].get<int64_t>(), values[3].get<int64_t>()};
}

class Masks : public ::testing::TestWithParam<std::string> {
 protected:
  const json& expected() const { return config()["cases"][GetParam()]; }
  BinaryMask mask() const { return mask_of(GetParam() + ".mask"); }
  Tensor logits() const { return golden()[GetParam() + ".logits"]; }
};

TEST_P(Masks, ThresholdAreaAndBoxEqualTheReference) {
  const BinaryMask got = threshold(logits());
  EXPECT_EQ(got.pixels, mask().pixels);
  EXPECT_EQ(area(got), expected()["area"].get<int64_t>());
  EXPECT_EQ(bounding_box(got), box_of(expected()["box"]));
}

TEST_P(Masks, StabilityScoreEqualsTheReference) {
  for (size_t i = 0; i < config()["offsets"].size(); ++i) {
    const float got = stability_score(logits(), config()["offsets"][i].get<float>());
    const float want = std::stof(expected()["stability"][i].get<std::string>());
    EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << got << " " << want;
  }
}

TEST_P(Masks, RunsAndTheirTextEqualPycocotools) {
  const Rle rle = encode(mask());
  EXPECT_EQ(rle.counts, expected()["counts"].get<std::vector<uint32_t>>());
  EXPECT_EQ(to_coco(rle), expected()["coco"].get<std::string>());
  EXPECT_EQ(area(rle), expected()["area"].get<int64_t>());
  EXPECT_EQ(decode(rle).pixels, mask().pixels);
  EXPECT_EQ(from_coco(expected()["coco"].get<std::string>(), rle.width, rle.height, "text"), rle);
}

TEST_P(Masks, SmallRegionsAreRemovedAsByTheReference) {
  const auto limit = expected()["min_area"].get<int64_t>();
  BinaryMask filled = mask(), cleaned = mask();
  EXPECT_EQ(remove_small_regions(filled, limit, SmallRegions::holes), expected()["holes_changed"].get<bool>());
  EXPECT_EQ(filled.pixels, mask_of(GetParam() + ".holes").pixels);
  EXPECT_EQ(remove_small_regions(cleaned, limit, SmallRegions::islands), expected()["islands_changed"].get<bool>());
  EXPECT_EQ(cleaned.pixels, mask_of(GetParam() + ".islands").pixels);
}

// Whether the centre of a pixel is inside, by the even-odd rule: rings' sides are horizontal or vertical.
bool inside(const Ring& ring, int64_t x, int64_t y) {
  bool odd = false;
  for (size_t i = 0; i < ring.size(); ++i) {
    const Corner &a = ring[i], &b = ring[(i + 1) % ring.size()];
    if (a.x == b.x && a.x > x && (a.y > y) != (b.y > y)) odd = !odd;
  }
  return odd;
}

TEST_P(Masks, PolygonsGiveTheMaskAgainWithOpenCvsNumberOfRings) {
  const std::vector<Polygon> polygons = polygons_of(mask());
  size_t holes = 0;
  int64_t pixels = 0;
  BinaryMask drawn = make_mask(mask().width, mask().height);
  for (const Polygon& polygon : polygons) {
    std::vector<Ring> rings = polygon.holes;
    rings.push_back(polygon.outer);
    holes += polygon.holes.size();
    for (const Ring& ring : rings) {
      pixels += signed_area(ring);
      for (size_t i = 0; i < drawn.pixels.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        if (inside(ring, at % drawn.width, at / drawn.width)) drawn.pixels[i] ^= 1;
      }
    }
  }
  EXPECT_EQ(drawn.pixels, mask().pixels);
  EXPECT_EQ(pixels, expected()["area"].get<int64_t>());
  EXPECT_EQ(polygons.size(), expected()["contours"][0].get<size_t>());
  EXPECT_EQ(holes, expected()["contours"][1].get<size_t>());
}

INSTANTIATE_TEST_SUITE_P(Cases, Masks,
                         ::testing::Values("noise", "sparse", "blobs", "large", "rare", "row", "column", "pixel",
                                           "empty", "full", "ties", "nested"),
                         [](const auto& info) { return info.param; });

TEST(Polygons, CornersAreOfPixelsAndHolesBelongToTheirComponent) {
  const std::vector<Polygon> polygons = polygons_of({4,
                                                     3,
                                                     {1, 1, 1, 0,  //
                                                      1, 0, 1, 0,  //
                                                      1, 1, 1, 0}});
  ASSERT_EQ(polygons.size(), 1u);
  EXPECT_EQ(signed_area(polygons[0].outer), 9);
  EXPECT_EQ(polygons[0].outer.size(), 4u);
  ASSERT_EQ(polygons[0].holes.size(), 1u);
  EXPECT_EQ(signed_area(polygons[0].holes[0]), -1);
}

TEST(Uncrop, PutsAMaskIntoALargerFrame) {
  const BinaryMask mask{2, 1, {1, 1}};
  EXPECT_EQ(uncrop(mask, 1, 1, 4, 2).pixels, (std::vector<uint8_t>{0, 0, 0, 0, 0, 1, 1, 0}));
  EXPECT_EQ(uncrop(mask, 2, 1, 4, 2).pixels, (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 1, 1})) << "at the borders";
  EXPECT_EQ(uncrop(mask, 0, 0, 2, 1).pixels, mask.pixels);
  EXPECT_THROW(uncrop(mask, 3, 1, 4, 2), Error);
  EXPECT_THROW(uncrop(mask, 0, 2, 4, 2), Error);
  EXPECT_THROW(uncrop(mask, -1, 0, 4, 2), Error);
}

TEST(Rle, TextsThatAreNoRunsOfTheSizeAreErrors) {
  const auto error = [](const std::string& text) { return error_of([&] { from_coco(text, 4, 3, "text"); }); };
  EXPECT_EQ(from_coco("<", 4, 3, "text").counts, (std::vector<uint32_t>{12}));
  EXPECT_TRUE(contains(error(";"), "runs of 12 pixels"));
  EXPECT_TRUE(contains(error("P"), "the end of the text"));
  EXPECT_TRUE(contains(error(" "), "byte 32"));
  EXPECT_TRUE(contains(error("oooooooooo"), "a run of COCO's encoding"));
  EXPECT_TRUE(contains(error("O"), "got -1"));
  // A run has at most eight characters, also if all but the first are superfluous.
  EXPECT_EQ(from_coco("PPPPPPP0<", 4, 3, "text").counts, (std::vector<uint32_t>{0, 12}));
  EXPECT_TRUE(contains(error("PPPPPPPP0<"), "a run of COCO's encoding"));
  EXPECT_TRUE(contains(error_of([] { from_coco("0", int64_t{1} << 40, 1 << 20, "text"); }), "less than 2^32"));
  EXPECT_THROW(decode({4, 3, {5}}), Error);
}

TEST(BoxNms, KeepsTheBoxesThatTorchvisionKeeps) {
  for (const json& example : config()["nms"]) {
    std::vector<PixelBox> boxes;
    for (const json& box : example["boxes"]) boxes.push_back(box_of(box));
    const auto scores = example["scores"].get<std::vector<float>>();
    EXPECT_EQ(box_nms(boxes, scores, example["threshold"].get<double>()), example["kept"].get<std::vector<size_t>>());
  }
}

TEST(Crops, EqualTheReference) {
  for (const json& example : config()["crops"]) {
    const auto crops = crops_of(example["size"][0].get<int64_t>(), example["size"][1].get<int64_t>(),
                                example["layers"].get<int64_t>(), example["ratio"].get<double>());
    ASSERT_EQ(crops.size(), example["boxes"].size());
    for (size_t i = 0; i < crops.size(); ++i) {
      EXPECT_EQ(crops[i].box, box_of(example["boxes"][i]));
      EXPECT_EQ(crops[i].layer, example["layer"][i].get<int64_t>());
    }
  }
}

TEST(Crops, OptionsOutsideTheirRangeAreErrors) {
  EXPECT_THROW(crops_of(0, 5, 0, 0.3), Error);
  EXPECT_THROW(crops_of(50, 50, -1, 0.3), Error);
  EXPECT_THROW(crops_of(50, 50, 9, 0.3), Error);
  EXPECT_THROW(crops_of(50, 50, 1, 1.5), Error);
  EXPECT_THROW(crops_of(50, 50, 1, std::nan("")), Error);
  EXPECT_THROW(crops_of(3, 3, 2, 0.0), Error) << "the last crops are empty";
}

TEST(PointGrid, EqualsTheReferenceToTheLastBit) {
  for (const auto& [side, points] : config()["grids"].items()) {
    const auto want = points.get<std::vector<std::array<double, 2>>>();
    EXPECT_EQ(point_grid(std::stoll(side)), want) << side;
  }
  EXPECT_THROW(point_grid(0), Error);
}

TEST(Crops, RefusalsNameTheOption) {
  const auto refusal = [](int64_t width, int64_t height, int64_t layers, double ratio) {
    return error_of([&] { crops_of(width, height, layers, ratio); });
  };
  EXPECT_ERROR(refusal(0, 5, 0, 0), "crops", "0×5");
  EXPECT_ERROR(refusal(5, 0, 0, 0), "crops", "5×0");
  EXPECT_ERROR(refusal(5, 4, -1, 0), "crop_n_layers", "-1");
  EXPECT_ERROR(refusal(5, 4, 9, 0), "crop_n_layers", "9");
  EXPECT_ERROR(refusal(5, 4, 1, -0.25), "crop_overlap_ratio", "-0.25");
  EXPECT_ERROR(refusal(5, 4, 1, 1.25), "crop_overlap_ratio", "1.25");
  EXPECT_ERROR(refusal(5, 3, 2, 0), "crop_n_layers", "layer 2");
  EXPECT_EQ(crops_of(256, 512, 8, 0).size(), 87381u) << "1 + 4 + 16 + … + 65536";
  EXPECT_ERROR(error_of([] { point_grid(0); }), "point grid", "0");
  EXPECT_EQ(point_grid(1), (std::vector<std::array<double, 2>>{{0.5, 0.5}}));
  EXPECT_EQ(point_grid(2),
            (std::vector<std::array<double, 2>>{{0.25, 0.25}, {0.75, 0.25}, {0.25, 0.75}, {0.75, 0.75}}));
}

TEST(Crops, OfAllOverlapsFillTheImage) {
  const auto boxes = [](double ratio) {
    std::vector<PixelBox> result;
    for (const Crop& crop : crops_of(11, 6, 1, ratio)) {
      EXPECT_EQ(crop.layer, result.empty() ? 0 : 1);
      result.push_back(crop.box);
    }
    return result;
  };
  EXPECT_EQ(boxes(0), (std::vector<PixelBox>{{0, 0, 11, 6}, {0, 0, 6, 3}, {0, 3, 6, 6}, {6, 0, 11, 3}, {6, 3, 11, 6}}));
  EXPECT_EQ(boxes(1), (std::vector<PixelBox>{{0, 0, 11, 6}, {0, 0, 9, 6}, {0, 0, 9, 6}, {3, 0, 11, 6}, {3, 0, 11, 6}}));
  EXPECT_EQ(boxes(0.4),
            (std::vector<PixelBox>{{0, 0, 11, 6}, {0, 0, 7, 4}, {0, 2, 7, 6}, {5, 0, 11, 4}, {5, 2, 11, 6}}));
}

}  // namespace
}  // namespace vitrail::sam::masks_test
