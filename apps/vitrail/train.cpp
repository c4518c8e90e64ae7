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

std::atomic<bool> stop_asked{false};

extern "C" void on_signal(int) { stop_asked = true; }

// SIGINT and SIGTERM ask for a stop, and SIGUSR1, which mpirun passes on without ending the processes; a second one
// ends the program at once.
void install_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGUSR1, &action, nullptr);
}

std::string clock_of(double seconds) {
  const auto total = static_cast<int64_t>(seconds);
  return total >= 3600 ? fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60)
                       : fmt::format("{}:{:02}", total / 60, total % 60);
}

// A line on standard error that is written over, a few times a second; only on a terminal.
class Bar {
 public:
  explicit Bar(bool quiet) : on_(!quiet && ::isatty(STDERR_FILENO)) {}
  ~Bar() { clear(); }

  void show(const train::Progress& p) {
    const auto now = std::chrono::steady_clock::now();
    if (!on_ || (p.step != p.steps && now - shown_ < std::chrono::milliseconds(150))) return;
    shown_ = now;
    constexpr int64_t kCells = 20;
    const int64_t filled = p.steps > 0 ? p.step * kCells / p.steps : 0;
    std::string bar;
    for (int64_t i = 0; i < kCells; ++i) bar += i < filled ? "━" : "╌";
    if (p.phase == train::Progress::Phase::train) {
      fmt::print(
          stderr,
          "\r\033[Kepoch {}/{} {} {}/{}  loss {:.4f}  top-1 {:.1f} %  {:.0f} images/s  data wait {:.0f} %  {} left",
          p.epoch, p.epochs, bar, p.step, p.steps, p.loss, 100 * p.accuracy, p.images_per_second, 100 * p.data_wait,
          clock_of(p.seconds_left));
    } else {
      const char* what = p.phase == train::Progress::Phase::test ? "testing" : "validating";
      fmt::print(stderr, "\r\033[K{} {} {}/{}", what, bar, p.step, p.steps);
    }
    std::fflush(stderr);
    drawn_ = true;
  }
  void clear() {
    if (drawn_) fmt::print(stderr, "\r\033[K");
    drawn_ = false;
  }

 private:
  bool on_, drawn_ = false;
  std::chrono::steady_clock::time_point shown_{};
};

std::string epoch_line(const train::EpochResult& e) {
  std::string line = fmt::format("epoch {:>3}  step {:>6}  loss {:.4f}  top-1 {:5.2f} %", e.epoch, e.step, e.train_loss,
                                 100 * e.train_top1);
  if (e.validated) line += fmt::format("  held out: loss {:.4f}  top-1 {:5.2f} %", e.val_loss, 100 * e.val_top1);
  if (e.has_ema) line += fmt::format("  averaged {:5.2f} %", 100 * e.ema_top1);
  return line + fmt::format("  {}{}", clock_of(e.seconds), e.best ? "  best" : "");
}

// Processes that mpirun started on one machine share its cores.
int threads_for(const GlobalOptions& global) {
  return global.threads > 0 ? global.threads
                            : std::max(1, available_threads() / dist::launch_from_environment().local_size);
}

int train_model(const Options& options, const GlobalOptions& global, const Processes& processes) {
  const train::Recipe recipe = train::read_recipe(options.recipe, options.settings);
  install_signals();
  const bool leads = processes->rank() == 0;
  Bar bar(global.quiet || !leads);
  auto say = [&](const std::string& line) {
    bar.clear();
    if (!global.quiet) fmt::print(stderr, "{}\n", line);
  };
  const train::TrainerOptions trainer{.folder = options.folder,
                                      .resume = options.resume,
                                      .allow_changes = options.allow_changes,
                                      .threads = threads_for(global),
                                      .communicator = processes};
  const train::TrainerCallbacks callbacks{.progress = [&](const train::Progress& progress) { bar.show(progress); },
                                          .epoch = [&](const train::EpochResult& e) { say(epoch_line(e)); },
                                          .message = say,
                                          .stop = [] { return stop_asked.load(); }};
  const train::TrainingResult result = train::train(recipe, trainer, callbacks);
  bar.clear();
  processes->finish();
  if (!leads) return result.stopped ? 1 : 0;
  if (result.stopped) {
    print_error(fmt::format("stopped after step {}, epoch {}; --resume goes on", result.step, result.epoch + 1));
    return 1;
  }
  nlohmann::ordered_json json{{"run", options.folder},
                              {"epochs", result.epoch},
                              {"steps", result.step},
                              {"held_out_top1", result.best_top1},
                              {"best_epoch", result.best_epoch},
                              {"seconds", result.seconds}};
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

// An error of one of several processes says whose it is.
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
  CLI::App* command = program.add_subcommand("train", "Train a model as a recipe says");
  command->footer(
      "Example: vitrail train recipes/cifar10-small.json -o runs/cifar10 --set data.train=cifar10.zip --set epochs=30");
  command->add_option("RECIPE", options->recipe, "JSON (docs/training.md lists every field)")->required();
  command->add_option("-o,--output", options->folder, "The run's folder")->required();
  command->add_option("--set", options->settings, "key.path=value over the recipe's; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--resume", options->resume, "Go on with the run in the folder, or begin it");
  command->add_flag("--allow-changes", options->allow_changes, "Resume although the recipe has changed");
  command->callback(
      [options, &global, &run] { run = [options, &global] { return train_processes(*options, global); }; });
}

}  // namespace vitrail::app
