// SPDX-License-Identifier: Apache-2.0
// What errors say about weights of another model than the configuration's.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/models/load.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::models {
namespace {

using NamedWeights = std::vector<std::pair<std::string, Tensor>>;
using testing::contains;

// A folder with timm_token's configuration and its weights after a change.
std::filesystem::path changed_model(const std::function<void(NamedWeights&)>& change) {
  const std::filesystem::path folder = testing::scratch_folder();
  std::filesystem::copy(testing::fixture("models/timm_token/config.json"), folder / "config.json");
  const weights::Checkpoint checkpoint = weights::Checkpoint::open(testing::model_fixture("timm_token"));
  NamedWeights tensors;
  for (const std::string& name : checkpoint.names()) tensors.emplace_back(name, checkpoint.tensor(name));
  change(tensors);
  weights::write_safetensors(folder / "model.safetensors", tensors, {});
  return folder;
}

std::string misfit(const std::function<void(NamedWeights&)>& change) {
  const std::filesystem::path folder = changed_model(change);
  return testing::error_of([&] { build_model(open_model(folder)); });
}

void rename_tensors(NamedWeights& tensors, const std::string& from, const std::string& to) {
  for (auto& [name, tensor] : tensors) {
    if (name.starts_with(from)) name.replace(0, from.size(), to);
  }
}

TEST(MisfitAdvice, AFieldThatExplainsTheTensorsIsNamed) {
  const std::pair<const char*, std::function<void(NamedWeights&)>> cases[] = {
      {"fc_norm.bias: \"global_pool\": \"avg\"", [](NamedWeights& all) { rename_tensors(all, "norm.", "fc_norm."); }},
      {"blocks.0.ls1.gamma: \"init_values\": 1e-5",
       [](NamedWeights& all) {
         for (const char* name :
              {"blocks.0.ls1.gamma", "blocks.0.ls2.gamma", "blocks.1.ls1.gamma", "blocks.1.ls2.gamma"})
           all.emplace_back(name, Tensor::zeros({18}));
       }},
      {"attn_pool.latent: \"global_pool\": \"map\"", [](NamedWeights& all) {
         all.emplace_back("attn_pool.latent", Tensor::zeros({1, 1, 18}));
         all.emplace_back("attn_pool.q.weight", Tensor::zeros({18, 18}));
       }}};
  for (const auto& [line, change] : cases) {
    const std::string error = misfit(change);
    EXPECT_TRUE(contains(error, std::string("fields of model_args that explain them (1):\n    ") + line)) << error;
  }
}

// Virchow's and UNI2-h's config.json does not say that the MLP has a gate.
TEST(MisfitAdvice, AGateIsNamedWhereTheSecondLayerHasHalfTheInputs) {
  const auto halve = [](NamedWeights& all, const std::string& end, int64_t axis) {
    for (auto& [name, tensor] : all) {
      if (!name.ends_with(end)) continue;
      Shape shape = tensor.shape();
      shape[static_cast<size_t>(axis)] /= 2;
      tensor = Tensor::zeros(shape);
    }
  };
  const std::string gate = "blocks.0.mlp.fc2.weight: \"mlp_layer\": \"swiglu_packed\"";
  const auto gated = [&](NamedWeights& all) { halve(all, ".mlp.fc2.weight", 1); };
  EXPECT_TRUE(contains(misfit(gated), "fields of model_args that explain them (1):\n    " + gate)) << misfit(gated);
  const std::string narrow = misfit([&](NamedWeights& all) {
    gated(all);
    halve(all, ".mlp.fc1.weight", 0);
  });
  EXPECT_FALSE(contains(narrow, gate)) << narrow;
}

// nn.Sequential(Linear), and nn.Sequential(Dropout, Linear).
TEST(MisfitAdvice, TheNameOfAHeadInASequenceIsNear) {
  for (const std::string module : {"head.0.", "head.1."}) {
    const std::string error = misfit([&](NamedWeights& all) { rename_tensors(all, "head.", module); });
    EXPECT_TRUE(contains(error, "; did you mean " + module + "weight?")) << error;
  }
}

TEST(MisfitAdvice, AnUntrainedCopyOfTheHeadIsMerged) {
  const std::string error = misfit([](NamedWeights& all) {
    NamedWeights trained;
    for (const auto& [name, tensor] : all) {
      if (name.starts_with("head.")) trained.emplace_back("head.modules_to_save.default" + name.substr(4), tensor);
    }
    rename_tensors(all, "head.", "head.original_module.");
    all.insert(all.end(), trained.begin(), trained.end());
  });
  EXPECT_TRUE(contains(error, "before saving, call PEFT's merge_and_unload()")) << error;
}

}  // namespace
}  // namespace vitrail::models
