// SPDX-License-Identifier: Apache-2.0
// vitrail explain RUN: the page of a training run against the kept models and metrics.csv.

#include "tests/apps/metric_rows.h"
#include "tests/apps/option_effects.h"
#include "tests/support/golden.h"
#include "tests/support/learning_page.h"
#include "vitrail/train/run/run_history.h"

namespace vitrail::testing {
namespace fs = std::filesystem;
namespace {

using OrderedJson = nlohmann::ordered_json;

// A run of three epochs that keeps the models of epochs 0, 2 and 3.
struct ExplainRunTest : ::testing::Test {
  static void SetUpTestSuite() {
    images_ = new fs::path(train::make_images());
    run_ = new fs::path(*images_ / "run");
    const fs::path recipe = *images_ / "recipe.json";
    train::write_file(recipe, train::tiny_recipe(*images_));
    const ProgramResult trained = run_program({"train", recipe, "-o", *run_, "--set", "explain.every=2"});
    ASSERT_EQ(trained.status, 0) << trained.err;
  }
  static void TearDownTestSuite() {
    delete run_;
    delete images_;
  }

  // The page of the run with more arguments.
  static ReadPage page_with(const Arguments& more = {}) {
    const fs::path file = scratch_folder() / "page.html";
    const ProgramResult result = run_program(Arguments{"explain", *run_, "-o", file} + more);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, str(file.string(), ": ", fs::file_size(file), " bytes\n"));
    ReadPage page;
    page.read({.html = train::read_text(file)});
    return page;
  }

