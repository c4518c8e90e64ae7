// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <numeric>

#include "apps/vitrail/bench/bench_train.h"
#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/input/labelled_sets.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/progress.h"
#include "apps/vitrail/output/status_text.h"
#include "apps/vitrail/output/table_format.h"
#include "apps/vitrail/output/text_width.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_guard.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/text.h"
#include "vitrail/train/objectives/classification/cross_validation.h"
#include "vitrail/train/recipe/default_recipe.h"
#include "vitrail/train/recipe/recipe_inputs.h"
#include "vitrail/train/report/result_json.h"

namespace vitrail::app {
namespace {

// "90s", "20m" or "1.5h" becomes the number of seconds.
const CLI::Validator kDuration(
    [](std::string& text) {
      constexpr std::pair<char, double> kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
      for (const auto& [unit, seconds] : kUnits) {
        if (!text.ends_with(unit)) continue;
        double number = 0;
        const char* const end = text.data() + text.size() - 1;
        const auto [last, error] = std::from_chars(text.data(), end, number);
        if (error != std::errc() || last != end || !(number > 0) || !std::isfinite(number)) continue;
        text = fmt::format("{}", number * seconds);
        return std::string();
      }
      return "expected a time, such as 90s, 20m or 1.5h, got '" + text + "'";
    },
    "");

using Processes = std::shared_ptr<dist::Communicator>;

struct TrainCommandOptions {
  std::string source, folder;  // source: a dataset or a recipe
  std::string data, model, preset = "finetune", columns;
  std::optional<int64_t> epochs, folds;
  std::optional<double> seconds;
  std::string objective;  // empty: by the dataset
  std::vector<std::string> settings;
  bool exif = false, resume = false, allow_changes = false;
};

std::atomic<bool> stop_requested{false};

extern "C" void on_signal(int) { stop_requested = true; }

// SIGHUP, SIGINT, SIGTERM and SIGUSR1 request a stop after the current step.  A second signal ends the program at once.
// SIGUSR1 is included because mpirun forwards it without ending the processes itself.
void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup ignores SIGHUP
  }
}

const char* name_of(train::Progress::Phase phase) {
  switch (phase) {
    case train::Progress::Phase::train:
      return "training";
    case train::Progress::Phase::validate:
      return "validating";
    case train::Progress::Phase::test:
      return "testing";
    case train::Progress::Phase::features:
      return "computing features";
    case train::Progress::Phase::search:
      return "cross-validating";
  }
  return "";
}

Status status_of(const train::Progress& p) {
  const bool trains = p.phase == train::Progress::Phase::train;
  Status status{.what = trains ? fmt::format("epoch {}/{}", p.epoch, p.epochs) : name_of(p.phase),
                .done = p.step,
                .total = p.steps,
                .count = fmt::format("{}/{}", p.step, p.steps)};
  status.parts.push_back(time_left_text(p.seconds_left));
  if (trains) status.parts.push_back(fmt::format("loss {:.4f}", p.loss));
  for (const train::Score& score : p.scores)
    status.parts.push_back(fmt::format("{} {:.1f} %", score.title, 100 * score.value));
  if (p.images_per_second > 0) status.parts.push_back(fmt::format("{:.0f} images/s", p.images_per_second));
  if (trains) status.parts.push_back(fmt::format("data wait {:.0f} %", 100 * p.data_wait));
  return status;
}

std::string epoch_line(const train::EpochResult& e) {
  std::string line = fmt::format("epoch {:>3}  step {:>6}  loss {:.4f}", e.epoch, e.step, e.train.loss);
  for (const train::Score& score : e.train.scores)
    line += fmt::format("  {} {:5.2f} %", score.title, 100 * score.value);
  return line + fmt::format("{}  {}{}", e.text, duration_text(e.seconds), e.best ? "  best" : "");
}

