// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "apps/vitrail/bench_train.h"
#include "apps/vitrail/commands.h"
#include "apps/vitrail/output.h"
#include "apps/vitrail/usage_errors.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/models/flops.h"
#include "vitrail/models/registry.h"

namespace vitrail::app {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  ModelOptions model;
  std::vector<int64_t> batches{1, 8};
  std::vector<std::string> precisions{"fp32"};
  double seconds = 3;
  bool profile = false, train = false, checkpointing = false;
};

struct BenchModel {
  models::VisionTransformer model;
  std::vector<std::string> excluded_layers = {};  // from int8
};

BenchModel load(const Options& options) {
  if (const models::Architecture* row = models::find_architecture(options.model.model)) {
    RandomParams random(0);
    return {models::VisionTransformer(options.model.config_of(*row), ParamSource(random))};
  }
  const models::OpenedModel opened = options.model.open();
  models::VisionTransformer model = models::build_model(opened, weights::Int8Weights::keep);
  return {std::move(model), opened.config.int8.value_or(models::Int8Config{}).excluded};
}

double peak_rss_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

// The duration of each run in milliseconds, sorted.  Runs for `seconds`, and at least five times after warm-up.
std::vector<double> time_runs(const infer::Session& session, const Tensor& images, double seconds) {
  for (int i = 0; i < 3; ++i) session.run(images);
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end || times.size() < 5) {
    const auto start = Clock::now();
    session.run(images);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times;
}

// Prints the compiled program with the minimum time of each step over several runs.
void print_profile(const infer::Session& session, const Tensor& images) {
  const int64_t per_pass = session.images_per_pass(images.shape());
  const int threads = session.threads_at_work(images.shape());
  if (per_pass < images.size(0)) {
    print_output("one pass: {} of {} images, {} of {} threads\n", per_pass, images.size(0), threads, session.threads());
  }
  print_output("arithmetic: {}\n", kernels::arithmetic_of(session.precision()));
  const auto program = session.program(images.narrow(0, 0, per_pass).shape());
  std::vector<double> best(program->steps().size(), 1e9);
  for (int round = 0; round < 20; ++round) {
    session.profile(images, [&](size_t step, double seconds) { best[step] = std::min(best[step], seconds); });
  }
  double total = 0, flops = 0;
  for (const double seconds : best) total += seconds;
  for (const infer::Step& step : program->steps()) flops += step.flops;
  print_output("{:>9s} {:>6s} {:>8s} {:>7s}  step\n", "ms", "%", "GFLOP/s", "GB/s");
  for (size_t i = 0; i < best.size(); ++i) {
    const infer::Step& step = program->steps()[i];
    print_output("{:9.4f} {:6.2f} {:8.1f} {:7.1f}  {}\n", best[i] * 1e3, 100 * best[i] / total,
                 step.flops / best[i] / 1e9, step.bytes / best[i] / 1e9, step.text);
  }
  print_output("{:9.4f} {:6.2f} {:8.1f}          total\n", total * 1e3, 100.0, flops / total / 1e9);
}

// The dtype of mixed-precision training.
DType training_precision(const std::string& name) {
  if (name != "fp32" && name != "bf16") throw CLI::ValidationError("--precision", "training takes fp32 or bf16");
  return dtype_from_name(name);
}

const char* training_arithmetic(DType precision) {
  if (precision == DType::f32) return "fp32";
  return kernels::multiplies_bf16() ? "bf16" : "fp32 (operands rounded to bf16)";
}

