// SPDX-License-Identifier: Apache-2.0
// Which weights a run keeps.
#include <cmath>
#include <map>

#include "tests/support/golden.h"
#include "tests/train/training_fixture.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/load.h"
#include "vitrail/train/objectives/classification/evaluation_internal.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/loader_setup_internal.h"
#include "vitrail/train/run/quality.h"
#include "vitrail/train/trainer.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::train {
namespace {

TEST(Score, LowerLossIsBetterThenHigherAccuracy) {
  const double nan = std::nan("");
  EXPECT_TRUE(better({0.4, 1}, {0.5, 9}));
  EXPECT_FALSE(better({0.5, 9}, {0.4, 1}));
  EXPECT_TRUE(better({0.5, 1}, {0.4, 1}));
  EXPECT_FALSE(better({0.4, 1}, {0.5, 1}));
  EXPECT_TRUE(better({0.5, nan}, {0.4, nan}));
  EXPECT_FALSE(better({0.5, 1}, {0.5, 1}));
  EXPECT_TRUE(better({0.5, 1}, {0.5, nan}));
  EXPECT_FALSE(better({0.5, nan}, {0.5, 1}));
  EXPECT_FALSE(better({0.5, nan}, {0.5, nan}));
  EXPECT_TRUE(better({0, nan}, {}));
}

// A run whose weights after each epoch are known.
struct Observed {
  TrainingResult result;
  std::vector<EpochResult> epochs;
  std::vector<CheckpointState> states;  // after each epoch
  std::vector<std::string> messages;
};

Observed observe(const fs::path& run, const Recipe& recipe) {
  Observed observed;
  TrainerCallbacks callbacks;
  callbacks.message = [&](const std::string& message) { observed.messages.push_back(message); };
  callbacks.epoch = [&](const EpochResult& epoch) {
    const fs::path copy = run.parent_path() / ("epoch" + std::to_string(epoch.epoch) + ".safetensors");
    fs::copy_file(run / "checkpoints/last.safetensors", copy, fs::copy_options::overwrite_existing);
    observed.epochs.push_back(epoch);
    observed.states.push_back(load_checkpoint(copy));
  };
  observed.result = train(recipe, {.folder = run, .threads = 1}, callbacks);
  return observed;
}

bool same(const fs::path& file, const std::vector<nn::NamedTensor>& weights) {
  const weights::Checkpoint kept = weights::Checkpoint::open(file);
  for (const nn::NamedTensor& tensor : weights) {
    if (!testing::close(kept.tensor(tensor.name), tensor.tensor, 0)) return false;
  }
  return kept.names().size() == weights.size();
}

// The mean cross-entropy of a model on the test images.
double test_loss_of(const fs::path& folder, const Recipe& recipe) {
  const RunData data = open_data(recipe.data, 3);
  const models::OpenedModel opened = models::open_model(folder);
  models::VisionTransformer model = models::build_model(opened);
  const image::EvalTransform transform = infer::transform_of(opened.config.preprocessing, "model");
  data::Loader loader =
      evaluation_loader(data.test, training_options(recipe, data, transform, 3, 1, ProcessGroup(nullptr)));
  return evaluate(model, loader, 3, {}).loss;
}

// The states that are kept by the rule: the lowest loss, of equal ones the highest top-1, of equal ones the weights
// before their average, and the latest epoch.  An average with decay 0.9 has warmed up after 10 updates.
struct Kept {
  size_t epoch = 0;
  bool average = false;
  double top1 = -1, loss = 0;
};

Kept expected_of(const Observed& run, int64_t warmed_up_at) {
  Kept kept;
  for (size_t i = 0; i < run.epochs.size(); ++i) {
    const EpochResult& e = run.epochs[i];
    const bool average_is_better =
        e.average->loss < e.validation->loss ||
        (e.average->loss == e.validation->loss && e.average->scores[0].value > e.validation->scores[0].value);
    const bool average = e.average.has_value() && e.step > warmed_up_at && average_is_better;
    const double top1 = average ? e.average->scores[0].value : e.validation->scores[0].value,
                 loss = average ? e.average->loss : e.validation->loss;
    if (kept.top1 < 0 || loss < kept.loss || (loss == kept.loss && top1 >= kept.top1)) kept = {i, average, top1, loss};
  }
  return kept;
}

TEST(BestWeights, AreTheBestOfAllEpochsAsTheyAreOrAveraged) {
  VITRAIL_SKIP_WITH_SANITIZER();
  int early = 0, averages = 0, weights = 0;
  for (const char* rate : {"0.003", "0.05", "0.2"}) {
    for (const char* seed : {"0", "1", "2", "3"}) {
      const fs::path run = testing::scratch_folder() / "run";
      const Recipe recipe =
          parse_recipe(tiny_recipe(make_images()), "r.json",
                       {std::string("optimizer.lr=") + rate, std::string("seed=") + seed, "epochs=6"});
      const Observed observed = observe(run, recipe);
      const Kept kept = expected_of(observed, 10);
      const CheckpointState& state = observed.states[kept.epoch];
      const auto& expected = kept.average ? state.average : state.model;
      EXPECT_TRUE(same(run / "checkpoints/best.safetensors", expected)) << rate << " " << seed;
      EXPECT_TRUE(same(run / "model/model.safetensors", expected)) << rate << " " << seed;
      EXPECT_EQ(observed.result.best_epoch, static_cast<int64_t>(kept.epoch) + 1);
      EXPECT_EQ(observed.result.best->value, kept.top1);
      EXPECT_NEAR(observed.result.test->loss, test_loss_of(run / "model", recipe), 1e-6);
      early += kept.epoch + 1 < observed.epochs.size();
      averages += kept.average;
      weights += !kept.average;
    }
  }
  EXPECT_GT(early, 0);  // otherwise the cases show nothing
  EXPECT_GT(averages, 0);
  EXPECT_GT(weights, 0);
}

// Averaged weights have metrics of their own, and the best of three classes are always among five.
TEST(BestWeights, BothWeightsAreMeasured) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", {"epochs=1", "data.holdout=6"});
  const Observed observed = observe(run, recipe);
  ASSERT_EQ(observed.epochs.size(), 1u);
  const EpochResult& epoch = observed.epochs[0];
  EXPECT_TRUE(epoch.validation.has_value() && epoch.average.has_value());
  EXPECT_EQ(epoch.validation->scores[1].value, 1);
  EXPECT_EQ(epoch.average->scores[1].value, 1);
  EXPECT_EQ(epoch.validation->images, 6);
  EXPECT_NE(epoch.average->loss, epoch.validation->loss);
  EXPECT_TRUE(same(run / "checkpoints/ema.safetensors", observed.states[0].average));
  EXPECT_FALSE(same(run / "checkpoints/ema.safetensors", observed.states[0].model));
}

