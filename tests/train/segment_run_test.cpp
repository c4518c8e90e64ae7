// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/dist/thread_communicator.h"
#include "tests/support/golden.h"
#include "tests/support/sam_fixture.h"
#include "tests/train/segment_fixture.h"
#include "tests/train/training_runs.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/sam/mask_evaluation.h"
#include "vitrail/train/objectives/segmentation/segmentation_internal.h"
#include "vitrail/train/run/checkpoint.h"

namespace vitrail::train {
namespace {

Recipe segment_recipe(const fs::path& instances, const std::vector<std::string>& settings = {}) {
  return parse_recipe(tiny_segment_recipe(instances), "r.json", settings);
}

TEST(SegmentRun, WritesAllFilesOfTheRunFolder) {
  const fs::path instances = make_instances(), run = testing::scratch_folder() / "run";
  const TrainingResult result =
      train_to(run, segment_recipe(instances, {"data.test=" + instances.string(), "data.test_split=val"}));
  EXPECT_EQ(result.epoch, 2);
  EXPECT_EQ(result.step, 6);  // 12 images in batches of 4
  ASSERT_TRUE(result.test.has_value());
  EXPECT_EQ(result.validation_images, 4);
  for (const char* file : {"recipe.json", "metrics.csv", "report.html", "summary.json", "model/model.safetensors",
                           "model/README.md", "last/model.safetensors", "checkpoints/last.safetensors"}) {
    EXPECT_TRUE(fs::exists(run / file)) << file;
  }
  EXPECT_TRUE(contains(read_text(run / "metrics.csv"), "click_iou,box_iou"));
  EXPECT_TRUE(contains(read_text(run / "report.html"), "what a click in the middle of each gives"));
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  EXPECT_EQ(summary["test"]["images"], 4);
  EXPECT_EQ(summary["test"]["click_iou"], result.test->scores[0].value);
  EXPECT_EQ(summary["test"]["box_iou"], result.test->scores[1].value);
  EXPECT_NE(result.test->scores[0].value, result.test->scores[1].value);
  EXPECT_TRUE(summary["held_out"].contains("click_iou"));
  EXPECT_EQ(summary["finished"], true);
  EXPECT_EQ(summary["epochs"], 2);
  EXPECT_EQ(summary["training_images"], 12);
  EXPECT_EQ(summary["parameters"], models::load_sam(run / "model").num_parameters());
  EXPECT_EQ(summary["held_out"]["click_iou"], result.best->value);
  EXPECT_EQ(summary["held_out"]["epoch"], result.best_epoch);
  const std::string page = read_text(run / "report.html"), card = read_text(run / "model/README.md");
  for (const Score& score : result.test->scores) {
    const std::string& title = score.title;
    char text[16];
    std::snprintf(text, sizeof text, "%.3f", score.value);
    EXPECT_TRUE(contains(page, str("<b>", text, "</b><span>", title, " on the test images</span>"))) << page;
    EXPECT_TRUE(contains(card, str("- ", title, " on the test images: ", text, "\n"))) << card;
  }
  EXPECT_TRUE(contains(page, "<b>2</b><span>epochs</span>"));
  EXPECT_TRUE(contains(page, "<b>12</b><span>training images</span>"));
  EXPECT_TRUE(contains(card, "Trained from scratch on 12 images with masks of `" + instances.string() + "`"));
  EXPECT_FALSE(fs::exists(run / "embeddings"));  // the encoder is trained
}

TEST(SegmentRun, KeepsThePreprocessingOfMedsam) {
  const fs::path run = testing::scratch_folder() / "run", init = testing::sam_fixture("medsam").model;
  train_to(run, segment_recipe(make_instances(), {"epochs=1", "model={\"init\": \"" + init.string() + "\"}"}));
  EXPECT_EQ(models::load_sam(run / "model").config().preprocessing, models::SamPreprocessing::medsam);
}

TEST(SegmentRun, TrainsInBf16) {
  const fs::path instances = make_instances();
  double losses[2];
  for (const char* precision : {"fp32", "bf16"}) {
    const fs::path run = testing::scratch_folder() / precision;
    EXPECT_EQ(train_to(run, segment_recipe(instances, {std::string("precision=") + precision})).step, 6);
    const std::string metrics = read_text(run / "metrics.csv");  // event,step,epoch,loss,…
    const std::string row = metrics.substr(metrics.find("\ntrain,") + 1);
    losses[precision[0] == 'b'] = std::stod(row.substr(row.find(',', row.find(',', 6) + 1) + 1));
  }
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NEAR(losses[0], losses[1],
              0.05 * losses[0]);  // the first step's, of the same weights: some dozen roundings to 8 bits
}

// An epoch's evaluation is that of the saved model.
TEST(SegmentRun, ModelFolderGivesTheResultsOfTheRun) {
  const fs::path instances = make_instances(), run = testing::scratch_folder() / "run";
  const TrainingResult result = train_to(run, segment_recipe(instances, {"ema=null"}));
  const sam::Predictor predictor(run / "model", {.threads = 2});
  EXPECT_EQ(predictor.image_size(), 32);
  const auto again = sam::evaluate_masks(predictor, *sam::open_instances(instances, "val"));
  EXPECT_EQ(again.masks, 8);
  EXPECT_DOUBLE_EQ(again.click_best, result.best->value);
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  EXPECT_DOUBLE_EQ(summary["held_out"]["loss"], 1 - (again.click_best + again.three_clicks + again.box) / 3);
  EXPECT_EQ(summary["held_out"]["images"], 4);
}

// The test of the best weights leaves the last ones in the checkpoint, from which a longer run goes on.
TEST(SegmentRun, TheCheckpointOfAFinishedRunHasTheLastWeights) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = segment_recipe(make_instances(4, 2), {"optimizer.lr=0.5", "ema=null", "epochs=2", "clip=0"});
  const TrainingResult result = train_to(run, recipe);
  const CheckpointState state = load_checkpoint(run / "checkpoints/last.safetensors");
  const models::Sam last = models::load_sam(run / "last"), best = models::load_sam(run / "model");
  bool differs = false;
  for (const nn::NamedTensor& tensor : state.model) {
    EXPECT_TRUE(testing::close(tensor.tensor, last.parameter(tensor.name), 0)) << tensor.name;
    differs = differs || !testing::close(tensor.tensor, best.parameter(tensor.name), 0);
  }
  EXPECT_EQ(differs, result.best_epoch < 2);
}

TEST(SegmentRun, TellsOnResumeThatItsImagesHaveChanged) {
  const fs::path instances = make_instances(), run = testing::scratch_folder() / "run";
  const Recipe recipe = segment_recipe(instances, {"epochs=1"});
  train_to(run, recipe);
  fs::remove(instances / "train/03.png");
  fs::remove_all(instances / "train/03");
  const Warnings warnings;
  train_to(run, recipe, true);
  EXPECT_TRUE(warnings.any("training images: 12 → 11")) << ::testing::PrintToString(warnings.messages);
  EXPECT_FALSE(warnings.any("validation images: 4"));
}

TEST(SegmentRun, StoppedAndResumedGivesTheBitsOfAnUninterruptedRun) {
  const fs::path instances = make_instances();
  for (const char* encoder : {"segment.train_encoder=true", "segment.train_encoder=false"}) {
    const fs::path scratch = testing::scratch_folder();
    const Recipe recipe = segment_recipe(instances, {encoder, "accumulate=2"});
    train_to(scratch / "whole", recipe);
    EXPECT_TRUE(train_to(scratch / "parts", recipe, false, 1).stopped);  // within the first epoch
    EXPECT_TRUE(train_to(scratch / "parts", recipe, true, 3).stopped);   // in an evaluation
    EXPECT_FALSE(train_to(scratch / "parts", recipe, true).stopped);
    expect_same_runs(scratch / "whole", scratch / "parts");
  }
}

TEST(SegmentRun, FrozenEncoderKeepsItsBlocksAndTrainsTheNeck) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = segment_recipe(make_instances(), {"segment.train_encoder=false", "ema=null"});
  train_to(run, recipe);
  RandomParams random(recipe.seed);
  const models::Sam trained = models::load_sam(run / "last");
  const models::Sam initial(trained.config(), ParamSource(random));
  for (const nn::NamedTensor& parameter : initial.named_parameters()) {
    const bool encoder = parameter.name.starts_with("image_encoder."),
               neck = parameter.name.find("neck.") != std::string::npos;
    const bool fixed = (encoder && !neck) || parameter.name.find("gaussian") != std::string::npos;
    const bool changed = !testing::close(trained.parameter(parameter.name), parameter.tensor, 0);
    // In two rounds of clicks and boxes every other parameter has a gradient.
    EXPECT_NE(changed, fixed) << parameter.name;
  }
  EXPECT_GE(std::distance(fs::directory_iterator(run / "embeddings"), fs::directory_iterator()), 12);
}

