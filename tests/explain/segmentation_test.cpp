// SPDX-License-Identifier: Apache-2.0
// The learning page of Segment Anything: its values are those of the predictor, and its claims hold.
#include "vitrail/explain/segmentation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/claim_assertions.h"
#include "tests/support/golden.h"
#include "tests/support/learning_page.h"
#include "tests/support/messages.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/explain/segmentation_claims_internal.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/sam/predictor.h"

namespace vitrail::explain {
namespace {

using testing::sam_fixture;
using testing::SamFixture;
using Json = nlohmann::ordered_json;

struct SegmentationPage : testing::ReadPage {
  SegmentationPage(const std::string& fixture, const sam::Prompt& prompt, const ExplainOptions& options = {})
      : sam(models::load_sam(models::ModelFiles(sam_fixture(fixture).model))), photo(testing::smooth_image(60, 40, 3)) {
    read(explain_segmentation(sam, {.photo = photo, .name = "photo.png", .model = fixture, .prompt = prompt}, options));
  }

  models::Sam sam;
  image::Image photo;
};

const sam::Prompt kPoints{.points = {{20, 30, 1}, {5, 6, 0}}};
const sam::Prompt kBox{.box = sam::Box{4, 5, 40, 30}};

// The predictor is held against segment_anything by its own tests.
TEST(SegmentationPage, HasTheMasksOfThePredictor) {
  for (const char* name : {"windows", "mobile", "high_quality"}) {
    for (const sam::Prompt& prompt : {kPoints, kBox}) {
      const SegmentationPage page(name, prompt, {.detail = Detail::full});
      const sam::Predictor predictor(models::ModelFiles(sam_fixture(name).model));
      const sam::Masks want = predictor.predict(predictor.embed(page.photo), prompt);
      const Tensor masks = page.array("low_res_masks"), iou = page.array("iou_predictions");
      const auto several = static_cast<int64_t>(want.iou.size());
      const double error = page.manifest["tensors"]["low_res_masks"]["max_error"].get<double>();
      const double tolerance = testing::kSamTolerance * testing::largest(want.logits);
      EXPECT_TRUE(
          testing::close(masks.narrow(1, masks.size(1) - several, several).contiguous().view(want.logits.shape()),
                         want.logits, error + tolerance))
          << name;
      for (int64_t i = 0; i < several; ++i)
        EXPECT_NEAR(iou.data<float>()[iou.size(1) - several + i], want.iou[static_cast<size_t>(i)],
                    testing::kSamTolerance)
            << name;
    }
  }
}

TEST(SegmentationPage, NamesTheTokensOfThePrompt) {
  const auto names = [](const sam::Prompt& prompt) {
    return SegmentationPage("windows", prompt).manifest["model"]["special"].dump();
  };
  const std::string first = R"(["iou","mask","mask","mask","mask",)";
  EXPECT_EQ(names({}), first + R"("point","padding"])");
  EXPECT_EQ(names(kPoints), first + R"("point","outside","padding"])");
  EXPECT_EQ(names(kBox), first + R"("corner","corner"])");
  EXPECT_EQ(names({.points = kPoints.points, .box = kBox.box}), first + R"("point","outside","corner","corner"])");
}

TEST(SegmentationPage, RefusesWhatItCannotShow) {
  const SegmentationPage page("windows", {});
  const auto refusal = [&](const models::Sam& sam, const sam::Prompt& prompt) {
    return testing::error_of(
        [&] { explain_segmentation(sam, {.photo = page.photo, .name = "photo.png", .prompt = prompt}, {}); });
  };
  EXPECT_EQ(refusal(page.sam, {.points = {{70, 1, 1}}}),
            "photo.png: expected coordinates in the image of 60×40, got (70, 1)");
  EXPECT_EQ(refusal(page.sam, {.mask_logits = Tensor::zeros({4, 4})}), "mask: expected points or a box, got a mask");
  const models::Sam encoder = models::load_sam(models::ModelFiles(sam_fixture("timm_encoder").model));
  EXPECT_EQ(refusal(encoder, {}), "explain: expected a model with a mask decoder, got an image encoder alone");
}

const testing::ClaimAssertions& segmentation_assertions() {
  static const testing::ClaimAssertions rows{
      {"sam_norm_2d",
       {[](const Json& v) {
          return std::fabs(v["mean"].get<double>()) < 1e-5 && std::fabs(v["variance"].get<double>() - 1) < 1e-3;
        },
        {{"variance", 0.5}}}},
      {"sam_tokens",
       {[](const Json& v) { return 1 + v["masks"].get<int64_t>() + v["prompts"].get<int64_t>() == v["tokens"]; },
        {{"tokens", 1}}}},
      {"sam_downsampled",
       {[](const Json& v) {
          const auto inner = v["inner"].get<int64_t>();
          return 2 * inner == v["width"] && v["heads"].get<int64_t>() * v["head_dim"].get<int64_t>() == inner;
        },
        {{"inner", 1}}}},
      {"sam_softmax", {[](const Json& v) { return v["deviation"].get<double>() < 2e-6; }, {{"deviation", 0.1}}}},
      {"sam_mlp", {[](const Json& v) { return v["hidden"] > v["width"]; }, {{"hidden", 1}}}},
      {"sam_mask_product", {[](const Json& v) { return v["difference"].get<double>() < 1e-3; }, {{"difference", 0.1}}}},
  };
  return rows;
}

TEST(SegmentationPage, ItsClaimsHold) {
  const SegmentationPage page("windows", kPoints);
  const Json texts = Json::parse(page.element("texts")).at("en");
  const std::set<std::string> seen = testing::expect_claims(segmentation_assertions(), page.manifest["claims"]);
  for (const std::string& id : seen) EXPECT_TRUE(texts.contains("claim." + id)) << id;
  EXPECT_EQ(seen.size(), segmentation_claims().size());
  EXPECT_EQ(segmentation_assertions().size(), segmentation_claims().size());
}

}  // namespace
}  // namespace vitrail::explain
