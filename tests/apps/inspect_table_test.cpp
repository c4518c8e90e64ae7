// SPDX-License-Identifier: Apache-2.0
// The tables of inspect: their values are those of the library, at the place and under the name that they have there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/apps/option_effects.h"
#include "tests/support/golden.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/analysis/cka.h"
#include "vitrail/analysis/token_statistics.h"
#include "vitrail/base/text.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/head_ablation.h"
#include "vitrail/models/hidden_activations.h"
#include "vitrail/models/load.h"
#include "vitrail/models/logit_lens.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

struct Inspected {
  std::string name;
  models::OpenedModel opened;
  models::VisionTransformer model;
  Tensor input(const fs::path& image) const {
    const auto transform = infer::transform_of(opened.config.preprocessing, name);
    return image::apply(image::read_image(image), transform).unsqueeze(0);
  }
};

Inspected opened(const std::string& model) {
  const models::OpenedModel opened = models::open_model(model);
  return {model, opened, models::build_model(opened)};
}

std::string photo() { return noise_folder() / "a.png"; }

std::vector<std::string> table(const std::string& model, const Arguments& more) {
  return lines_of(run(Arguments{"inspect", "-m", model, "--quiet", "--table"} + more).out);
}

std::vector<double> numbers_of(const std::string& line, size_t count) {
  std::istringstream in(line);
  std::vector<double> numbers(count);
  for (double& number : numbers) in >> number;
  EXPECT_TRUE(in) << line;
  return numbers;
}

TEST(InspectTable, HeadsHaveTheStatisticsOfTheirAttention) {
  const Inspected inspected = opened(fixture("models/timm_reg_tokens"));
  const std::vector<std::string> lines = table(inspected.name, {"heads", "--trace", photo()});
  const Tensor input = inspected.input(photo());
  const models::VisionTransformer& model = inspected.model;
  const analysis::PatchGrid patches{model.grid_of(input.size(2), input.size(3)), model.config().patch_size};
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0], "block  head  entropy  distance  special");
  for (size_t row = 0; row < 6; ++row) {
    const auto block = static_cast<int64_t>(row / 3);
    const Tensor maps = model.attention_maps(input, block).front().select(0, 0);
    const auto head = analysis::head_statistics(maps, model.num_prefix_tokens(), patches)[row % 3];
    const std::vector<double> got = numbers_of(lines[row + 1], 5);
    EXPECT_EQ(got[0], static_cast<double>(block));
    EXPECT_EQ(got[1], static_cast<double>(row % 3));
    EXPECT_NEAR(got[2], head.entropy, 1e-4);
    EXPECT_NEAR(got[3], head.distance, 1e-2);
    EXPECT_NEAR(got[4], head.special, 1e-4);
  }
}

// 16 patches behind the class token: the median is between two of them.
TEST(InspectTable, NormsAreThoseOfPatchesAndOfSpecialTokens) {
  const Inspected inspected = opened(small_model());
  const std::vector<std::string> lines = table(inspected.name, {"norms", "--trace", photo()});
  const auto blocks = inspected.model.intermediates(inspected.input(photo()), {0, 1}, false);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "block        min     median        max  patch artefacts     above  special");
  for (size_t block = 0; block < 2; ++block) {
    const std::vector<double> norms = analysis::token_norms(blocks[block].select(0, 0));
    std::vector<double> sorted(norms.begin() + 1, norms.end());
    std::ranges::sort(sorted);
    const size_t middle = sorted.size() / 2;
    const std::vector<double> got = numbers_of(lines[block + 1], 5);
    EXPECT_NEAR(got[1], sorted.front(), 1e-3);
    EXPECT_NEAR(got[2], (sorted[middle - 1] + sorted[middle]) / 2, 1e-3);
    EXPECT_NEAR(got[3], sorted.back(), 1e-3);
    EXPECT_NEAR(norms[1 + static_cast<size_t>(got[4])], sorted.back(), 1e-9);
    EXPECT_TRUE(lines[block + 1].ends_with(formatted("  %.3f", norms[0]))) << lines[block + 1];
  }
}

// The small model whose sixth patch gets a large position.
fs::path with_outlying_patch() {
  const fs::path folder = with_config("timm_token", [](nlohmann::json&) {});
  std::vector<std::pair<std::string, Tensor>> tensors;
  const Golden model = read_golden(folder / "model.safetensors");
  for (const auto& [name, tensor] : model.tensors) {
    if (name == "pos_embed")
      for (int64_t i = 0; i < tensor.size(2); ++i) tensor.data<float>()[(1 + 5) * tensor.size(2) + i] = 200;
    tensors.emplace_back(name, tensor);
  }
  weights::write_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  return folder;
}

