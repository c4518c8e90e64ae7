// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/trainer.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>

#include "apps/vitrail/commands.h"
#include "apps/vitrail/output.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::app {
namespace {

using Processes = std::shared_ptr<dist::Communicator>;

struct Options {
  std::string recipe, folder;
  std::vector<std::string> settings;
  bool resume = false, allow_changes = false;
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

// "m:ss" or "h:mm:ss"
std::string duration_text(double seconds) {
  const auto total = static_cast<int64_t>(seconds);
  return total >= 3600 ? fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60)
                       : fmt::format("{}:{:02}", total / 60, total % 60);
}

// A progress bar on standard error, redrawn a few times per second.  Shown only on a terminal.
class ProgressBar {
 public:
  explicit ProgressBar(bool quiet) : enabled_(!quiet && ::isatty(STDERR_FILENO)) {}
  ~ProgressBar() { clear(); }

  void show(const train::Progress& p) {
    const auto now = std::chrono::steady_clock::now();
    if (!enabled_ || (p.step != p.steps && now - last_draw_ < std::chrono::milliseconds(150))) return;
    last_draw_ = now;
    constexpr int64_t kCells = 20;
    const int64_t filled = p.steps > 0 ? p.step * kCells / p.steps : 0;
    std::string bar;
    for (int64_t i = 0; i < kCells; ++i) bar += i < filled ? "━" : "╌";
    if (p.phase == train::Progress::Phase::train) {
      draw(fmt::format(
          "\r\033[Kepoch {}/{} {} {}/{}  loss {:.4f}  top-1 {:.1f} %  {:.0f} images/s  data wait {:.0f} %  {} left",
          p.epoch, p.epochs, bar, p.step, p.steps, p.loss, 100 * p.accuracy, p.images_per_second, 100 * p.data_wait,
          duration_text(p.seconds_left)));
    } else {
      const char* what = p.phase == train::Progress::Phase::test ? "testing" : "validating";
      draw(fmt::format("\r\033[K{} {} {}/{}", what, bar, p.step, p.steps));
    }
    drawn_ = true;
  }
  void clear() {
    if (drawn_) draw("\r\033[K");
    drawn_ = false;
  }

 private:
  bool enabled_, drawn_ = false;
  std::chrono::steady_clock::time_point last_draw_{};
};

std::string epoch_line(const train::EpochResult& e) {
  std::string line = fmt::format("epoch {:>3}  step {:>6}  loss {:.4f}  top-1 {:5.2f} %", e.epoch, e.step, e.train_loss,
                                 100 * e.train_top1);
  if (e.validated) line += fmt::format("  validation: loss {:.4f}  top-1 {:5.2f} %", e.val_loss, 100 * e.val_top1);
  if (e.has_ema) line += fmt::format("  EMA {:5.2f} %", 100 * e.ema_top1);
  return line + fmt::format("  {}{}", duration_text(e.seconds), e.best ? "  best" : "");
}

// The processes that mpirun started on one machine share its cores.
int threads_for(const GlobalOptions& global) {
  return global.threads > 0 ? global.threads
                            : std::max(1, available_threads() / dist::launch_from_environment().local_size);
}

int train_model(const Options& options, const GlobalOptions& global, const Processes& processes) {
  const train::Recipe recipe = train::read_recipe(options.recipe, options.settings);
  install_signal_handlers();
  const bool is_root = processes->rank() == 0;
  ProgressBar bar(global.quiet || !is_root);
  auto print_message = [&](const std::string& line) {
    bar.clear();
    if (!global.quiet) print_note(line);
  };
  const train::TrainerOptions trainer{.folder = options.folder,
                                      .resume = options.resume,
                                      .allow_changes = options.allow_changes,
                                      .threads = threads_for(global),
                                      .communicator = processes};
  const train::TrainerCallbacks callbacks{.progress = [&](const train::Progress& progress) { bar.show(progress); },
                                          .epoch = [&](const train::EpochResult& e) { print_message(epoch_line(e)); },
                                          .message = print_message,
                                          .stop = [] { return stop_requested.load(); }};
  const train::TrainingResult result = train::train(recipe, trainer, callbacks);
  bar.clear();
  processes->finish();
  if (!is_root) return result.stopped ? 1 : 0;
  if (result.stopped) {
    print_error(fmt::format("stopped after step {}, epoch {}; continue with --resume", result.step, result.epoch + 1));
    return 1;
  }
  nlohmann::ordered_json json{
      {"run", options.folder},    {"epochs", result.epoch},          {"steps", result.step},
      {"held_out_top1", nullptr}, {"best_epoch", result.best_epoch}, {"seconds", result.seconds}};
  if (result.best_top1) json["held_out_top1"] = *result.best_top1;
  if (result.tested) {
    json["test_top1"] = result.test_top1;
    json["test_top5"] = result.test_top5;
  }
  if (result.skipped_images > 0) json["skipped_images"] = result.skipped_images;
  if (result.skipped_steps > 0) json["skipped_steps"] = result.skipped_steps;
  if (result.processes > 1) {
    json["processes"] = result.processes;
    json["exchange_seconds"] = result.communication.seconds;
    json["exchange_overlapped_seconds"] = result.communication.overlapped;
    json["exchange_waited_seconds"] = result.communication.waited;
  }
  print_json(json);
  return 0;
}

// With several processes, an error names its process.
int train_processes(const Options& options, const GlobalOptions& global) {
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
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("train", "Train a model from a recipe");
  command->footer(
      "Example: vitrail train recipes/cifar10-small.json -o runs/cifar10 --set data.train=cifar10.zip --set epochs=30");
  command->add_option("RECIPE", options->recipe, "Training recipe: JSON file (fields: docs/training.md)")->required();
  command->add_option("-o,--output", options->folder, "Output folder of the run")->required();
  command->add_option("--set", options->settings, "Override a field of the recipe: key.path=value; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--resume", options->resume, "Resume the run in the output folder, or start it");
  command->add_flag("--allow-changes", options->allow_changes, "Resume even if the recipe has changed");
  command->callback(
      [options, &global, &run] { run = [options, &global] { return train_processes(*options, global); }; });
}

}  // namespace vitrail::app
