// SPDX-License-Identifier: Apache-2.0
// A segmentation model, from training to masks, by the program.
#include <gtest/gtest.h>

#include "tests/apps/cli_fixture.h"
#include "tests/train/segment_fixture.h"
#include "vitrail/sam/mask_evaluation.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(SegmentTraining, TheModelOfARunIsEvaluatedAndSegments) {
  const fs::path instances = train::make_instances(8, 4), scratch = scratch_folder(), run = scratch / "run";
  train::write_file(scratch / "recipe.json", train::tiny_segment_recipe(instances));
  const ProgramResult trained =
      run_program({"train", scratch / "recipe.json", "-o", run, "--data", instances, "--threads", "1"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const json summary = json::parse(lines_of(trained.out).back());
  EXPECT_EQ(summary["epochs"], 2);

  const ProgramResult evaluated =
      run_program({"eval", "-m", run, instances, "--split", "val", "--format", "json", "--threads", "1"});
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  const json result = json::parse(evaluated.out);
  const sam::Predictor predictor(run / "model", {.threads = 1});
  const sam::MaskEvaluation expected = sam::evaluate_masks(predictor, *sam::open_instances(instances, "val"));
  EXPECT_EQ(result["images"], 4);
  EXPECT_EQ(result["masks"], 8);
  EXPECT_EQ(result["click_iou"].get<double>(), expected.click_best);
  EXPECT_EQ(result["three_clicks_iou"].get<double>(), expected.three_clicks);
  EXPECT_EQ(result["box_iou"].get<double>(), expected.box);
  EXPECT_TRUE(contains(run_program({"eval", "-m", run, instances, "--split", "val"}).out, "mean IoU for"));

  const ProgramResult masks =
      run_program({"segment", "-m", run / "model", instances / "val" / "00.png", "--point", "5,8", "--format", "json"});
  ASSERT_EQ(masks.status, 0) << masks.err;
  EXPECT_EQ(json::parse(masks.out)["masks"].size(), 3u);
}

TEST(SegmentTraining, OptionsOfClassifiersAreRefused) {
  const fs::path instances = train::make_instances(4, 2);
  const auto model = fixture("sam/windows/model.pth").string();
  const ProgramResult refused = run_program({"eval", "-m", model, instances, "--logits", "x.npy"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "belongs to a classifier; the model segments objects")) << refused.err;
}

}  // namespace
}  // namespace vitrail::testing