TEST(InspectTable, NormsTellTheShareOfArtefactsAndTheirThreshold) {
  const Inspected inspected = opened(small_model());
  const std::vector<std::string> before = table(inspected.name, {"norms", "--trace", photo()});
  EXPECT_TRUE(contains(before[1], " - ")) << before[1];
  const fs::path folder = with_outlying_patch();
  const std::vector<std::string> after = table(folder, {"norms", "--trace", photo()});
  EXPECT_TRUE(contains(after[1], " 6.25% ")) << after[1];
  const size_t at = after[1].find('%');
  const std::vector<double> norms = numbers_of(after[1], 5);
  const double threshold = std::stod(after[1].substr(at + 1));
  EXPECT_GT(threshold, norms[2]);
  EXPECT_LT(threshold, norms[3]);
  EXPECT_EQ(norms[4], 5);
}

TEST(InspectTable, LensHasTheProbabilitiesOfTheClassAndOfTheBestOnes) {
  const Inspected inspected = opened(small_model());
  const std::vector<std::string> lines = table(inspected.name, {"lens", "--trace", photo(), "--class", "3"});
  const std::vector<Tensor> lens = models::logit_lens(inspected.model, inspected.input(photo()));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], formatted("class 3, logit %.4f", lens[1].data<float>()[3]));
  EXPECT_EQ(lines[1], "block probability  rank  best");
  for (size_t block = 0; block < 2; ++block) {
    const float* const logits = lens[block].data<float>();
    std::vector<std::pair<double, int>> classes;
    double sum = 0;
    for (int i = 0; i < kSmallModelClasses; ++i) sum += std::exp(double{logits[i]});
    for (int i = 0; i < kSmallModelClasses; ++i) classes.emplace_back(-std::exp(double{logits[i]}) / sum, i);
    const double wanted = -classes[3].first;
    std::ranges::sort(classes);
    std::string best;
    for (int i = 0; i < 3; ++i)
      best += formatted(i == 0 ? " %.4f" : "; %.4f", -classes[static_cast<size_t>(i)].first) + " class " +
              std::to_string(classes[static_cast<size_t>(i)].second);
    const std::vector<double> got = numbers_of(lines[block + 2], 3);
    EXPECT_NEAR(got[1], wanted, 1e-4);
    EXPECT_EQ(classes[static_cast<size_t>(got[2]) - 1].second, 3);
    EXPECT_TRUE(lines[block + 2].ends_with(" " + best)) << lines[block + 2] << best;
  }
}

TEST(InspectTable, AblationHasTheChangeOfTheClass) {
  const Inspected inspected = opened(fixture("models/timm_distilled"));
  const Tensor input = inspected.input(photo()), changes = models::head_ablation(inspected.model, input);
  const Tensor logits = inspected.model.forward(input);
  const std::vector<std::string> lines = table(inspected.name, {"ablation", "--trace", photo(), "--class", "7"});
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[0], formatted("class 7, logit %.4f", logits.data<float>()[7]));
  EXPECT_EQ(lines[1], "block  head    change");
  for (int64_t row = 0; row < 6; ++row) {
    const std::vector<double> got = numbers_of(lines[static_cast<size_t>(row) + 2], 3);
    EXPECT_EQ(got[0], static_cast<double>(row / 3));
    EXPECT_EQ(got[1], static_cast<double>(row % 3));
    EXPECT_NEAR(got[2], changes.data<float>()[row * 10 + 7], 1e-4);
  }
}

TEST(InspectTable, ClassesHaveTheirNames) {
  const fs::path folder = with_config("timm_token", [](nlohmann::json& config) {
    for (int i = 0; i < kSmallModelClasses; ++i) config["label_names"].push_back(std::string(1, "abcdefghij"[i]));
  });
  const std::vector<std::string> lines = table(folder, {"lens", "--trace", photo(), "--class", "d"});
  EXPECT_TRUE(lines[0].starts_with("class 3 d, logit ")) << lines[0];
}

