// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "vitrail/c_api/handles_internal.h"
#include "vitrail/train/recipe/default_recipe.h"
#include "vitrail/train/recipe/recipe_inputs.h"
#include "vitrail/train/report/result_json.h"
#include "vitrail/train/trainer.h"

namespace vitrail::c_api {
namespace {

// The settings, with that of the model in front, which others may replace.
std::vector<std::string> settings_of(const vitrail_train_options& options) {
  std::vector<std::string> settings;
  if (options.model) settings = train::start_settings(options.model);
  const std::vector<std::string> given = strings_of(options.settings, options.num_settings, "settings");
  settings.insert(settings.end(), given.begin(), given.end());
  return settings;
}

// A recipe's text, its file, or a dataset, for which the settings are chosen as the program does.
train::Recipe recipe_of(const std::string& source, const vitrail_train_options& options) {
  const std::vector<std::string> settings = settings_of(options);
  const bool is_text = source.starts_with('{');
  if (is_text || std::filesystem::path(source).extension() == ".json") {
    if (options.preset) throw Error("preset", "none for a recipe", options.preset);
    return is_text ? train::parse_recipe(source, "recipe", settings) : train::read_recipe(source, settings);
  }
  const std::vector<std::string> given = strings_of(options.settings, options.num_settings, "settings");
  const train::DefaultRecipe chosen = train::default_recipe(
      {.data = source,
       .model = options.model ? options.model : "",
       .settings = given,
       .preset = options.preset ? train::preset_from_name(options.preset) : train::Preset::finetune});
  return train::with_overrides(chosen.recipe, source, given);
}

// Passes events to the caller, who may ask for a stop.
class Events {
 public:
  explicit Events(const vitrail_train_options& options) : options_(options) {}

  void send(vitrail_train_event event, const std::string& text) {
    if (options_.on_event && options_.on_event(event, text.c_str(), options_.context) != 0) stop_ = true;
  }
  bool stop() const { return stop_; }

 private:
  const vitrail_train_options& options_;
  bool stop_ = false;
};

bool run(const std::string& source, const char* folder, const vitrail_train_options& options) {
  if (options.threads < 0) throw Error("threads", "at least 0", str(options.threads));
  Events events(options);
  const train::TrainerOptions trainer{.folder = folder,
                                      .resume = options.resume != 0,
                                      .allow_changes = options.allow_changes != 0,
                                      .force = options.force != 0,
                                      .threads = options.threads,
                                      .environment = {{"version", str("vitrail ", vitrail_version())}}};
  const train::TrainerCallbacks callbacks{
      .progress = [&](const train::Progress& p) { events.send(VITRAIL_TRAIN_PROGRESS, train::progress_json(p)); },
      .epoch = [&](const train::EpochResult& e) { events.send(VITRAIL_TRAIN_EPOCH, train::epoch_json(e)); },
      .message = [&](const std::string& line) { events.send(VITRAIL_TRAIN_MESSAGE, line); },
      .stop = [&] { return events.stop(); }};
  const train::TrainingResult result = train::train(recipe_of(source, options), trainer, callbacks);
  if (!result.stopped) events.send(VITRAIL_TRAIN_RESULT, train::result_json(result));
  return result.stopped;
}

}  // namespace
}  // namespace vitrail::c_api

using namespace vitrail::c_api;

extern "C" vitrail_status* vitrail_train(const char* source, const char* folder, const vitrail_train_options* options,
                                         int* stopped) {
  return guarded([&] {
    int& result = required(stopped, "stopped");
    const auto chosen = options_or(options, VITRAIL_TRAIN_OPTIONS_INIT, "vitrail_train_options");
    result = run(&required(source, "source"), &required(folder, "folder"), chosen) ? 1 : 0;
  });
}
