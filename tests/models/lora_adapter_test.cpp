// SPDX-License-Identifier: Apache-2.0
// LoRA adapters on models, against peft (tools/golden/lora.py).
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/lora.h"
#include "vitrail/ops/loss.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 2e-5;  // relative; the reference is in f64, the model in f32

fs::path adapter_of(const std::string& name) { return testing::fixture("weights/lora/" + name); }

VisionTransformer adapted(const std::string& model, const fs::path& adapter) {
  return build_model(open_model(testing::model_fixture(model), {.adapter = adapter.string()}));
}

// Makes `folder` a copy of a fixture's adapter with other text in adapter_config.json.
void write_changed(const std::string& name, const std::string& from, const std::string& to, const fs::path& folder) {
  fs::remove_all(folder);
  fs::copy(adapter_of(name), folder);
  std::ifstream file(folder / "adapter_config.json");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos);
  std::ofstream(folder / "adapter_config.json") << text.replace(at, from.size(), to);
}

TEST(LoraAdapter, LogitsEqualPefts) {
  for (const auto& [model, name] : {std::pair("timm_token", "timm"), {"hf_vit", "transformers"}}) {
    const testing::Golden golden = testing::read_golden(adapter_of(name) / "golden.safetensors");
    const Tensor logits = adapted(model, adapter_of(name)).forward(golden["input"]);
    EXPECT_TRUE(testing::close(logits, golden["logits"], kTolerance, kTolerance)) << name;
    const Tensor without = testing::model_of(model).forward(golden["input"]);
    EXPECT_FALSE(without.shape() == logits.shape() && testing::close(without, golden["logits"], 1e-2)) << name;
  }
}

TEST(LoraAdapter, IsFoundByItsWeightsFileToo) {
  const testing::Golden golden = testing::read_golden(adapter_of("timm") / "golden.safetensors");
  const VisionTransformer model = adapted("timm_token", adapter_of("timm") / "adapter_model.safetensors");
  EXPECT_TRUE(testing::close(model.forward(golden["input"]), golden["logits"], kTolerance, kTolerance));
}

// The file of hf_vit_new_keys has the same model's weights under the names of newer versions.
TEST(LoraAdapter, FitsTheOldAndTheNewNamesOfTransformers) {
  const OpenedModel opened =
      open_model(testing::model_fixture("hf_vit_new_keys"), {.adapter = adapter_of("transformers").string()});
  const Tensor before = testing::model_of("hf_vit_new_keys").parameter("blocks.0.attn.qkv.weight"),
               after = build_model(opened).parameter("blocks.0.attn.qkv.weight");
  const int64_t width = before.size(1);
  const auto rows = [&](const Tensor& tensor, int64_t part) { return tensor.narrow(0, part * width, width); };
  EXPECT_TRUE(testing::close(rows(before, 1), rows(after, 1), 0));
  for (const int64_t part : {0, 2}) EXPECT_FALSE(testing::close(rows(before, part), rows(after, part), 1e-3)) << part;
}

// The gradients of the low-rank parts in training: the patch embedding's stays as it is in the merged weights.
TEST(LoraAdapter, GradientsEqualPefts) {
  const testing::Golden golden = testing::read_golden(adapter_of("timm") / "golden.safetensors");
  const weights::LoraAdapter adapter = weights::read_lora_adapter(adapter_of("timm"));
  VisionTransformer model = adapted("timm_token", adapter_of("timm"));
  const VisionTransformer base = testing::model_of("timm_token");
  nn::add_lora(model, {.rank = 2, .alpha = 3, .layers = "all"}, 0);
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const std::string layer = parameter.name.substr(0, parameter.name.rfind(".lora_"));
    if (!nn::is_lora(parameter.name)) {
      if (adapter.parts.contains(parameter.name) && parameter.name.starts_with("blocks."))
        parameter.tensor.copy_(base.parameter(parameter.name));
    } else if (adapter.parts.contains(layer + ".weight")) {
      const weights::LoraAdapter::Part& part = adapter.parts.at(layer + ".weight");
      parameter.tensor.copy_(parameter.name.ends_with("lora_A.weight") ? part.a : part.b);
    }
  }
  model.requires_grad(true);
  const Tensor labels = Tensor::from<int64_t>({2}, {0, 2});
  autograd::backward(ops::cross_entropy(model.forward(golden["input"]), labels));
  int64_t compared = 0;
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    if (!golden.has("grad." + parameter.name)) continue;
    ++compared;
    const Tensor expected = golden["grad." + parameter.name];
    EXPECT_TRUE(testing::close(autograd::grad_of(parameter.tensor), expected, 1e-5, 1e-4)) << parameter.name;
  }
  EXPECT_EQ(compared, 2 * 3 * 2);
}

