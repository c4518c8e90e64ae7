// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/cross_validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/train/objectives/classification/fold_images_internal.h"
#include "vitrail/train/run/run_files_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

constexpr const char* kResults = "cross_validation.json";

// The 97.5 % quantiles of Student's t distribution with 1, 2, … degrees of freedom.
constexpr std::array<double, kMaxFolds - 1> kQuantiles{
    12.706204736174694, 4.302652729749462, 3.1824463052837078, 2.7764451051977934, 2.570581835636314,
    2.4469118511449786, 2.36462425159278,  2.30600413520417,   2.2621571628540993, 2.228138851986273,
    2.200985160091639,  2.178812829667228, 2.1603686564627926, 2.1447866879178044, 2.131449545559774,
    2.1199052992212546, 2.109815577833317, 2.100922040241039,  2.0930240544083087};

void check(const Recipe& recipe, int64_t folds) {
  if (folds < 2 || folds > kMaxFolds) throw Error("folds", str("2 to ", kMaxFolds), str(folds));
  if (recipe.objective != "classify")
    throw Error("folds", "a recipe with objective \"classify\" (a probe cross-validates itself)",
                "\"" + recipe.objective + "\"");
  if (!recipe.data.val.empty() || recipe.data.holdout.value_or(0) > 0)
    throw Error("folds", "no validation images besides the folds (unset data.val and data.holdout)",
                recipe.data.val.empty() ? "a hold-out" : recipe.data.val);
  if (recipe.data.folds > 0)
    throw Error("folds", "a recipe without a fold of its own (unset data.folds and data.fold)",
                str("fold ", recipe.data.fold, " of ", recipe.data.folds));
}

// The folds measure the last weights, so the runs have the same number of epochs.
Recipe without_selection(Recipe recipe) {
  recipe.patience = 0;
  recipe.data.holdout.reset();
  recipe.data.retrain = false;
  return recipe;
}

Recipe recipe_of_fold(Recipe recipe, int64_t fold, int64_t folds) {
  recipe.data.test.clear();
  recipe.data.test_split.clear();
  recipe.data.folds = folds;
  recipe.data.fold = fold;
  recipe.validate_every = recipe.epochs;
  return recipe;
}

// Takes the epochs of the run in `folder`, which a time limit may have reduced.
void keep_epochs(Recipe& recipe, const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "recipe.json";
  if (!is_present(file)) return;
  const Recipe before = read_recipe(file);
  recipe.epochs = before.epochs;
  recipe.validate_every = before.validate_every;
  recipe.schedule.warmup_epochs = before.schedule.warmup_epochs;
}

std::filesystem::path folder_of_fold(const TrainerOptions& options, int64_t fold) {
  return options.folder / "folds" / std::to_string(fold);
}

// What would end a later training is an error before the first one.
void check_folders(const std::vector<Recipe>& recipes, const TrainerOptions& options) {
  for (size_t i = 0; i < recipes.size(); ++i)
    require_startable(folder_of_fold(options, static_cast<int64_t>(i) + 1), options.resume);
  require_startable(options.folder, options.resume);
  if (!options.resume && is_present(options.folder / kResults))
    throw Error(options.folder.string(), "a folder without a cross-validation, or --resume",
                str("a folder with ", kResults));
  if (options.resume) check_images_of_folds(options.folder, recipes, options.allow_changes);
}

std::string summary_of(const CrossValidationResult& result) {
  const bool is_share = result.metric.unit == ScoreUnit::share;
  const auto rounded = [&](double value) {
    const double unit = is_share ? 1e-2 : 1e-4;
    return std::round((is_share ? 100 * value : value) / unit) * unit;
  };
  const MeanInterval& mean = result.mean;
  const char* const percent = is_share ? " %" : "";
  return str(result.folds.size(), "-fold cross-validation: mean ", result.metric.title, " ", rounded(mean.mean),
             percent, " on ", result.images, " images (95 % interval ", rounded(mean.interval.low), " to ",
             rounded(mean.interval.high), percent, ")");
}

void write_results(const std::filesystem::path& folder, const CrossValidationResult& result) {
  const nlohmann::ordered_json json{{"folds", result.folds.size()},
                                    {"images", result.images},
                                    {result.metric.name, result.folds},
                                    {"mean", result.mean.mean},
                                    {"standard_deviation", result.mean.deviation},
                                    {"interval", {result.mean.interval.low, result.mean.interval.high}}};
  write_text(folder / kResults, json.dump(2) + "\n");
}

}  // namespace

MeanInterval mean_interval(std::span<const double> values) {
  const auto count = static_cast<int64_t>(values.size());
  if (count < 2 || count > kMaxFolds) throw Error("mean_interval", str("2 to ", kMaxFolds, " values"), str(count));
  MeanInterval result;
  for (const double value : values) result.mean += value / static_cast<double>(count);
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / static_cast<double>(count - 1));
  const double margin =
      kQuantiles[static_cast<size_t>(count - 2)] * result.deviation / std::sqrt(static_cast<double>(count));
  result.interval = {std::max(0.0, result.mean - margin), std::min(1.0, result.mean + margin)};
  return result;
}

CrossValidationResult cross_validate(const Recipe& given, int64_t folds, const TrainerOptions& options,
                                     const TrainerCallbacks& callbacks) {
  check(given, folds);
  const Recipe recipe = without_selection(given);
  const bool is_root = !options.communicator || options.communicator->rank() == 0;
  const auto log = [&](const std::string& text) {
    if (callbacks.message && is_root) callbacks.message(text);
  };
  std::vector<Recipe> recipes;
  const bool keeps_epochs = options.resume && options.time_limit > 0;
  for (int64_t fold = 1; fold <= folds; ++fold) {
    recipes.push_back(recipe_of_fold(recipe, fold, folds));
    if (keeps_epochs) keep_epochs(recipes.back(), folder_of_fold(options, fold));
    if (recipes.back().epochs != recipe.epochs)
      log(str("fold ", fold, " keeps its number of epochs, ", recipes.back().epochs));
  }
  if (is_root) check_folders(recipes, options);
  CrossValidationResult result;
  for (int64_t fold = 1; fold <= folds; ++fold) {
    log(str("fold ", fold, " of ", folds));
    TrainerOptions fold_options = options;
    fold_options.folder = folder_of_fold(options, fold);
    result.final = train(recipes[static_cast<size_t>(fold) - 1], fold_options, callbacks);
    if (result.final.stopped) return result;
    result.metric = result.final.last.value();
    result.folds.push_back(result.final.last->value);
    result.images += result.final.validation_images;
  }
  result.mean = mean_interval(result.folds);
  const std::string text = summary_of(result);
  log(text);
  if (is_root) write_results(options.folder, result);
  log("final model, on all images");
  Recipe final_recipe = recipe;
  final_recipe.data.holdout = 0;
  if (keeps_epochs) keep_epochs(final_recipe, options.folder);
  TrainerOptions final_options = options;
  final_options.environment.emplace_back(kCrossValidation, text);
  result.final = train(final_recipe, final_options, callbacks);
  return result;
}

}  // namespace vitrail::train
