// SPDX-License-Identifier: Apache-2.0
// Runs with LoRA: what they train, save and resume.
#include <algorithm>
#include <map>

#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/train/training_runs.h"
#include "vitrail/models/load.h"
#include "vitrail/train/objectives/pretrain/methods.h"
#include "vitrail/train/recipe/default_recipe.h"
#include "vitrail/weights/lora_adapter.h"

namespace vitrail::train {
namespace {

const std::string& start_model() {
  static const std::string path = testing::fixture("models/timm_token");
  return path;
}

Recipe lora_recipe(const fs::path& images, const std::vector<std::string>& settings = {}) {
  std::vector<std::string> all{"model=null", "model.init=" + start_model(), "lora.rank=2", "ema=null",
                               "augment.mixup=0"};
  all.insert(all.end(), settings.begin(), settings.end());
  return parse_recipe(tiny_recipe(images), "r.json", all);
}

std::map<std::string, Tensor> tensors_of(const fs::path& file) {
  const auto checkpoint = weights::Checkpoint::open(file);
  std::map<std::string, Tensor> tensors;
  for (const std::string& name : checkpoint.names()) tensors[name] = checkpoint.tensor(name);
  return tensors;
}

// The names of the tensors that differ from the start's.
std::vector<std::string> changed(const fs::path& model) {
  const auto before = tensors_of(start_model() + "/model.safetensors"), after = tensors_of(model / "model.safetensors");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : after) {
    const auto found = before.find(name);
    const bool same =
        found != before.end() && found->second.shape() == tensor.shape() && testing::close(found->second, tensor, 0);
    if (!same) names.push_back(name);
  }
  return names;
}

TEST(LoraRun, TrainsLowRankPartsAndTheHead) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  train_to(run, lora_recipe(images));
  const std::vector<std::string> qv{"blocks.0.attn.qkv.weight", "blocks.1.attn.qkv.weight", "head.bias", "head.weight"};
  EXPECT_EQ(changed(run / "last"), qv);
  const auto weight = [&](const fs::path& folder) {
    return tensors_of(folder / "model.safetensors").at("blocks.0.attn.qkv.weight");
  };
  const Tensor before = weight(start_model()), after = weight(run / "last");
  EXPECT_TRUE(testing::close(before.narrow(0, 18, 18), after.narrow(0, 18, 18), 0)) << "keys";
  train_to(run / "all", lora_recipe(images, {"lora.layers=all"}));
  EXPECT_EQ(changed(run / "all/last").size(), 2 * 4 + 2);
}

TEST(LoraRun, TheAdapterOnTheStartIsTheModel) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  for (const std::string size : {"32", "16"}) {  // another size than the start's: positions are interpolated
    const fs::path folder = run / size;
    train_to(folder, lora_recipe(images, {"model.img_size=" + size, "lora.alpha=5"}));
    const auto merged = models::open_model(folder / "model", {});
    const auto adapted = models::open_model(start_model(), {.adapter = (folder / "model/adapter").string()});
    EXPECT_EQ(adapted.config.labels, merged.config.labels);
    EXPECT_EQ(adapted.config.preprocessing.mean, merged.config.preprocessing.mean);
    const int64_t side = std::stoll(size);
    const Tensor input = Tensor::randn({2, 3, side, side}, 5);
    EXPECT_TRUE(testing::close(models::build_model(adapted).forward(input), models::build_model(merged).forward(input),
                               1e-5, 1e-5))
        << size;
  }
}

TEST(LoraRun, ARunStartsFromAnAdaptedModel) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  train_to(run / "first", lora_recipe(images));
  const std::string adapter = (run / "first/model/adapter").string();
  train_to(run / "second", lora_recipe(images, {"model.adapter=" + adapter, "optimizer.lr=0", "epochs=1"}));
  EXPECT_EQ(changed(run / "second/model").size(), 4);
  const auto first = tensors_of(run / "first/model/model.safetensors"),
             second = tensors_of(run / "second/model/model.safetensors");
  for (const auto& [name, tensor] : first) EXPECT_TRUE(testing::close(tensor, second.at(name), 1e-6)) << name;
}

