// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/train/training_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <numeric>

#include "apps/vitrail/bench/bench_train.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/progress.h"
#include "apps/vitrail/output/status_text.h"
#include "apps/vitrail/output/text_width.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_guard.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/text.h"
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

}  // namespace

void add_run_folder(CLI::App& command, RunOptions& options) {
  command.add_option("-o,--output", options.folder, "Output folder of the run")->required();
}

void add_time(CLI::App& command, RunOptions& options) {
  command
      .add_option("--time", options.seconds,
                  "Training time, as 90s, 20m or 1.5h, from which the number of epochs follows; on a machine that "
                  "becomes slower, the run has fewer")
      ->type_name("TIME")
      ->transform(kDuration)
      ->excludes(command.get_option("--epochs"));
}

void add_resume(CLI::App& command, RunOptions& options) {
  CLI::Option* resume =
      command.add_flag("--resume", options.resume, "Resume the run in the output folder, or start it");
  command.add_flag("--allow-changes", options.allow_changes, "Resume even if the recipe has changed")->needs(resume);
}

int threads_for(const GlobalOptions& global) {
  return global.threads > 0 ? global.threads
                            : std::max(1, available_threads() / dist::launch_from_environment().local_size);
}

std::optional<train::Recipe> recipe_of_run(const RunOptions& options) {
  if (!options.resume) return std::nullopt;
  for (const char* name : {"recipe.json", "folds/1/recipe.json"}) {
    const std::filesystem::path recipe = std::filesystem::path(options.folder) / name;
    std::error_code error;
    if (std::filesystem::exists(recipe, error)) return train::read_recipe(recipe);
  }
  return std::nullopt;
}

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

train::Recipe explained_recipe(const train::DefaultRecipe& chosen, const std::string& where,
                               const std::vector<std::string>& settings, const Print& print) {
  for (const std::string& reason : chosen.reasons) print("recipe: " + reason);
  const train::Recipe recipe = train::with_overrides(chosen.recipe, where, settings);
  for (const std::string& change :
       train::recipe_differences(train::write_recipe(chosen.recipe), train::write_recipe(recipe)))
    print("recipe: by option, " + change);
  return recipe;
}

double time_left(const RunOptions& options, double trainings, std::chrono::steady_clock::time_point start) {
  if (!options.seconds) return 0;
  const double used = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::max((*options.seconds - used) / trainings, 0.001);
}

std::optional<train::TrainingResult> run_training(const RunOptions& options, double seconds,
                                                  const GlobalOptions& global, const Processes& processes,
                                                  const Training& train, int& status) {
  const bool is_root = processes->rank() == 0;
  install_signal_handlers();
  StatusLine line(global.quiet || !is_root);
  const auto print_message = [&](const std::string& text) {
    if (!global.quiet) print_note(text);
  };
  const train::TrainerOptions trainer{
      .folder = options.folder,
      .resume = options.resume,
      .allow_changes = options.allow_changes,
      .force = options.force,
      .threads = threads_for(global),
      .time_limit = seconds,
      .communicator = processes,
      .environment = {{"command", global.command_line}, {"version", "vitrail " VITRAIL_VERSION}}};
  const auto end_epoch = [&](const train::EpochResult& e) {
    check_mapped_files();  // the dataset may be an archive
    print_message(epoch_line(e));
  };
  const auto show = [&](const train::Progress& p) {
    if (line.due(p.step == p.steps)) line.draw(status_text(status_of(p), status_width()));
  };
  train::TrainingResult result = train(
      trainer,
      {.progress = show, .epoch = end_epoch, .message = print_message, .stop = [] { return stop_requested.load(); }});
  clear_status();
  processes->finish();
  status = result.stopped ? 1 : 0;
  if (!is_root) return std::nullopt;
  if (!result.stopped) return result;
  print_error(fmt::format("stopped after step {}, epoch {}; continue with --resume", result.step, result.epoch + 1));
  return std::nullopt;
}

void print_change(const train::TrainingResult& result, const Print& print) {
  if (!result.start || !result.best) return;
  std::vector<std::string> changes;
  for (size_t i = 0; i < result.start_scores.size(); ++i) {
    const train::Score &before = result.start_scores[i], &after = result.best_scores.at(i);
    changes.push_back(fmt::format("{} {:.1f} → {:.1f} %", before.title, 100 * before.value, 100 * after.value));
  }
  const std::string last =
      result.last ? fmt::format("; {} {:.1f} % in the last epoch", result.last->title, 100 * result.last->value) : "";
  print(fmt::format("before training → saved model (epoch {}): {}{}", result.best_epoch, join(changes), last));
  if (result.best_epoch == 0) print("no epoch was better than the start: the saved model is the start");
}

void print_files(const RunOptions& options, const train::TrainingResult& result, const Print& print) {
  const std::string folder = std::filesystem::path(options.folder).lexically_normal().string();
  const auto in_folder = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  print("model: " + in_folder("model"));
  print("report: " + in_folder("report.html"));
  print("next: vitrail " + fmt::format(fmt::runtime(result.usage), shell_quoted(in_folder("model"))));
}

nlohmann::ordered_json run_json(const RunOptions& options, const train::TrainingResult& result) {
  nlohmann::ordered_json json{{"run", options.folder}};
  json.update(nlohmann::ordered_json::parse(train::result_json(result)));
  return json;
}

int in_processes(const std::function<int(const Processes&)>& command) {
  const Processes processes = dist::connect();
  try {
    return command(processes);
  } catch (const Error& error) {
    if (processes->size() == 1) throw;
    throw Error(str("process ", processes->rank(), ": ", error.what()));
  }
}

}  // namespace vitrail::app