TEST(BestWeights, OfEqualResultsTheLaterEpochIsKept) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", {"optimizer.lr=0"});
  const Observed observed = observe(run, recipe);
  EXPECT_EQ(observed.result.best_epoch, 3);
}

TEST(BestWeights, WithNothingHeldOutTheLastWeightsAreKeptAsTheMessageSays) {
  for (const char* ema : {"null", "{\"decay\": 0.9999}", "{\"decay\": 0.5}", "{\"decay\": 0.9999, \"warmup\": true}"}) {
    const fs::path images = make_images(), run = testing::scratch_folder() / "run";
    const Recipe recipe = parse_recipe(tiny_recipe(images / "train"), "r.json",
                                       {"data.val=null", "data.holdout=0", std::string("ema=") + ema});
    Warnings warnings;
    const Observed observed = observe(run, recipe);
    EXPECT_TRUE(same(run / "model/model.safetensors", observed.states.back().model)) << ema;
    EXPECT_FALSE(observed.result.best.has_value()) << ema;
    EXPECT_EQ(observed.result.best_epoch, 3) << ema;
    const bool said = std::any_of(observed.messages.begin(), observed.messages.end(), [](const std::string& message) {
      return contains(message, "the last weights are kept");
    });
    EXPECT_TRUE(said) << ema;
    EXPECT_EQ(warnings.any("ema: the average is not used, because no validation images"), std::string(ema) != "null");
  }
}

TEST(BestWeights, AnAverageThatHasNotWarmedUpIsNotKept) {
  const fs::path run = testing::scratch_folder() / "run";
  // Training destroys the weights of the first step, so that the average of the slow decay is the better one.
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json",
                                     {"ema.decay=0.999", "optimizer.lr=3", "schedule.warmup_epochs=0", "clip=0"});
  const Observed observed = observe(run, recipe);
  EXPECT_FALSE(expected_of(observed, 1000).average);
  const Kept kept = expected_of(observed, 1000);
  EXPECT_TRUE(same(run / "checkpoints/best.safetensors", observed.states[kept.epoch].model));
}

TEST(BestWeights, PatienceEndsTheRunAndKeepsTheBest) {
  const fs::path run = testing::scratch_folder() / "run";
  // The rate destroys the weights, so that the first epochs are the best.
  const std::vector<std::string> settings{"epochs=30", "patience=2", "optimizer.lr=0.3", "ema=null"};
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", settings);
  const Observed observed = observe(run, recipe);
  const auto epochs = static_cast<int64_t>(observed.epochs.size());
  ASSERT_LT(epochs, 30);
  EXPECT_EQ(epochs, observed.result.best_epoch + 2);
  EXPECT_TRUE(observed.result.test.has_value());
  const CheckpointState& best = observed.states[static_cast<size_t>(observed.result.best_epoch - 1)];
  EXPECT_TRUE(same(run / "model/model.safetensors", best.model));
  EXPECT_TRUE(same(run / "last/model.safetensors", observed.states.back().model));
  // The test of the best weights leaves the last ones in the checkpoint, from which a longer run goes on.
  EXPECT_TRUE(same(run / "last/model.safetensors", load_checkpoint(run / "checkpoints/last.safetensors").model));
  EXPECT_FALSE(same(run / "model/model.safetensors", observed.states.back().model));

  const TrainingResult again = train(recipe, {.folder = run, .resume = true, .threads = 1});
  EXPECT_EQ(again.epoch, epochs);  // the run is over
  EXPECT_EQ(again.test->scores[0].value, observed.result.test->scores[0].value);
}

}  // namespace
}  // namespace vitrail::train
