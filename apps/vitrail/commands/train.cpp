// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/input/labelled_sets.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/table_format.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/train/training_run.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/train/objectives/classification/cross_validation.h"
#include "vitrail/train/recipe/default_recipe.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::app {
namespace {

struct TrainCommandOptions {
  RunOptions run;
  std::string source;  // a dataset or a recipe
  std::string data, model, preset = "finetune", columns;
  std::optional<int64_t> epochs, folds;
  std::string objective;  // empty: by the dataset
  std::vector<std::string> settings;
  bool exif = false;
};

// A recipe says itself what these options choose for a dataset.
void require_dataset(const TrainCommandOptions& options) {
  const char* given = options.preset != "finetune" ? "--preset"
                      : options.run.seconds        ? "--time"
                      : options.folds              ? "--folds"
                      : options.epochs             ? "--epochs"
                      : !options.objective.empty() ? "--objective"
                                                   : nullptr;
  if (given != nullptr)
    throw CLI::ValidationError(given, "belongs to a dataset; a recipe takes --set, as --set epochs=N");
}

// --exif and --set, for a dataset and a recipe alike.  The last setting of a field counts.
std::vector<std::string> common_settings(const TrainCommandOptions& options) {
  std::vector<std::string> settings = options.settings;
  if (options.exif) settings.insert(settings.begin(), "data.exif=true");
  if (!options.columns.empty())
    settings.insert(settings.begin(), "data.columns=" + nlohmann::json(options.columns).dump());
  return settings;
}

// --data and -m are settings of a recipe too; --set may override them.
std::vector<std::string> settings_of(const TrainCommandOptions& options, const data::Manifests& manifests) {
  std::vector<std::string> settings;
  if (!options.data.empty())
    settings =
        train::dataset_settings(options.data, train::recipe_objective(options.source), options.columns, manifests);
  if (!options.model.empty()) {
    const std::vector<std::string> start = train::start_settings(options.model);
    settings.insert(settings.end(), start.begin(), start.end());
  }
  const std::vector<std::string> common = common_settings(options);
  settings.insert(settings.end(), common.begin(), common.end());
  return settings;
}

bool is_recipe(const std::string& source) { return std::filesystem::path(source).extension() == ".json"; }

// The number of trainings among which --time is divided.
double trainings_of(const TrainCommandOptions& options) { return static_cast<double>(options.folds.value_or(0) + 1); }

// A dataset that does not exist is an error of the recipe.
std::string objective_of(const TrainCommandOptions& options) {
  std::error_code unreadable;
  if (!options.objective.empty() || !std::filesystem::exists(options.source, unreadable)) return options.objective;
  return train::dataset_objective(options.source);
}

// The recipe that is named, or one for the dataset that is named, with its reasons.
train::Recipe recipe_of(const TrainCommandOptions& options, int threads, const Print& print) {
  if (is_recipe(options.source)) {
    require_dataset(options);
    const data::Manifests manifests;
    train::Recipe recipe = train::read_recipe(options.source, settings_of(options, manifests));
    recipe.data.manifests = manifests;
    return recipe;
  }
  if (!options.data.empty()) throw CLI::ValidationError("--data", "belongs to a recipe; here DATA is the dataset");
  // With label maps or boxes, a probe is a head that is trained in epochs.
  const std::string objective = objective_of(options);
  if (options.preset == "probe" && (options.epochs || options.run.seconds || options.folds) &&
      (objective.empty() || objective == "classify"))
    throw CLI::ValidationError(
        "--preset probe", "without --epochs, --time and --folds: a probe has no epochs and cross-validates itself");
  if (options.preset == "scratch" && !options.model.empty())
    throw CLI::ValidationError("--preset scratch", "without -m: a new model starts from no other");
  train::DefaultRecipeOptions request{.data = options.source,
                                      .model = options.model,
                                      .columns = options.columns,
                                      .objective = objective,
                                      .settings = options.settings,
                                      .preset = train::preset_from_name(options.preset),
                                      .epochs = options.epochs};
  if (options.run.seconds) {
    request.resumed = recipe_of_run(options.run);
    request.choose_epochs = [&](const train::DefaultRecipe& chosen) {
      return epochs_within(*options.run.seconds / trainings_of(options), chosen, threads);
    };
  }
  if (options.folds) request.cross_validated = true;
  const train::DefaultRecipe chosen = train::default_recipe(request);
  return explained_recipe(chosen, options.source, common_settings(options), print);
}

// The methods that were measured on the same images, and the best of them; of equal ones the simplest.
std::string comparison_of(const train::TrainingResult& result) {
  std::vector<train::Score> scores = result.baselines;
  if (result.best_epoch > 0) {
    scores.push_back(*result.best);
    scores.back().title = "fine-tuned";
  }
  const auto best = std::ranges::max_element(scores, {}, &train::Score::value);
  const std::string values = join(scores, ", ", [](const train::Score& score) {
    return fmt::format("{} {:.1f} %", score.title, 100 * score.value);
  });
  return values + ": best is " + best->title + (best->name == "probe" ? " (--preset probe)" : "");
}

void print_end(const TrainCommandOptions& options, const train::TrainingResult& result, const Print& print) {
  if (result.best) {
    const std::string weights = result.best_epoch > 0 ? fmt::format("best weights: epoch {}, ", result.best_epoch) : "";
    print(weights + "held-out " + text_of(*result.best));
  }
  if (result.best && !result.baselines.empty()) print("on the same images: " + comparison_of(result));
  if (result.retrained) {
    const int64_t epochs = result.retrained->epochs;
    print(
        fmt::format("the saved model {} all {} images; the figures above are of the training without the held-out "
                    "ones",
                    epochs > 0 ? fmt::format("was trained again for {}, on", counted(epochs, "epoch"))
                               : "is the start, computed again from",
                    result.retrained->images));
  }
  if (result.cross_validated) print("cross-validated " + text_of(*result.cross_validated));
  if (result.test) print("test " + text_of(result.test->scores.front()));
  print_files(options.run, result, print);
  print_change(result, print);
}

void add_folds(const train::CrossValidationResult& validated, nlohmann::ordered_json& json) {
  const std::string name = "cross_validated_" + validated.metric.name;
  json["folds"] = validated.folds.size();
  json[name] = validated.mean.mean;
  json[name + "_interval"] = {validated.mean.interval.low, validated.mean.interval.high};
}

int train_model(const TrainCommandOptions& options, const GlobalOptions& global, const Processes& processes) {
  const auto print = [&](const std::string& line) {
    if (!global.quiet && processes->rank() == 0) print_note(line);
  };
  const auto start = std::chrono::steady_clock::now();
  const train::Recipe recipe = recipe_of(options, threads_for(global), print);
  train::CrossValidationResult validated;
  const Training training = [&](const train::TrainerOptions& trainer, const train::TrainerCallbacks& callbacks) {
    if (!options.folds) return train::train(recipe, trainer, callbacks);
    validated = cross_validate(recipe, *options.folds, trainer, callbacks);
    return validated.final;
  };
  int status = 0;
  const std::optional<train::TrainingResult> result = run_training(
      options.run, time_left(options.run, trainings_of(options), start), global, processes, training, status);
  if (!result) return status;
  print_end(options, *result, print);
  nlohmann::ordered_json json = run_json(options.run, *result);
  if (options.folds) add_folds(validated, json);
  if (!TableFormat().is_table()) print_json(json);  // print_end() tells people
  return 0;
}

}  // namespace

