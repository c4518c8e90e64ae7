// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/recipe/default_recipe.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/data/datasets/pair_set.h"
#include "vitrail/data/objects/object_set.h"
#include "vitrail/models/bundled.h"
#include "vitrail/train/objectives/classification/class_weights_internal.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/objectives/semantic/semantic_data_internal.h"
#include "vitrail/train/recipe/default_recipe_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kMinStepsPerEpoch = 10;
constexpr int64_t kFewPerClass = 100;  // images of a class, held-out ones included
constexpr int64_t kFewForHead = 200;   // images in total, likewise
constexpr int64_t kProbeBatch = 64;    // images in a forward pass
constexpr int64_t kSmallInput = 96;    // pixels; below, random resized crops remove too much

struct Counts {
  int64_t train, validation;
  int64_t classes;
  int64_t smallest_class, largest_class;  // training images
  bool multi_label;
};

Counts counts_of(const RunData& data) {
  std::vector<int64_t> classes = class_counts(data.train, data.classes.size());
  std::erase(classes, 0);
  const auto [smallest, largest] = std::minmax_element(classes.begin(), classes.end());
  return {.train = data.train.size(),
          .validation = data.validation.size(),
          .classes = std::ssize(data.classes),
          .smallest_class = *smallest,
          .largest_class = *largest,
          .multi_label = data.multi_label};
}

void set_data(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  DataRecipe& data = result.recipe.data;
  data.train = options.data;
  data.unreadable = data::Unreadable::replace;
  data.columns = options.columns;
  const std::vector<std::string> splits = manifest_of(data, options.data)->splits();
  const auto has = [&](const char* name) { return std::find(splits.begin(), splits.end(), name) != splits.end(); };
  if (has("val") && options.cross_validated)
    throw Error(options.data, "a dataset without validation images, for cross-validation", "a split of them");
  if (has("val")) data.val = options.data;
  if (options.cross_validated) data.holdout = 0;
  if (has("test")) data.test = options.data;
}

// The more images, the fewer passes over them: 15 for 120 images, 10 for 1,000, 5 for 50,000.
int64_t finetune_epochs_for(int64_t images) {
  return std::max<int64_t>(3, std::llround(40 / std::pow(static_cast<double>(images), 0.2)));
}

// Opens the data as the run will, which warns of what is left out.
Counts count_images(const DefaultRecipe& chosen) {
  const WarningPause pause;
  return counts_of(open_sets(chosen.recipe.data, chosen.architecture.in_chans));
}

// A drawn head learns too little in the few steps that so few images give.  With more images it is better: a probe that
// fits them all leaves the other layers little to learn.
void choose_head(const DefaultRecipeOptions& options, const Counts& counts, DefaultRecipe& result) {
  if (options.preset != Preset::finetune || counts.multi_label || counts.train + counts.validation >= kFewForHead)
    return;
  result.recipe.model.head = "probe";
}

// Held-out images are missed in training where there are few.
void set_retraining(const DefaultRecipeOptions& options, const Counts& counts, DefaultRecipe& result) {
  const int64_t images = counts.train + counts.validation;
  if (options.cross_validated || !result.recipe.data.val.empty() || counts.validation == 0) return;
  if (images >= kFewPerClass * counts.classes) return;
  result.recipe.data.retrain = true;
  result.reasons.push_back(str(counts.validation, " of ", images, " images are held out to choose the number of ",
                               "epochs; then the model is trained on all, because there are fewer than ", kFewPerClass,
                               " images a class (--set data.retrain=false: not)"));
}

// Without balance, a model hardly learns classes that are much smaller than others.
void set_balance(const Counts& counts, DefaultRecipe& result) {
  constexpr int64_t kUnequal = 3;
  if (counts.largest_class < kUnequal * counts.smallest_class) return;
  result.recipe.data.balance = true;
  result.reasons.push_back(str("classes have ", counts.smallest_class, " to ", counts.largest_class,
                               " training images, so that an epoch shows equally many of each"));
}

void set_augmentation(int64_t input_size, DefaultRecipe& result) {
  data::AugmentOptions& augment = result.recipe.augment;
  augment.flip = data::Flip::random;
  if (input_size < kSmallInput) {
    augment.padded_crop =
        data::PaddedCrop{.padding = std::max<int64_t>(1, input_size / 8), .mode = data::PaddedCrop::Mode::reflect};
    result.reasons.push_back(str("padded crops and flips, for inputs of ", input_size, " pixels"));
  } else {
    augment.random_resized_crop = data::RandomResizedCrop{.scale = {0.35, 1}};
    result.reasons.push_back("random resized crops of 35 to 100 % of an image, and flips");
  }
}

