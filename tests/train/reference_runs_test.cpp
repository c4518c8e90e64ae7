// SPDX-License-Identifier: Apache-2.0
// Complete runs of train() compared with PyTorch and timm, each option of a recipe alone and all together
// (tools/golden/train_runs.py).
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/train/metrics_comparison.h"
#include "vitrail/models/model_config.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

using nlohmann::json;

const testing::Golden& golden() {
  static const testing::Golden fixture = testing::read_golden(testing::fixture("train/runs.safetensors"));
  return fixture;
}

const json& config() {
  static const json parsed = json::parse(golden().config);
  return parsed;
}

// Writes the fixture's images as class folders whose order is that of the fixture.
void write_images(const fs::path& folder) {
  const Tensor &pixels = golden()["pixels"], &labels = golden()["labels"];
  for (int64_t i = 0; i < pixels.size(0); ++i) {
    image::Image image = image::make_image(8, 8, 3);
    std::memcpy(image.pixels.data(), pixels.data<uint8_t>() + i * 192, 192);
    const fs::path name = "class_" + std::to_string(labels.data<int64_t>()[i]);
    fs::create_directories(folder / name);
    image::write_png(folder / name / ((i < 10 ? "0" : "") + std::to_string(i) + ".png"), image);
  }
}

// The images with several labels, as tools/golden/train_runs.py has them.
void write_label_list(const fs::path& folder) {
  std::ofstream list(folder / "labels.csv");
  list << "file,labels\n";
  const Tensor& labels = golden()["labels"];
  for (int64_t i = 0; i < labels.numel(); ++i) {
    const int64_t label = labels.data<int64_t>()[i];
    list << "images/class_" << label << "/" << (i < 10 ? "0" : "") << i << ".png,";
    if (i % 5 != 0) list << label << (i % 2 == 0 ? "|" + std::to_string((label + 1) % 4) : "");
    list << "\n";
  }
}

void write_initial_model(const fs::path& folder) {
  json args = config().at("model");
  args["num_classes"] = 4;
  const json file{{"architecture", "vit"}, {"model_args", args}};
  std::vector<nn::NamedTensor> weights;
  for (const auto& [name, tensor] : golden().tensors) {
    if (name.starts_with("before.")) weights.push_back({name.substr(7), tensor});
  }
  write_model(folder, models::write_model_config(models::parse_model_config(file.dump(), "", "fixture")), weights);
}

std::string recipe_of(const json& settings, const fs::path& folder) {
  json recipe = settings;
  recipe["model"].update(config().at("model"));
  recipe["model"]["init"] = (folder / "init").string();
  const bool several = fs::exists(folder / "labels.csv");
  const fs::path data = folder / (several ? "labels.csv" : "images");
  recipe["data"] = {{"train", data.string()}, {"holdout", 0}, {"workers", 1}};
  recipe["batch_size"] = config().at("batch_size");
  recipe["log_every"] = 1;
  recipe["checkpoint"] = {{"every_minutes", 0}};
  return recipe.dump();
}

// Every stride-th element of all tensors in the order of their names.  Biases of keys count as 0, as in the fixture:
// softmax cancels them, so that their gradient is rounding.
std::vector<double> sampled(const std::vector<nn::NamedTensor>& tensors) {
  std::map<std::string, Tensor> sorted;
  for (const nn::NamedTensor& tensor : tensors) {
    sorted[tensor.name] = tensor.tensor.to(DType::f64).contiguous().clone();
    if (!tensor.name.ends_with("attn.qkv.bias")) continue;
    double* const values = sorted[tensor.name].data<double>();
    std::fill(values + tensor.tensor.numel() / 3, values + 2 * tensor.tensor.numel() / 3, 0.0);
  }
  std::vector<double> values, kept;
  for (const auto& [name, tensor] : sorted)
    values.insert(values.end(), tensor.data<double>(), tensor.data<double>() + tensor.numel());
  for (size_t i = 0; i < values.size(); i += config().at("stride").get<size_t>()) kept.push_back(values[i]);
  return kept;
}

// The largest |got − want| / (1 + |want|).
double largest_error(const std::vector<double>& got, const Tensor& want) {
  const Tensor expected = want.to(DType::f64);
  EXPECT_EQ(got.size(), static_cast<size_t>(expected.numel()));
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double value = expected.data<double>()[i], error = std::abs(got[i] - value) / (1 + std::abs(value));
    if (!(error <= largest)) largest = error;  // NaN too
  }
  return largest;
}

class ReferenceRuns : public ::testing::TestWithParam<std::string> {};

// Tolerances: vitrail trains in f32, the reference in f64.  A forward pass has some 20 sums of 16 to 48 terms, 64 ε of
// rounding in all, and every step adds as much.  AdamW divides by √v, which amplifies the rounding of an element with a
// small gradient up to the learning rate; such elements hardly change the loss.
TEST_P(ReferenceRuns, RatesLossesGradientNormsAndWeightsAreThoseOfTheReference) {
  constexpr double kEpsilon = 0x1p-23;
  const fs::path folder = testing::scratch_folder();
  write_images(folder / "images");
  write_initial_model(folder / "init");
  const std::string name = GetParam();
  if (name == "several_labels") write_label_list(folder);
  const Recipe recipe = parse_recipe(recipe_of(config().at("recipes").at(name), folder), "recipe");
  const TrainingResult result = train(recipe, {.folder = folder / "run", .threads = 2});
  EXPECT_EQ(result.step, 20);
  const auto reference = [&](const char* what) -> const Tensor& { return golden()[name + "/" + what]; };
  EXPECT_LT(largest_error(train_column(folder / "run", Column::rate), reference("rates")), 1e-15);
  EXPECT_LT(largest_error(train_column(folder / "run", Column::loss), reference("losses")), 64 * 20 * kEpsilon);
  EXPECT_LT(largest_error(train_column(folder / "run", Column::gradient_norm), reference("norms")), 64 * 20 * kEpsilon);
  const CheckpointState state = load_checkpoint(folder / "run/checkpoints/last.safetensors");
  EXPECT_LT(largest_error(sampled(state.model), reference("weights")), 64 * 20 * kEpsilon);
  EXPECT_EQ(!state.average.empty(), golden().has(name + "/average"));
  if (!state.average.empty()) {
    EXPECT_LT(largest_error(sampled(state.average), reference("average")), 64 * 20 * kEpsilon);
  }
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& item : config().at("recipes").items()) names.push_back(item.key());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Options, ReferenceRuns, ::testing::ValuesIn(case_names()),
                         [](const auto& info) { return info.param; });

// Otherwise a case could pass although its option has no effect.
TEST(ReferenceRunsFixture, EveryOptionChangesTheResult) {
  const Tensor& plain = golden()["plain/weights"];
  for (const std::string& name : case_names()) {
    const bool only_averages = name == "plain" || name.starts_with("ema");
    const Tensor weights = golden()[name + "/weights"].to(DType::f64);
    const std::vector<double> values(weights.data<double>(), weights.data<double>() + weights.numel());
    EXPECT_EQ(largest_error(values, plain) > 1e-3, !only_averages) << name;
  }
}

}  // namespace
}  // namespace vitrail::train