void bench_training(models::VisionTransformer& model, const Options& options, const std::string& precision,
                    const TrainingSetup& setup) {
  if (options.profile) return print_training_profile(model, setup);
  const TrainingTimes times = time_training(model, setup, options.seconds);
  const double best = times.milliseconds.front(), median = times.milliseconds[times.milliseconds.size() / 2];
  print_json({{"model", options.model.model},
              {"batch", setup.batch},
              {"precision", precision},
              {"arithmetic", training_arithmetic(setup.precision)},
              {"train", true},
              {"activation_checkpointing", options.checkpointing},
              {"threads", setup.threads},
              {"isa", kernels::name_of(kernels::active_isa())},
              {"runs", times.milliseconds.size()},
              {"min_ms", best},
              {"median_ms", median},
              {"images_per_second", 1e3 * static_cast<double>(setup.batch) / median},
              {"gflop_per_s", times.flops / best / 1e6},
              {"peak_rss_mb", peak_rss_mb()}});
}

int bench_training(const Options& options, const GlobalOptions& global) {
  if (options.model.tome > 0) throw CLI::ValidationError("--tome", "token merging applies to inference only");
  models::VisionTransformer model = load(options).model;
  model.checkpoint_blocks(options.checkpointing);
  const int threads = global.threads > 0 ? global.threads : available_threads();
  for (const std::string& precision : options.precisions) {
    for (const int64_t batch : options.batches) {
      bench_training(model, options, precision,
                     {.batch = batch,
                      .image_size = options.model.given_image_size(),
                      .threads = threads,
                      .precision = training_precision(precision)});
    }
  }
  return 0;
}

void bench_inference(const infer::Session& session, const Options& options, int64_t batch) {
  const auto& config = session.config();
  const auto [height, width] = options.model.given_image_size().value_or(config.img_size);
  const Tensor images = Tensor::randn({batch, config.in_chans, height, width}, 1);
  if (options.profile) return print_profile(session, images);
  const std::vector<double> times = time_runs(session, images, options.seconds);
  const double median = times[times.size() / 2];
  const double flops_per_image = models::forward_flops(session.model(), images.narrow(0, 0, 1).shape());
  print_json({{"model", options.model.model},
              {"batch", batch},
              {"precision", kernels::name_of(session.precision())},
              {"arithmetic", kernels::arithmetic_of(session.precision())},
              {"threads", session.threads()},
              {"isa", kernels::name_of(kernels::active_isa())},
              {"runs", times.size()},
              {"min_ms", times.front()},
              {"median_ms", median},
              {"images_per_second", 1e3 * static_cast<double>(batch) / median},
              {"gflop_per_s", static_cast<double>(batch) * flops_per_image / times.front() / 1e6},
              {"peak_rss_mb", peak_rss_mb()}});
}

int bench(const Options& options, const GlobalOptions& global) {
  if (options.train) return bench_training(options, global);
  for (const std::string& precision : options.precisions) {
    BenchModel loaded = load(options);
    const infer::Session session(std::move(loaded.model), {.threads = global.threads,
                                                           .precision = kernels::precision_from_name(precision),
                                                           .excluded_layers = loaded.excluded_layers,
                                                           .merged_per_block = options.model.tome});
    for (const int64_t batch : options.batches) bench_inference(session, options, batch);
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("bench", "Benchmark inference or training of a model");
  command->footer(
      "Example: vitrail bench vit_tiny_patch16_224 --batch 1,8\n         vitrail bench MODEL --batch 1 --profile");
  command->add_option("ARCH_OR_MODEL", options->model.model, "Registered architecture (random weights) or model")
      ->required();
  options->model.add_source_to(*command);
  options->model.add_merging_to(*command);
  command->add_option("--batch", options->batches, "Batch sizes, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--precision", options->precisions,
                   "Compute precisions, comma-separated: fp32, half, int8; with --train: fp32, bf16")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "Duration of each measurement in seconds")
      ->capture_default_str()
      ->check(kPositiveNumber);
  command->add_flag("--profile", options->profile,
                    "Print the time of each step of the compiled program (with --train: of each phase and operation)");
  command->add_flag("--train", options->train, "Benchmark a training step: forward, backward and optimiser");
  command->add_flag("--checkpointing", options->checkpointing, "With --train: activation checkpointing of every block");
  command->callback([options, &global, &run] { run = [options, &global] { return bench(*options, global); }; });
}

}  // namespace vitrail::app
