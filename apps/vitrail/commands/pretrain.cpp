// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/input/labelled_sets.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/table_format.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/train/training_run.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/train/objectives/pretrain/methods.h"

namespace vitrail::app {
namespace {

struct PretrainCommandOptions {
  RunOptions run;
  std::string source, model, probe, method, teacher, keep, preset = "continue";
  std::optional<int64_t> epochs, image_size;
  std::vector<std::string> settings;
  bool exif = false;
};

std::string setting(const std::string& key, const std::string& text) { return key + "=" + nlohmann::json(text).dump(); }

// The options as settings of the recipe.  --set may override them.
std::vector<std::string> settings_of(const PretrainCommandOptions& options) {
  std::vector<std::string> settings;
  const std::pair<const char*, const std::string&> texts[]{{"pretrain.method", options.method},
                                                           {"pretrain.teacher", options.teacher},
                                                           {"pretrain.probe", options.probe},
                                                           {"pretrain.keep", options.keep}};
  for (const auto& [key, text] : texts) {
    if (!text.empty()) settings.push_back(setting(key, text));
  }
  if (options.image_size) settings.push_back(str("model.img_size=", *options.image_size));
  if (options.exif) settings.emplace_back("data.exif=true");
  settings.insert(settings.end(), options.settings.begin(), options.settings.end());
  return settings;
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) throw Error(str(path, ": ", error.message()));
  return absolute.string();
}

// The images; a list on standard input becomes a file in the run's folder, which a resumed run reads.
std::string images_of(const PretrainCommandOptions& options, const Processes& processes) {
  if (options.source != "-") return options.source;
  const std::filesystem::path folder = options.run.folder, list = folder / "images.txt";
  if (options.run.resume) return list.string();
  if (processes->size() > 1) throw Error("IMAGES", "a .txt of paths, with several processes", "- (standard input)");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream file(list);
  for (std::string line; std::getline(std::cin, line);) {
    if (!line.empty()) file << absolute_path(line) << '\n';
  }
  if (!file.flush()) throw Error(list.string(), "a file that can be written", "an error");
  return list.string();
}

train::Recipe recipe_of(const PretrainCommandOptions& options, int threads, const Processes& processes,
                        const Print& print) {
  const bool scratch = options.preset == "scratch";
  if (scratch && !options.model.empty())
    throw CLI::ValidationError("--preset scratch", "without -m: a new model starts from no other");
  const std::vector<std::string> settings = settings_of(options);
  const std::string images = images_of(options, processes);
  train::DefaultRecipeOptions request{.data = images,
                                      .model = options.model,
                                      .objective = "pretrain",
                                      .settings = settings,
                                      .preset = scratch ? train::Preset::scratch : train::Preset::finetune,
                                      .epochs = options.epochs};
  if (options.run.seconds) {
    request.resumed = recipe_of_run(options.run);
    request.choose_epochs = [&](const train::DefaultRecipe& chosen) {
      return epochs_within(*options.run.seconds, chosen, threads);
    };
  }
  return explained_recipe(train::default_recipe(request), images, settings, print);
}

void print_end(const PretrainCommandOptions& options, const train::TrainingResult& result, const Print& print) {
  print_files(options.run, result, print);
  print(fmt::format("fine-tune: vitrail train LABELLED -m {} -o RUN", shell_quoted(options.run.folder + "/model")));
  print_change(result, print);
}

int pretrain_model(const PretrainCommandOptions& options, const GlobalOptions& global, const Processes& processes) {
  const auto print = [&](const std::string& line) {
    if (!global.quiet && processes->rank() == 0) print_note(line);
  };
  const auto start = std::chrono::steady_clock::now();
  const train::Recipe recipe = recipe_of(options, threads_for(global), processes, print);
  const Training training = [&](const train::TrainerOptions& trainer, const train::TrainerCallbacks& callbacks) {
    return train::train(recipe, trainer, callbacks);
  };
  int status = 0;
  const std::optional<train::TrainingResult> result =
      run_training(options.run, time_left(options.run, 1, start), global, processes, training, status);
  if (!result) return status;
  print_end(options, *result, print);
  if (!TableFormat().is_table()) print_json(run_json(options.run, *result));  // print_end() tells people
  return 0;
}

}  // namespace

void add_pretrain(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<PretrainCommandOptions>();
  CLI::App* command = program.add_subcommand("pretrain", "Train a model on images without labels");
  command->footer(
      "Example: vitrail pretrain photos -o runs/own -m facebook/dinov2-small --time 3h\n"
      "Example: vitrail pretrain photos -o runs/own --probe labelled\n"
      "Example: vitrail pretrain photos -o runs/new --preset scratch --time 8h\n"
      "Example: vitrail pretrain photos -o runs/tiny -m cifar10-vit --teacher facebook/dinov2-base");
  command
      ->add_option("IMAGES", options->source,
                   "Images: a folder at any depth, a .zip or .tar, a folder of .tar shards, a .txt of paths, or - for "
                   "paths on standard input")
      ->required();
  add_run_folder(*command, options->run);
  command->add_option("-m,--model", options->model, "Pretrained model to start from (default: the bundled model)");
  command->add_option("--probe", options->probe,
                      "Labelled dataset, on which k-NN and a linear probe measure the features");
  command->add_option("--teacher", options->teacher, "Model whose features the model learns (method distill)");
  add_field_options(
      *command,
      [options](Fields& f) {
        f.choice({"method", "How it learns (default: by the number of images, the preset and the teacher)"},
                 options->method, train::pretrain_method_names());
        f.choice({"preset", "continue: from a model; scratch: a new small model"}, options->preset,
                 {"continue", "scratch"});
        f.choice({"keep", "The saved weights (default: best)"}, options->keep, {"best", "last"});
        f.integer({"epochs", "Number of epochs (default: by the number of images)"}, options->epochs, 1,
                  train::kMaxEpochs);
        f.integer({"image-size", "Side of the model's input in pixels (default: the model's)"}, options->image_size, 1,
                  1 << 12);
      },
      {}, hide_default);
  add_time(*command, options->run);
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->add_option("--set", options->settings, "Override a field of the recipe: key.path=value; repeatable")
      ->allow_extra_args(false);
  add_resume(*command, options->run);
  command->callback([options, &global, &run] {
    run = [options, &global] {
      return in_processes([&](const Processes& processes) { return pretrain_model(*options, global, processes); });
    };
  });
}

}  // namespace vitrail::app