// The processes that mpirun started on one machine share its cores.
int threads_for(const GlobalOptions& global) {
  return global.threads > 0 ? global.threads
                            : std::max(1, available_threads() / dist::launch_from_environment().local_size);
}

// A recipe says itself what these options choose for a dataset.
void require_dataset(const TrainCommandOptions& options) {
  const char* given = options.preset != "finetune" ? "--preset"
                      : options.seconds            ? "--time"
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

train::Preset preset_of(const TrainCommandOptions& options) {
  if (options.preset == "probe") return train::Preset::probe;
  return options.preset == "scratch" ? train::Preset::scratch : train::Preset::finetune;
}

bool is_recipe(const std::string& source) { return std::filesystem::path(source).extension() == ".json"; }

// The recipe of the run that is resumed, or of the first fold, whose epochs --time must not choose again; none for a
// new run.
std::optional<train::Recipe> recipe_of_run(const TrainCommandOptions& options) {
  if (!options.resume) return std::nullopt;
  for (const char* name : {"recipe.json", "folds/1/recipe.json"}) {
    const std::filesystem::path recipe = std::filesystem::path(options.folder) / name;
    std::error_code error;
    if (std::filesystem::exists(recipe, error)) return train::read_recipe(recipe);
  }
  return std::nullopt;
}

// The epochs that take about `seconds`, from the time of some training steps on this machine.
int64_t epochs_within(double seconds, const train::DefaultRecipe& chosen, int threads) {
  constexpr double kMeasuredSeconds = 2, kForwardShare = 1 / 3.0;  // validation and frozen layers: no backward pass
  RandomParams params(0);
  models::VisionTransformer model(chosen.architecture, ParamSource(params));
  const int64_t batch = chosen.recipe.batch_size;
  const TrainingTimes times =
      time_training(model, {.batch = batch, .threads = threads, .precision = DType::f32}, kMeasuredSeconds);
  const double total = std::accumulate(times.milliseconds.begin(), times.milliseconds.end(), 0.0);
  const double image = total / static_cast<double>(times.milliseconds.size()) / 1000 / static_cast<double>(batch);
  const double step = (chosen.is_frozen ? kForwardShare : 1) + chosen.head_cost;
  const double training = static_cast<double>(chosen.training_images) * step,
               validation = static_cast<double>(chosen.validation_images);
  const double epoch = image * (training + kForwardShare * (1 + chosen.head_cost) * validation +
                                (chosen.recipe.data.retrain ? training + validation * step : 0));
  return static_cast<int64_t>(std::clamp(seconds / epoch, 1.0, static_cast<double>(train::kMaxEpochs)));
}

// The number of trainings among which --time is divided.
double trainings_of(const TrainCommandOptions& options) { return static_cast<double>(options.folds.value_or(0) + 1); }

// A dataset that does not exist is an error of the recipe.
std::string objective_of(const TrainCommandOptions& options) {
  std::error_code unreadable;
  if (!options.objective.empty() || !std::filesystem::exists(options.source, unreadable)) return options.objective;
  return train::dataset_objective(options.source);
}

// The recipe that is named, or one for the dataset that is named, with its reasons.
train::Recipe recipe_of(const TrainCommandOptions& options, int threads,
                        const std::function<void(const std::string&)>& print) {
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
  if (options.preset == "probe" && (options.epochs || options.seconds || options.folds) &&
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
                                      .preset = preset_of(options),
                                      .epochs = options.epochs};
  if (options.seconds) {
    request.resumed = recipe_of_run(options);
    request.choose_epochs = [&](const train::DefaultRecipe& chosen) {
      return epochs_within(*options.seconds / trainings_of(options), chosen, threads);
    };
  }
  if (options.folds) request.cross_validated = true;
  const train::DefaultRecipe chosen = train::default_recipe(request);
  for (const std::string& reason : chosen.reasons) print("recipe: " + reason);
  const train::Recipe recipe = train::with_overrides(chosen.recipe, options.source, common_settings(options));
  for (const std::string& change :
       train::recipe_differences(train::write_recipe(chosen.recipe), train::write_recipe(recipe)))
    print("recipe: by option, " + change);
  return recipe;
}

// The part of --time that is left for each training after choosing the recipe; at least a millisecond, because 0 is no
// limit.
double time_left(const TrainCommandOptions& options, std::chrono::steady_clock::time_point start) {
  if (!options.seconds) return 0;
  const double used = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::max((*options.seconds - used) / trainings_of(options), 0.001);
}

// The methods that were measured on the same images, and the best of them; of equal ones the simplest.
std::string comparison_of(const train::TrainingResult& result) {
  std::vector<train::Score> scores = result.baselines;
  scores.push_back(*result.best);
  scores.back().title = "fine-tuned";
  const auto best = std::ranges::max_element(scores, {}, &train::Score::value);
  const std::string values = join(scores, ", ", [](const train::Score& score) {
    return fmt::format("{} {:.1f} %", score.title, 100 * score.value);
  });
  return values + ": best is " + best->title + (best->name == "probe" ? " (--preset probe)" : "");
}

void print_end(const TrainCommandOptions& options, const train::TrainingResult& result,
               const std::function<void(const std::string&)>& print) {
  const std::string folder = std::filesystem::path(options.folder).lexically_normal().string();
  const auto in_folder = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  if (result.best) {
    const std::string weights = result.best_epoch > 0 ? fmt::format("best weights: epoch {}, ", result.best_epoch) : "";
    print(weights + "held-out " + text_of(*result.best));
  }
  if (result.best && !result.baselines.empty()) print("on the same images: " + comparison_of(result));
  if (result.retrained)
    print(
        fmt::format("the saved model was trained again for {}, on all {} images; the figures above are of the "
                    "training without the held-out ones",
                    counted(result.retrained->epochs, "epoch"), result.retrained->images));
  if (result.cross_validated) print("cross-validated " + text_of(*result.cross_validated));
  if (result.test) print("test " + text_of(result.test->scores.front()));
  print("model: " + in_folder("model"));
  print("report: " + in_folder("report.html"));
  print("next: vitrail " + fmt::format(fmt::runtime(result.usage), shell_quoted(in_folder("model"))));
}

nlohmann::ordered_json json_of(const TrainCommandOptions& options, const train::TrainingResult& result) {
  nlohmann::ordered_json json{{"run", options.folder}};
  json.update(nlohmann::ordered_json::parse(train::result_json(result)));
  return json;
}

void add_folds(const train::CrossValidationResult& validated, nlohmann::ordered_json& json) {
  const std::string name = "cross_validated_" + validated.metric.name;
  json["folds"] = validated.folds.size();
  json[name] = validated.mean.mean;
  json[name + "_interval"] = {validated.mean.interval.low, validated.mean.interval.high};
}

int train_model(const TrainCommandOptions& options, const GlobalOptions& global, const Processes& processes) {
  const bool is_root = processes->rank() == 0;
  const auto print = [&](const std::string& line) {
    if (!global.quiet && is_root) print_note(line);
  };
  const auto start = std::chrono::steady_clock::now();
  const train::Recipe recipe = recipe_of(options, threads_for(global), print);
  install_signal_handlers();
  StatusLine status(global.quiet || !is_root);
  auto print_message = [&](const std::string& line) {
    if (!global.quiet) print_note(line);
  };
  const train::TrainerOptions trainer{
      .folder = options.folder,
      .resume = options.resume,
      .allow_changes = options.allow_changes,
      .threads = threads_for(global),
      .time_limit = time_left(options, start),
      .communicator = processes,
      .environment = {{"command", global.command_line}, {"version", "vitrail " VITRAIL_VERSION}}};
  const auto end_epoch = [&](const train::EpochResult& e) {
    check_mapped_files();  // the dataset may be an archive
    print_message(epoch_line(e));
  };
  const auto show = [&](const train::Progress& p) {
    if (status.due(p.step == p.steps)) status.draw(status_text(status_of(p), status_width()));
  };
  const train::TrainerCallbacks callbacks{
      .progress = show, .epoch = end_epoch, .message = print_message, .stop = [] { return stop_requested.load(); }};
  train::CrossValidationResult validated;
  const train::TrainingResult result =
      options.folds ? (validated = cross_validate(recipe, *options.folds, trainer, callbacks)).final
                    : train::train(recipe, trainer, callbacks);
  clear_status();
  processes->finish();
  if (!is_root) return result.stopped ? 1 : 0;
  if (result.stopped) {
    print_error(fmt::format("stopped after step {}, epoch {}; continue with --resume", result.step, result.epoch + 1));
    return 1;
  }
  print_end(options, result, print);
  nlohmann::ordered_json json = json_of(options, result);
  if (options.folds) add_folds(validated, json);
  if (!TableFormat().is_table()) print_json(json);  // print_end() tells people
  return 0;
}

// With several processes, an error names its process.
int train_processes(const TrainCommandOptions& options, const GlobalOptions& global) {
  const Processes processes = dist::connect();
  try {
    return train_model(options, global, processes);
  } catch (const Error& error) {
    if (processes->size() == 1) throw;
    throw Error(str("process ", processes->rank(), ": ", error.what()));
  }
}

}  // namespace