// Objects of 120 of 768 pixels: a mask of everything has an IoU of 0.16, one of half of the image at most 0.32.
TEST(SegmentRun, LearnsWhatABoxMeans) {
  const fs::path run = testing::scratch_folder() / "run";
  const TrainingResult result = train_to(
      run, segment_recipe(make_instances(32), {"epochs=24", "optimizer.lr=0.004", "ema=null", "validate_every=24"}));
  EXPECT_GT(result.best->value, 0.5);
}

TEST(SegmentRun, SkipsAndCountsUnreadableFilesIfTheRecipeSaysSo) {
  const fs::path instances = make_instances(), scratch = testing::scratch_folder();
  write_file(instances / "train" / "03.png", "no image");
  const std::string message = error_of([&] { train_to(scratch / "a", segment_recipe(instances)); });
  EXPECT_TRUE(contains(message, "03.png")) << message;
  const Warnings warnings;
  const TrainingResult result = train_to(scratch / "b", segment_recipe(instances, {"data.unreadable=skip"}));
  EXPECT_EQ(result.skipped_images, 1);
  EXPECT_TRUE(warnings.any("03.png"));
  EXPECT_EQ(warnings.messages.size(), 1u);                   // once, not once an epoch
  for (const char* seed : {"seed=1", "seed=2", "seed=3"}) {  // the last step of some does not meet the file again
    const Recipe recipe = segment_recipe(instances, {"data.unreadable=skip", "validate_every=2", seed});
    train_to(scratch / seed, recipe, false, 5);
    EXPECT_EQ(train_to(scratch / seed, recipe, true).skipped_images, 1) << seed;
  }
}