void add_train(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<TrainCommandOptions>();
  CLI::App* command = program.add_subcommand("train", "Train a model on a folder of images, or by a recipe");
  command->footer(
      "Example: vitrail train photos -o runs/photos -m timm/deit_tiny_patch16_224.fb_in1k\n"
      "Example: vitrail train recipes/cifar10-small.json -o runs/cifar10 --data cifar10.zip --set epochs=30");
  command
      ->add_option("DATA", options->source,
                   "Dataset with class folders, maps, boxes or captions, or a recipe: a .json file (docs/training.md)")
      ->required();
  add_run_folder(*command, options->run);
  command->add_option("-m,--model", options->model,
                      "Pretrained model to start from (default: the recipe's, or the bundled model)");
  command->add_option("--data", options->data, "With a recipe: the dataset to train on instead of the recipe's");
  add_field_options(
      *command,
      [options](Fields& f) {
        f.choice({"preset",
                  "finetune, probe for a new head on frozen features, or scratch for a new model (default: finetune)"},
                 options->preset, {"finetune", "probe", "scratch"});
        f.choice({"objective",
                  "classify, semantic for label maps, detect for boxes, or contrastive for captions (default: by the "
                  "dataset)"},
                 options->objective, {"classify", "semantic", "detect", "contrastive"});
        f.integer({"epochs", "Number of epochs (default: by dataset size)"}, options->epochs, 1, train::kMaxEpochs);
      },
      {}, hide_default);
  add_time(*command, options->run);
  add_field_options(*command, [options](Fields& f) {
    f.integer({"folds", "Measure by K-fold cross-validation, then train on all images (K+1 trainings)"}, options->folds,
              2, train::kMaxFolds);
  });
  add_columns(*command, options->columns);
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->add_option("--set", options->settings, "Override a field of the recipe: key.path=value; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--force", options->run.force, "Take settings that are known to destroy a pretrained model");
  add_resume(*command, options->run);
  command->callback([options, &global, &run] {
    run = [options, &global] {
      return in_processes([&](const Processes& processes) { return train_model(*options, global, processes); });
    };
  });
}

}  // namespace vitrail::app