void add_train(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<TrainCommandOptions>();
  CLI::App* command = program.add_subcommand("train", "Train a model on a folder of images, or by a recipe");
  command->footer(
      "Example: vitrail train photos -o runs/photos -m timm/deit_tiny_patch16_224.fb_in1k\n"
      "Example: vitrail train recipes/cifar10-small.json -o runs/cifar10 --data cifar10.zip --set epochs=30");
  command
      ->add_option("DATA", options->source, "Dataset with class folders, or a recipe: a .json file (docs/training.md)")
      ->required();
  command->add_option("-o,--output", options->folder, "Output folder of the run")->required();
  command->add_option("-m,--model", options->model,
                      "Pretrained model to start from (default: the recipe's, or the bundled model)");
  command->add_option("--data", options->data, "With a recipe: the dataset to train on instead of the recipe's");
  add_field_options(
      *command,
      [options](Fields& f) {
        f.choice({"preset",
                  "finetune, probe for a new head on frozen features, or scratch for a new model (default: finetune)"},
                 options->preset, {"finetune", "probe", "scratch"});
        f.choice({"objective", "classify, semantic for label maps, or detect for boxes (default: by the dataset)"},
                 options->objective, {"classify", "semantic", "detect"});
        f.integer({"epochs", "Number of epochs (default: by dataset size)"}, options->epochs, 1, train::kMaxEpochs);
      },
      {}, hide_default);
  command
      ->add_option(
          "--time", options->seconds,
          "Training time, as 90s, 20m or 1.5h, from which the number of epochs follows; on a machine that becomes "
          "slower, the run has fewer")
      ->type_name("TIME")
      ->transform(kDuration)
      ->excludes(command->get_option("--epochs"));
  add_field_options(*command, [options](Fields& f) {
    f.integer({"folds", "Measure by K-fold cross-validation, then train on all images (K+1 trainings)"}, options->folds,
              2, train::kMaxFolds);
  });
  add_columns(*command, options->columns);
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->add_option("--set", options->settings, "Override a field of the recipe: key.path=value; repeatable")
      ->allow_extra_args(false);
  CLI::Option* resume =
      command->add_flag("--resume", options->resume, "Resume the run in the output folder, or start it");
  command->add_flag("--allow-changes", options->allow_changes, "Resume even if the recipe has changed")->needs(resume);
  command->callback(
      [options, &global, &run] { run = [options, &global] { return train_processes(*options, global); }; });
}

}  // namespace vitrail::app