void set_finetuning(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  recipe.groups.layer_decay = asks_for_lora(options) ? 1 : 0.75;
  recipe.loss.label_smoothing = 0.1;
  recipe.clip = 1;
  recipe.schedule.final_lr = 1e-6;
}

void set_probe(DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  recipe.objective = "probe";
  recipe.epochs = 1;
  recipe.batch_size = kProbeBatch;
  recipe.data.holdout = 0;
  result.reasons.push_back(
      "a new head by logistic regression; 5-fold cross-validation chooses its penalty, so no images are held out");
}

// Each class has its own probability; smoothing and balance are of single labels.
void set_multi_label(DefaultRecipe& result) {
  result.recipe.loss.name = "bce";
  result.recipe.loss.label_smoothing = 0;
  result.reasons.push_back(
      "images have several labels: binary cross-entropy of each class, measured by the mean average precision");
}

// A small model on inputs of about the images' own size.
void set_scratch(DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  recipe.model.architecture = "cifar_vit_d192";
  recipe.model.positions = "sincos2d";
  recipe.model.mimetic = nn::MimeticOptions{};
  recipe.loss.label_smoothing = 0.1;
  recipe.clip = 1;
  recipe.schedule.final_lr = 1e-6;
  result.reasons.push_back(
      "a new model, cifar_vit_d192 on 32 × 32 pixels; with fewer than some 10,000 images a pretrained model serves "
      "better");
}

void set_duration(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  const int64_t images = result.training_images;
  recipe.batch_size = batch_size_for(images);
  const int64_t steps = std::max<int64_t>(1, images / recipe.batch_size);
  result.reasons.push_back(
      str("batch size ", recipe.batch_size, ", ", counted(steps, "step"), " an epoch of ", counted(images, "image")));
  const bool scratch = options.preset == Preset::scratch;
  choose_epochs(options, result);
  recipe.lr = (scratch ? 1e-3 : 5e-4 * lora_rate(options)) * std::sqrt(static_cast<double>(recipe.batch_size) / 64);
  result.reasons.push_back(
      str(counted(recipe.epochs, "epoch"), epochs_reason(options, recipe.epochs * steps), end_text(options, result)));
  result.reasons.push_back(str("AdamW with a peak rate of ", recipe.lr, " for this batch size, ",
                               recipe.groups.layer_decay < 1 ? "layer decay 0.75, " : "", lora_reason(options),
                               "warm-up of ", counted(recipe.schedule.warmup_epochs, "epoch"), ", cosine decay",
                               recipe.loss.label_smoothing > 0 ? ", label smoothing 0.1" : ""));
}

std::string chosen_objective(const DefaultRecipeOptions& options) {
  if (!options.objective.empty()) return options.objective;
  const std::string name = given_setting(options, "objective");
  return find_objective(name) ? name : dataset_objective(options.data);  // another one is an error of the settings
}

// The epochs of the settings count as those of the options, so that warm-up and patience follow from them.
DefaultRecipeOptions with_given_epochs(DefaultRecipeOptions options) {
  const std::string value = given_setting(options, "epochs");
  int64_t epochs = 0;
  const auto end = std::from_chars(value.data(), value.data() + value.size(), epochs);
  const bool is_number = end.ec == std::errc() && end.ptr == value.data() + value.size();
  if (!is_number || epochs < 1 || epochs > kMaxEpochs) return options;  // no setting, or an error of the settings
  options.epochs = epochs;
  options.choose_epochs = {};
  return options;
}

}  // namespace

Preset preset_from_name(const std::string& name) {
  static const std::vector<std::string> kNames{"finetune", "probe", "scratch"};  // in the order of Preset
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) throw Error("preset", join(kNames, ", "), name);
  return static_cast<Preset>(found - kNames.begin());
}

std::string given_setting(const DefaultRecipeOptions& options, const std::string& field) {
  std::string value;
  for (const std::string& setting : options.settings) {
    if (setting.starts_with(field + "=")) value = setting.substr(field.size() + 1);
  }
  std::erase(value, '"');
  return value;
}

bool asks_for_lora(const DefaultRecipeOptions& options) {
  const auto is_of_lora = [](const std::string& setting) {
    return setting.starts_with("lora.") || (setting.starts_with("lora=") && setting != "lora=null");
  };
  return options.preset != Preset::scratch && std::ranges::any_of(options.settings, is_of_lora);
}