  static inline fs::path *images_ = nullptr, *run_ = nullptr;
};

TEST_F(ExplainRunTest, KeepsTheModelsThatTheRecipeAsksFor) {
  std::vector<int64_t> epochs;
  for (const train::KeptModel& model : train::kept_models(*run_)) {
    epochs.push_back(model.epoch);
    EXPECT_EQ(model.folder, *run_ / train::kept_folder(model.epoch));
  }
  EXPECT_EQ(epochs, (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(train::read_text(*run_ / "explain/epoch-0003/model.safetensors"),
            train::read_text(*run_ / "last/model.safetensors"));
}

TEST_F(ExplainRunTest, HasThePredictionsOfTheKeptModels) {
  const ReadPage page = page_with();
  const auto& training = page.manifest["training"];
  EXPECT_EQ(training["epochs"], (OrderedJson{0, 2, 3}));
  ASSERT_EQ(training["images"].size(), 4U);
  const auto& flips = training["flips"];
  EXPECT_EQ(flips["images"], 12);
  EXPECT_EQ(flips["steps"].size(), 3U);
  const Tensor probability = page.array("training.lens.probability"), best = page.array("training.lens.class");
  const int64_t depth = probability.size(2);
  for (int64_t kept = 0; kept < 3; ++kept) {
    const std::string model = *run_ / train::kept_folder(training["epochs"][static_cast<size_t>(kept)].get<int64_t>());
    for (int64_t i = 0; i < 4; ++i) {
      const auto& image = training["images"][static_cast<size_t>(i)];
      const std::string label = page.manifest["classes"][image["label"].dump()];
      const fs::path file = *images_ / "train" / label / image["name"].get<std::string>();
      const OrderedJson classes = OrderedJson::parse(
          run_program({"classify", "-m", model, file.string(), "--top", "3", "--format", "json"}).out)["predictions"];
      const int64_t at = (kept * 4 + i) * depth + depth - 1;
      EXPECT_EQ(classes[0]["index"], static_cast<int64_t>(best.data<float>()[at]));
      for (const OrderedJson& each : classes) {
        if (each["index"] != image["label"]) continue;
        EXPECT_NEAR(each["probability"].get<double>(), static_cast<double>(probability.data<float>()[at]), 1e-4);
      }
    }
  }
}

// A flip is a change between two neighbouring kept models, and what is right adds up.
TEST_F(ExplainRunTest, CountsWhatChanges) {
  const ReadPage page = page_with();
  const auto& flips = page.manifest["training"]["flips"];
  for (size_t i = 1; i < flips["steps"].size(); ++i) {
    const auto &before = flips["steps"][i - 1], &step = flips["steps"][i];
    EXPECT_EQ(step["right"].get<int>(),
              before["right"].get<int>() + step["gained"].get<int>() - step["lost"].get<int>());
  }
  EXPECT_EQ(flips["rows"].size(), flips["changed"].get<size_t>());
  for (const auto& row : flips["rows"]) {
    const auto predictions = row["predictions"].get<std::vector<int>>();
    EXPECT_NE(std::set<int>(predictions.begin(), predictions.end()).size(), 1U) << row["name"];
  }
}

TEST_F(ExplainRunTest, HasTheCurvesOfTheRun) {
  const ReadPage page = page_with();
  std::map<std::string, size_t> curves;
  for (const auto& curve : page.manifest["training"]["curves"]) {
    curves[curve["event"].get<std::string>() + " " + curve["quantity"].get<std::string>()] = curve["values"].size();
    EXPECT_EQ(curve["epochs"].size(), curve["values"].size());
  }
  const auto rows = metric_rows(*run_);
  const auto count = [&](const std::string& event) {
    return static_cast<size_t>(std::ranges::count_if(rows, [&](const auto& row) { return row.at("event") == event; }));
  };
  EXPECT_EQ(curves["train loss"], count("train"));
  EXPECT_EQ(curves["val loss"], count("val"));
  EXPECT_EQ(curves["val top1"], count("val"));
  EXPECT_FALSE(curves.contains("test loss"));
}

// The start of a run is a validation, too; test rows are no curve.
TEST(RunCurves, BeginWithTheStart) {
  const fs::path run = scratch_folder();
  train::write_file(run / "metrics.csv",
                    "event,step,epoch,loss,knn,learning_rate\nstart,0,0,2.5,0.3,\ntrain,1,0.5,2,,1e-3\n"
                    "val,2,1,1.5,0.4,\nval_ema,2,1,1.25,,\ntest,2,1,9,9,\nval,3,");
  std::string text;
  for (const auto& [event, column, epochs, values] : train::run_curves(run)) {
    text += event + " " + column + ":";
    for (size_t i = 0; i < values.size(); ++i) text += str(" ", epochs[i], "/", values[i]);
    text += "\n";
  }
  EXPECT_EQ(text, "val loss: 0/2.5 1/1.5\nval knn: 0/0.3 1/0.4\ntrain loss: 0.5/2\nval_ema loss: 1/1.25\n");
}

TEST_F(ExplainRunTest, FollowsImagesThatAreGiven) {
  const fs::path image = *images_ / "test/red/00.png";
  const ReadPage page = page_with({image});
  ASSERT_EQ(page.manifest["training"]["images"].size(), 1U);
  EXPECT_EQ(page.manifest["training"]["images"][0]["name"], "00.png");
  EXPECT_EQ(page.manifest["training"]["images"][0]["label"], -1);
  const Tensor attention = page.array("training.attention"), norms = page.array("training.norms");
  ASSERT_EQ(attention.shape(), (Shape{3, 1, 2, 4}));
  for (int64_t kept = 0; kept < 3; ++kept) {
    const int64_t epoch = page.manifest["training"]["epochs"][static_cast<size_t>(kept)];
    const Model model(*run_ / train::kept_folder(epoch));
    const image::Image photo = model.read(image);
    for (const int64_t block : {0, 1}) {
      const Tensor want = model.attention(photo, {.layer = block});
      EXPECT_TRUE(close(attention.select(0, kept).select(0, 0).select(0, block), want.view({4}), 1e-3)) << epoch;
    }
  }
  EXPECT_EQ(norms.shape(), (Shape{3, 1, 2, 5}));
}

TEST_F(ExplainRunTest, RefusesWhatItCannotShow) {
  const auto refused = [&](const Arguments& more, int status = 2) {
    const ProgramResult result = run_program(Arguments{"explain", *run_} + more);
    EXPECT_EQ(result.status, status) << result.err;
    return result.err;
  };
  EXPECT_TRUE(contains(refused({"-o", "pages"}), "-o: expected PAGE.html for a training run, got 'pages'"));
  EXPECT_TRUE(contains(refused({"-o", "x.html", "-m", "model"}), "--model: does not apply to a training run"));
  EXPECT_TRUE(contains(refused({"-o", "x.html", "--class", "red"}), "--class: does not apply to a training run"));
  EXPECT_TRUE(contains(refused({"-o", "x.html", "--labels", "red"}), "--labels: does not apply to a training run"));
  const fs::path other = scratch_folder();
  fs::copy(*run_, other, fs::copy_options::recursive);
  fs::remove_all(other / "explain");
  const ProgramResult without = run_program({"explain", other, "-o", "x.html"});
  EXPECT_EQ(without.status, 1);
  EXPECT_TRUE(contains(without.err, "expected models of a run that was trained with --set explain.every=N, got none"))
      << without.err;
}

}  // namespace
}  // namespace vitrail::testing
