// SPDX-License-Identifier: Apache-2.0
// The recipe that is chosen for pairs of images and texts.
#include <algorithm>
#include <bit>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/memory_limit.h"
#include "vitrail/base/text.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/data/datasets/pair_set.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/contrastive/contrastive_data_internal.h"
#include "vitrail/train/objectives/contrastive/contrastive_model_internal.h"
#include "vitrail/train/objectives/contrastive/contrastive_recipe_internal.h"
#include "vitrail/train/recipe/default_recipe_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace {

constexpr int64_t kMaxPairBatch = 256;
constexpr double kRate = 1e-5, kMinRate = 5e-6;  // for a batch of kMaxPairBatch and for small ones

// A tower, as far as its cost depends on it.
struct TowerSize {
  int64_t tokens, width, hidden, depth;
};

TowerSize tower_size(const models::VisionTransformerConfig& config) {
  const int64_t patches = config.img_size[0] / config.patch_size[0] * (config.img_size[1] / config.patch_size[1]);
  return {patches + 1, config.embed_dim, models::mlp_hidden_of(config), config.depth};
}

TowerSize tower_size(const models::TextTransformerConfig& config) {
  return {config.context_length, config.embed_dim, config.mlp_hidden, config.depth};
}

// Multiplications of a forward pass, without attention scores.
double cost_of(const TowerSize& tower) {
  const auto width = static_cast<double>(tower.width), hidden = static_cast<double>(tower.hidden);
  return static_cast<double>(tower.tokens * tower.depth) * width * (4 * width + 2 * hidden);
}

// What the layers of a block keep for the backward pass: some eight vectors of the width and two of the hidden layer.
double activation_bytes(const TowerSize& tower) {
  return 4 * static_cast<double>(tower.tokens * tower.depth * (8 * tower.width + 2 * tower.hidden));
}

void set_pairs(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  recipe.objective = "contrastive";
  recipe.section = with_given_settings("contrastive", ContrastiveRecipe{}, options);
  recipe.data.train = options.data;
  recipe.data.columns = options.columns;
  recipe.data.unreadable = data::Unreadable::replace;
  const std::vector<std::string> splits = data::pair_set_splits(find_dataset(options.data));
  if (std::ranges::count(splits, "val") > 0) recipe.data.val = options.data;
  if (std::ranges::count(splits, "test") > 0) recipe.data.test = options.data;
  const WarningPause pause;
  const PairData pairs = open_pair_sets(recipe.data, result.architecture.in_chans);
  result.training_images = pairs.images.train.size();
  result.validation_images = pairs.images.validation.size();
  result.reasons.push_back(pairs.images.train.name + ": contrastive training of a dual model");
}

// More pairs in a batch are more negatives.
void set_batch(double bytes_of_pair, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  const auto fitting = static_cast<int64_t>(static_cast<double>(memory_limit()) / 2 / bytes_of_pair);
  const int64_t by_images = std::max(batch_size_for(result.training_images, kMaxPairBatch), kMinDualBatch);
  const auto by_memory = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max(fitting, kMinDualBatch))));
  recipe.batch_size = std::min(by_images, by_memory);
  result.reasons.push_back(str("batch size ", recipe.batch_size, ", ",
                               counted(std::max<int64_t>(1, result.training_images / recipe.batch_size), "step"),
                               " an epoch", by_memory < by_images ? ": what half of the memory holds" : "",
                               "; the other pairs of a batch are the negatives"));
}

void set_optimizer(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  choose_epochs(options, result);
  if (!options.resumed) recipe.schedule.warmup_epochs = 0.1 * static_cast<double>(recipe.epochs);
  recipe.lr = std::max(kMinRate, kRate * std::sqrt(static_cast<double>(recipe.batch_size) / kMaxPairBatch));
  recipe.groups.weight_decay = 0.1;
  recipe.optimizer.beta2 = 0.98;
  recipe.optimizer.eps = 1e-6;
  const int64_t steps = std::max<int64_t>(1, result.training_images / recipe.batch_size);
  result.reasons.push_back(
      str(counted(recipe.epochs, "epoch"), epochs_reason(options, recipe.epochs * steps), end_text(options, result)));
  result.reasons.push_back(str("AdamW with a peak rate of ", recipe.lr,
                               " for fine-tuning, weight decay 0.1, beta2 0.98 ",
                               "and eps 1e-6 as CLIP, warm-up of a tenth, cosine decay"));
}

}  // namespace

DefaultRecipe contrastive_recipe(const DefaultRecipeOptions& options) {
  if (options.preset != Preset::finetune)
    throw Error("--preset", "finetune for pairs of images and texts", "another one");
  if (options.cross_validated) throw Error("--folds", "class folders or a list of labels", "pairs of images and texts");
  if (options.model.empty()) throw Error("-m", "a dual model (CLIP, SigLIP), for pairs of images and texts", "none");
  DefaultRecipe result;
  set_start(options, result);
  const models::OpenedModel opened = open_source(result.recipe.model, result.recipe.model.init);
  result.architecture = opened.config.vit;
  set_pairs(options, result);
  open_dual_model(result.recipe);  // throws for an image model alone
  const TowerSize image = tower_size(opened.config.vit), text = tower_size(*opened.config.text);
  const bool both = contrastive_of(result.recipe).towers == "both";
  if (both) result.head_cost = cost_of(text) / cost_of(image);
  set_batch(activation_bytes(image) + (both ? activation_bytes(text) : 0), result);
  set_optimizer(options, result);
  result.recipe.augment.random_resized_crop = data::RandomResizedCrop{.scale = {0.9, 1}};
  result.reasons.emplace_back(
      "random resized crops of 90 to 100 % of an image, without flips, which captions may tell");
  return result;
}

}  // namespace vitrail::train