double lora_rate(const DefaultRecipeOptions& options) {
  constexpr double kFactor = 3;
  return asks_for_lora(options) ? kFactor : 1;
}

std::string lora_reason(const DefaultRecipeOptions& options) {
  return asks_for_lora(options) ? str(lora_rate(options), " times that of full fine-tuning for LoRA, ") : "";
}

// At least 4, unless there are fewer images.
int64_t batch_size_for(int64_t images, int64_t max_batch) {
  const auto limit = static_cast<uint64_t>(std::clamp<int64_t>(images / kMinStepsPerEpoch, 4, max_batch));
  return std::min(static_cast<int64_t>(std::bit_floor(limit)), images);
}

void set_start(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  recipe.model.init = options.model.empty() ? models::kDefaultModel : options.model;
  result.reasons.push_back(options.model.empty()
                               ? str("starting from the bundled model ", models::kDefaultModel,
                                     ", which sees 224 × 224 pixels (-m cifar10-vit: 32 × 32, which is faster)")
                               : str("starting from ", options.model));
}

void choose_epochs(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  if (options.resumed) {
    recipe.epochs = options.resumed->epochs;
    recipe.patience = options.resumed->patience;
    recipe.schedule.warmup_epochs = options.resumed->schedule.warmup_epochs;
    return;
  }
  const bool scratch = options.preset == Preset::scratch;
  const int64_t factor = scratch ? 10 : result.is_frozen ? 2 : 1;
  recipe.epochs = options.epochs.value_or(finetune_epochs_for(result.training_images) * factor);
  if (options.choose_epochs) recipe.epochs = options.choose_epochs(result);
  recipe.schedule.warmup_epochs = std::min(1.0, 0.1 * static_cast<double>(recipe.epochs));
  if (!options.cross_validated) recipe.patience = std::max<int64_t>(3, recipe.epochs / 2);
}

std::string epochs_reason(const DefaultRecipeOptions& options, int64_t steps) {
  if (options.resumed) return ", as the resumed run";
  if (options.epochs || options.choose_epochs) return "";
  return str(", ", counted(steps, "step"), ": more passes over fewer images");
}

std::string end_text(const DefaultRecipeOptions& options, const DefaultRecipe& chosen) {
  if (options.cross_validated) return ", all of them: cross-validation measures the last weights";
  if (chosen.validation_images == 0) return ", all of them: no images are held out";
  if (chosen.recipe.patience == 0) return "";
  return str(", ending after ", chosen.recipe.patience, " without a better held-out loss");
}

std::string dataset_objective(const std::string& data) {
  const std::filesystem::path path = find_dataset(data);
  const char* const of_maps = is_map_dataset(path) ? "semantic" : "classify";
  if (!data::is_object_set(path)) return data::is_pair_set(path) ? "contrastive" : of_maps;
  const std::vector<std::string> splits = data::object_set_splits(path);
  const data::ObjectSet set =
      data::open_object_set(path, {.split = splits.empty() ? "" : splits.front(), .without_images = true});
  const bool has_masks = std::ranges::any_of(set.images, [](const data::LabelledImage& image) {
    return std::ranges::any_of(image.objects, [](const auto& object) { return !object.outline.empty(); });
  });
  return set.form == "COCO" && has_masks ? of_maps : "detect";
}

DefaultRecipe default_recipe(const DefaultRecipeOptions& request) {
  const DefaultRecipeOptions options = with_given_epochs(request);
  const std::string objective = chosen_objective(options);
  if (objective == "semantic") return map_recipe(options);
  if (objective == "detect") return box_recipe(options);
  if (objective == "pretrain") return pretrain_recipe(options);
  if (objective == "contrastive") return contrastive_recipe(options);
  DefaultRecipe result;
  set_data(options, result);
  if (options.preset != Preset::scratch) set_start(options, result);
  switch (options.preset) {
    case Preset::finetune:
      set_finetuning(options, result);
      break;
    case Preset::probe:
      set_probe(result);
      break;
    case Preset::scratch:
      set_scratch(result);
  }
  result.architecture = architecture_of(result.recipe.model);
  const Counts counts = count_images(result);
  set_classifier(result.architecture, counts.classes);
  result.training_images = counts.train, result.validation_images = counts.validation;
  if (options.preset == Preset::probe) return result;
  if (counts.multi_label) set_multi_label(result);
  choose_head(options, counts, result);
  set_retraining(options, counts, result);
  set_duration(options, result);
  if (!counts.multi_label) set_balance(counts, result);
  set_augmentation(result.architecture.img_size[0], result);
  return result;
}

}  // namespace vitrail::train