std::string error_of(const fs::path& adapter, const std::string& model = "timm_token") {
  return testing::error_of([&] { adapted(model, adapter); });
}

TEST(LoraAdapter, RefusesWhatIsNoLora) {
  const fs::path folder = testing::scratch_folder() / "adapter";
  const auto error_with = [&](const std::string& from, const std::string& to) {
    write_changed("timm", from, to, folder);
    return error_of(folder);
  };
  const std::string where = (folder / "adapter_config.json").string();
  EXPECT_ERROR(error_with("\"LORA\"", "\"IA3\""), where, "\"IA3\"");
  EXPECT_ERROR(error_with("\"use_dora\": false", "\"use_dora\": true"), where, "true");
  EXPECT_ERROR(error_with("\"alpha_pattern\": {}", "\"alpha_pattern\": {\"fc.*\": 1}"), where,
               "a regular expression, fc.*");
  EXPECT_ERROR(error_with("{", "["), where, "something else");
  EXPECT_ERROR(error_with("{", std::string(100'000, '[')), where, "JSON that is nested deeper");
  EXPECT_TRUE(testing::contains(error_with("\"lora_alpha\": 3", "\"lora_alpha\": \"x\""), "LoraConfig"));
  EXPECT_TRUE(testing::contains(error_with("\"lora_alpha\": 3", "\"lora_alpha\": 1e300"), "finite numbers"));
  const fs::path empty = testing::scratch_folder() / "empty";
  fs::create_directories(empty);
  EXPECT_ERROR(error_of(empty), empty.string(), "no such files");
}

TEST(LoraAdapter, RefusesAnotherModelsAdapter) {
  EXPECT_TRUE(testing::contains(error_of(adapter_of("timm"), "hf_vit"), "does not fit the model"));
  EXPECT_TRUE(testing::contains(error_of(adapter_of("transformers"), "timm_token"), "not in the model"));
}

TEST(LoraAdapter, RefusesOneMatrixAlone) {
  const fs::path folder = testing::scratch_folder() / "adapter", file = folder / "adapter_model.safetensors";
  fs::create_directories(folder);
  fs::copy_file(adapter_of("timm") / "adapter_config.json", folder / "adapter_config.json");
  const std::string layer = "base_model.model.blocks.0.attn.qkv";
  const auto error_with = [&](const std::string& tensor, const Shape& shape) {
    weights::write_safetensors(file, {{tensor, Tensor::zeros(shape)}});
    return error_of(folder);
  };
  EXPECT_ERROR(error_with(layer + ".lora_A.weight", {2, 18}), file.string(), "only one of them");
  EXPECT_ERROR(error_with(layer + ".lora_magnitude_vector", {18}), file.string(), layer + ".lora_magnitude_vector");
  EXPECT_ERROR(error_with("base_model.model.head.weight", {2, 18}), file.string(), "none");
}

TEST(LoraAdapter, ImageSizeAndClassesAreThoseOfItsConfiguration) {
  const OpenedModel base = open_model(testing::model_fixture("timm_token"));
  ModelConfig config = base.config;
  config.vit.img_size = {16, 16}, config.vit.num_classes = 2, config.labels = {"cat", "dog"};
  weights::LoraAdapter adapter;
  adapter.parts["blocks.0.attn.qkv.weight"] = {Tensor::zeros({1, 18}), Tensor::zeros({54, 1}), 1};
  adapter.tensors = {{"head.weight", Tensor::randn({2, 18}, 1)}, {"head.bias", Tensor::zeros({2})}};
  const fs::path folder = testing::scratch_folder() / "adapter";
  weights::write_lora_adapter(folder, adapter, "base", write_model_config(config));
  const OpenedModel opened = open_model(testing::model_fixture("timm_token"), {.adapter = folder.string()});
  EXPECT_EQ(opened.config.labels, config.labels);
  EXPECT_EQ(build_model(opened).forward(Tensor::randn({1, 3, 16, 16}, 2)).shape(), (Shape{1, 2}));
  config.vit.depth = 1;
  weights::write_lora_adapter(folder, adapter, "base", write_model_config(config));
  EXPECT_TRUE(testing::contains(error_of(folder), "depth 1"));
}

}  // namespace
}  // namespace vitrail::models