TEST(SegmentRun, RefusesSettingsThatMasksHaveNoUseFor) {
  const fs::path instances = make_instances();
  for (const auto& [setting, expected] : {std::pair{"augment.mixup=0.2", "augment: expected only \"flip\""},
                                          {"loss.label_smoothing=0.1", "loss: "},
                                          {"data.crop_pct=0.9", "data: expected no preprocessing"},
                                          {"token_drop={}", "token_drop"},
                                          {"segment.decoder_dim=24", "multiple of 16"},
                                          {"segment.rounds=0", "segment.rounds"},
                                          {"segment.focal_gamma=0.5", "focal_gamma"},
                                          {"segment.size=3", "segment.size"}}) {
    const std::string message = error_of([&, s = setting] { segment_recipe(instances, {s}); });
    EXPECT_TRUE(contains(message, expected)) << message;
  }
  EXPECT_TRUE(contains(error_of([&] { segment_recipe(instances, {"objective=classify"}); }), "segment"));
  for (const auto& [setting, expected] : {std::pair{"segment.image_size=33", "a multiple of the patch size 8"},
                                          {"segment.window=4", "smaller than the grid"},
                                          {"model.qk_norm=true", "another attention"}}) {
    const Recipe recipe = segment_recipe(instances, {setting});
    const std::string message = error_of([&] { train_to(testing::scratch_folder() / "run", recipe); });
    EXPECT_TRUE(contains(message, expected)) << message;
  }
}

TEST(SegmentRun, TheReportHasTheNumbersOfTheRun) {
  const fs::path instances = make_instances(5, 2), run = testing::scratch_folder() / "my run";
  const Recipe recipe =
      segment_recipe(instances, {"data.test=" + instances.string(), "data.test_split=val", "epochs=3", "ema.decay=0"});
  const TrainingResult result = train_to(run, recipe);
  const std::string page = read_text(run / "report.html"), card = read_text(run / "model/README.md");
  const auto three_digits = [](double value) {
    char text[16];
    std::snprintf(text, sizeof text, "%.3f", value);
    return std::string(text);
  };
  EXPECT_TRUE(contains(page, "<h1>my run</h1>\n<p class=\"sub\">Segment Anything on " + instances.string() + "</p>"));
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  const bool average = summary["held_out"]["averaged_weights"].get<bool>();
  EXPECT_TRUE(contains(page, "<b>" + three_digits(result.best->value) +
                                 str("</b><span>best validation mean IoU for one click, epoch ", result.best_epoch,
                                     average ? ", EMA weights" : "", "</span>")))
      << page;
  EXPECT_EQ(summary["held_out"]["epoch"], result.best_epoch);
  EXPECT_EQ(summary["held_out"]["images"], 2);
  EXPECT_EQ(summary["test"]["loss"], result.test->loss);
  EXPECT_GT(summary["seconds"], 0);
  EXPECT_EQ(summary["seconds"], result.seconds);
  EXPECT_EQ(summary["skipped_images"], 0);
  EXPECT_EQ(summary["skipped_steps"], 0);
  EXPECT_FALSE(contains(page, "skipped"));
  for (const char* chart : {"<h3>Loss</h3>", "<h3>Mean IoU for one click</h3>", "<h3>Learning rate</h3>"})
    EXPECT_TRUE(contains(page, chart)) << chart;
  const size_t masks = page.find("<h2>Masks: "), end = page.find("</div>", masks);
  ASSERT_NE(masks, page.npos);
  const std::string overlays = page.substr(masks, end - masks);
  EXPECT_EQ(std::count(overlays.begin(), overlays.end(), '\n'), 1 + 1 + 4) << "two images, as they are and predicted";
  const std::string held_out = "best validation mean IoU for one click, epoch " + std::to_string(result.best_epoch) +
                               (average ? ", EMA weights" : "");
  EXPECT_EQ(card,
            "---\nlibrary_name: vitrail\npipeline_tag: mask-generation\ntags: [segment-anything]\n---\n"
            "# Segment Anything\n\nTrained from scratch on 5 images with masks of `" +
                instances.string() +
                "`.\n\n```sh\nvitrail segment -m FOLDER IMAGE --point X,Y -o masks    # FOLDER: the folder of this "
                "file\n```\n\n## Results\n\n- mean IoU for one click on the test images: " +
                three_digits(result.test->scores[0].value) +
                "\n- mean IoU for a box on the test images: " + three_digits(result.test->scores[1].value) + "\n- " +
                held_out + ": " + three_digits(result.best->value) +
                "\n\nThe run's `recipe.json` has all settings, `report.html` the curves and masks.\n");
}