TEST(LoraRun, ResumesBitForBit) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  for (const char* extra : {"ema.decay=0.9", "lora.dropout=0.1", "data.retrain=true"}) {
    const Recipe recipe = lora_recipe(images, {extra, "data.val=", "lora.layers=all"});
    fs::remove_all(run);
    train_to(run / "whole", recipe);
    for (const int stop : {3, 7}) train_to(run / "parts", recipe, stop > 3, stop);
    train_to(run / "parts", recipe, true);
    expect_same_runs(run / "whole", run / "parts");
    EXPECT_EQ(read_text(run / "whole/model/adapter/adapter_model.safetensors"),
              read_text(run / "parts/model/adapter/adapter_model.safetensors"));
  }
}

// The model of DINO is the average of a student with low-rank parts, which has none.
TEST(LoraRun, EveryMethodOfPretrainingTakesLowRankParts) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  for (const std::string& method : pretrain_method_names()) {
    std::vector<std::string> settings{"objective=pretrain",
                                      "data.val=",
                                      "data.train=" + (images / "train").string(),
                                      "pretrain.method=" + method,
                                      "loss.label_smoothing=0",
                                      "epochs=1",
                                      "augment.mixup=0",
                                      "augment.mix_probability=0.5"};
    if (method == "distill") settings.push_back("pretrain.teacher=" + start_model());
    if (method == "mae") settings.push_back("model.fc_norm=false");
    if (method == "lejepa" || method == "dino") settings.push_back("pretrain.local_size=16");
    train_to(run / method, lora_recipe(images, settings));
    const std::vector<std::string> names = changed(run / method / "last");
    EXPECT_EQ(names, (std::vector<std::string>{"blocks.0.attn.qkv.weight", "blocks.1.attn.qkv.weight"})) << method;
    EXPECT_EQ(fs::exists(run / method / "last/adapter"), method != "dino") << method;
  }
}

TEST(LoraRun, RecipesSayWhatDoesNotGoTogether) {
  const fs::path images = make_images();
  const auto error_of = [&](const std::vector<std::string>& settings) {
    return testing::error_of([&] { lora_recipe(images, settings); });
  };
  EXPECT_TRUE(testing::contains(error_of({"model.init=", "model.img_size=8"}), "lora: expected a model to start from"));
  EXPECT_TRUE(testing::contains(error_of({"model.linear_probe=true"}), "lora: expected null together with"));
  EXPECT_TRUE(testing::contains(error_of({"objective=probe"}), "lora: expected null for the objective \"probe\""));
  EXPECT_TRUE(testing::contains(error_of({"model.init=", "model.adapter=x", "lora=null"}), "model.adapter: expected"));
  EXPECT_TRUE(testing::contains(error_of({"lora.layers=k"}), "lora.layers"));
  EXPECT_TRUE(testing::contains(error_of({"lora.rank=0"}), "lora.rank"));
}

TEST(LoraRun, DefaultRecipesHaveAHigherRate) {
  const std::string images = make_images(40).string();
  const auto recipe_with = [&](const std::string& objective, const std::vector<std::string>& settings) {
    return default_recipe({.data = images, .model = start_model(), .objective = objective, .settings = settings});
  };
  for (const std::string objective : {"classify", "pretrain"}) {
    const DefaultRecipe plain = recipe_with(objective, {"lora=null"}), lora = recipe_with(objective, {"lora.rank=4"});
    EXPECT_DOUBLE_EQ(lora.recipe.lr, 3 * plain.recipe.lr) << objective;
    EXPECT_EQ(lora.recipe.groups.layer_decay, 1) << objective;
    EXPECT_TRUE(std::ranges::any_of(lora.reasons, [](const auto& r) { return testing::contains(r, "for LoRA"); }));
    EXPECT_FALSE(std::ranges::any_of(plain.reasons, [](const auto& r) { return testing::contains(r, "LoRA"); }));
  }
}

}  // namespace
}  // namespace vitrail::train