// 37 images make two batches, of 18 and 19.
TEST(InspectTable, CkaIsThatOfTheBlocksInBatchesOfAllImages) {
  const Inspected inspected = opened(small_model());
  const fs::path folder = folders_of({{"x", 37}});
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  ASSERT_EQ(files.size(), 37u);
  analysis::LinearCka cka;
  for (const auto& [first, last] : {std::pair<size_t, size_t>{0, 18}, {18, 37}}) {
    std::vector<Tensor> images;
    for (size_t i = first; i < last; ++i) images.push_back(inspected.input(files[i]));
    cka.add(inspected.model.intermediates(ops::cat(images, 0), {0, 1}, false));
  }
  const std::vector<std::string> lines = table(inspected.name, {"cka", "--images", folder});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "block      0      1");
  const Tensor similarities = cka.similarities();
  for (size_t row = 0; row < 2; ++row) {
    const std::vector<double> got = numbers_of(lines[row + 1], 3);
    for (size_t column = 0; column < 2; ++column)
      EXPECT_NEAR(got[column + 1], similarities.data<float>()[row * 2 + column], 1e-3);
  }
  EXPECT_EQ(refusal({"inspect", small_model(), "--table", "cka", "--images", noise_folder()}),
            "vitrail: error: --images: expected at least 16 images, for CKA, got 2\n");
}

TEST(InspectTable, NeuronsNameThePatchesOfTheirLargestActivations) {
  const Inspected inspected = opened(fixture("models/timm_non_square"));  // a grid of 6 × 2
  const std::vector<std::string> lines =
      table(inspected.name, {"neurons", "--neuron", "1.5", "--images", noise_folder()});
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[0], "activation  row column  image");
  double last = std::numeric_limits<double>::infinity(), largest = -last;
  for (const char* name : {"a.png", "b.png"}) {
    const Tensor hidden = models::hidden_activations(inspected.model, inspected.input(noise_folder() / name), 1);
    for (int64_t token = 1; token < hidden.size(1); ++token)
      largest = std::max(largest, double{hidden.data<float>()[token * hidden.size(2) + 5]});
  }
  EXPECT_NEAR(numbers_of(lines[1], 1)[0], largest, 1e-4);
  for (size_t row = 1; row < lines.size(); ++row) {
    const std::vector<double> got = numbers_of(lines[row], 3);
    const fs::path image = lines[row].substr(lines[row].rfind("  ") + 2);
    const Tensor hidden = models::hidden_activations(inspected.model, inspected.input(image), 1);
    const auto token = 1 + static_cast<int64_t>(got[1]) * 2 + static_cast<int64_t>(got[2]);
    EXPECT_NEAR(got[0], hidden.data<float>()[token * hidden.size(2) + 5], 1e-4) << lines[row];
    EXPECT_LE(got[0], last);
    last = got[0];
  }
}

TEST(InspectTable, NeuronsAreThoseOfTheModel) {
  const auto refused = [](const std::string& neuron) {
    return refusal({"inspect", small_model(), "--table", "neurons", "--images", noise_folder(), "--neuron", neuron});
  };
  EXPECT_EQ(refused("3"), "vitrail: error: --neuron: expected BLOCK.INDEX, such as 3.17, got '3'\n");
  EXPECT_TRUE(contains(refused("2.0"), "--neuron: expected an integer from 0 to 1, got '2'")) << refused("2.0");
  EXPECT_TRUE(contains(refused("0.x"), "--neuron: expected an integer")) << refused("0.x");
  EXPECT_TRUE(contains(refused("0.999999"), " in a block, got 999999\n")) << refused("0.999999");
}

TEST(InspectTable, NeedsAVisionTransformer) {
  EXPECT_TRUE(contains(refusal({"inspect", sam_fixture("windows").model, "--table", "norms", "--trace", "random"}),
                       "expected a Vision Transformer, for --table, got a model of another family"));
  const std::string features = fixture("models/timm_num_classes_0");
  EXPECT_TRUE(contains(refusal({"inspect", features, "--table", "lens", "--trace", "random"}),
                       "expected a model with a classifier, got"));
  const ProgramResult cropped =
      run_program({"inspect", fixture("models/hf_siglip_remainder"), "--table", "norms", "--trace", "random"});
  EXPECT_EQ(cropped.status, 1) << "the input has another size than the model";
  EXPECT_EQ(cropped.out, "");
  EXPECT_EQ(table(features, {"norms", "--trace", "random"}).size(), 3u);
  const ProgramResult damaged = run_program({"inspect", small_model(), "--table", "cka", "--images", "/nowhere.png"});
  EXPECT_EQ(damaged.status, 1);
}

}  // namespace
}  // namespace vitrail::testing