TEST(SegmentRun, WithoutHeldOutImagesTheCardSaysSo) {
  const fs::path instances = make_instances(4, 1), run = testing::scratch_folder() / "run";
  const TrainingResult result =
      train_to(run, segment_recipe(instances, {"data.val=\"\"", "data.holdout=0", "epochs=1", "ema=null"}));
  EXPECT_FALSE(result.best.has_value() || result.test.has_value());
  EXPECT_EQ(result.validation_images, 0);
  EXPECT_TRUE(contains(read_text(run / "model/README.md"), "## Results\n\nNo images were held out.\n\nThe run's"));
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  EXPECT_FALSE(summary.contains("held_out") || summary.contains("test"));
  EXPECT_FALSE(contains(read_text(run / "report.html"), "<h2>Masks"));
  const std::string error = error_of([&] { train_to(run, segment_recipe(instances)); });
  EXPECT_TRUE(contains(error, "--resume")) << error;
}

TEST(SegmentRun, SeveralProcessesAreAnError) {
  const Recipe recipe = segment_recipe(make_instances(2, 1));
  dist::testing::run_ranks(2, [&](const std::shared_ptr<dist::Communicator>& communicator) {
    EXPECT_EQ(
        error_of([&] { train(recipe, {.folder = testing::scratch_folder() / "run", .communicator = communicator}); }),
        "objective: expected one process for \"segment\", got 2 processes");
  });
}

// A folder that several runs share has the frozen blocks' outputs: one for each image and flip.
TEST(SegmentRun, TheCacheMayBeElsewhere) {
  const fs::path instances = make_instances(3, 1), scratch = testing::scratch_folder(), cache = scratch / "cache";
  const Recipe recipe = segment_recipe(
      instances, {"segment.train_encoder=false", "segment.cache=" + cache.string(), "augment.flip=none"});
  train_to(scratch / "run", recipe);
  EXPECT_FALSE(fs::exists(scratch / "run/embeddings"));
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::recursive_directory_iterator(cache)) files += entry.is_regular_file();
  EXPECT_EQ(files, 3);
}

TEST(SegmentRun, HeldOutFilesThatCannotBeReadAreToldAndNotCounted) {
  const fs::path instances = make_instances(4, 3), scratch = testing::scratch_folder();
  write_file(instances / "val/01.png", "no image");
  std::vector<std::string> skipped;
  TrainerCallbacks callbacks;
  callbacks.message = [&](const std::string& message) {
    if (message.starts_with("skipped: ")) skipped.push_back(message);
  };
  const Recipe recipe = segment_recipe(instances, {"data.unreadable=skip", "epochs=1", "ema=null"});
  const TrainingResult result = train(recipe, {.folder = scratch / "a", .threads = 1}, callbacks);
  EXPECT_EQ(result.validation_images, 2);
  EXPECT_EQ(result.skipped_images, 0) << "of the training images";
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_TRUE(contains(skipped[0], "val/01.png")) << skipped[0];
  const std::string message = error_of([&] { train_to(scratch / "b", segment_recipe(instances, {"epochs=1"})); });
  EXPECT_TRUE(contains(message, "val/01.png")) << message;
}

TEST(SegmentRun, TheReportShowsSixImagesAndTheirPredictedMasks) {
  const fs::path run = testing::scratch_folder() / "run";
  train_to(run, segment_recipe(make_instances(2, 7), {"epochs=1", "ema=null"}));
  const std::string page = read_text(run / "report.html");
  const std::string overlays = page.substr(page.find("<h2>Masks: "));
  int images = 0;
  for (size_t at = overlays.find("<img"); at != overlays.npos; at = overlays.find("<img", at + 1)) ++images;
  EXPECT_EQ(images, 12);
}

}  // namespace
}  // namespace vitrail::train
