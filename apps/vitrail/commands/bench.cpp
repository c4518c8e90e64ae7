// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/bench/bench_profile.h"
#include "apps/vitrail/bench/bench_times.h"
#include "apps/vitrail/bench/bench_train.h"
#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/families/family.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/models/flops.h"
#include "vitrail/models/registry.h"

namespace vitrail::app {
namespace {

// The columns of a table for people; scripts get the objects.
RowPrinter measurement_printer(const BenchCommandOptions& options) {
  return {options.format,
          {{"task", "task"},
           {"batch", "batch"},
           {"precision", "precision"},
           {"median_ms", "median ms", 3},
           {"min_ms", "min ms", 3},
           {"images_per_second", "images/s", 1},
           {"gflop_per_s", "GFLOP/s", 1},
           {"peak_rss_mb", "peak MiB"},
           {"arithmetic", "arithmetic"}}};
}

struct BenchModel {
  models::VisionTransformer model;
  std::vector<std::string> excluded_layers = {};  // from int8
};

BenchModel load(const NamedModel& model, const BenchCommandOptions& options) {
  if (const models::Architecture* row = models::find_architecture(options.model.model)) {
    for (const auto& [name, value] : {std::pair("--config", options.model.config),
                                      {"--key-map", options.model.key_map},
                                      {"--adapter", options.model.adapter}})
      if (!value.empty())
        throw CLI::ValidationError(name, "is for a weights file; " + options.model.model + " is an architecture");
    RandomParams random(0);
    return {models::VisionTransformer(options.model.config_of(*row), ParamSource(random))};
  }
  const models::OpenedModel opened = options.model.open(model.files ? *model.files : models::ModelFiles(model.name));
  models::VisionTransformer vit = models::build_model(opened, weights::Int8Weights::keep);
  return {std::move(vit), opened.config.int8.value_or(models::Int8Config{}).excluded};
}

// The dtype of mixed-precision training: its 16-bit precision is bf16.
DType training_precision(const std::string& name) {
  if (name == "half" || name == "bf16") return DType::bf16;
  if (name != "fp32") throw CLI::ValidationError("--precision", "training takes fp32 or half");
  return DType::f32;
}

const char* training_arithmetic(DType precision) {
  if (precision == DType::f32) return "fp32";
  return kernels::multiplies_bf16() ? "bf16" : "fp32 (operands rounded to bf16)";
}

void bench_training(models::VisionTransformer& model, const BenchCommandOptions& options, const std::string& precision,
                    const TrainingSetup& setup, RowPrinter& rows) {
  if (options.profile) return print_training_profile(model, setup);
  const TrainingTimes times = time_training(model, setup, options.seconds);
  nlohmann::ordered_json row = row_of({.model = options.model.model,
                                       .task = "train",
                                       .batch = setup.batch,
                                       .precision = precision,
                                       .arithmetic = training_arithmetic(setup.precision),
                                       .threads = setup.threads,
                                       .times = times.milliseconds});
  row["train"] = true;
  row["activation_checkpointing"] = options.checkpointing;
  row["gflop_per_s"] = times.flops / times.milliseconds.front() / 1e6;
  rows.print(row, "training steps of " + measured_on(options.model.model, setup.threads));
}

int bench_training(const NamedModel& named, const BenchCommandOptions& options, const GlobalOptions& global) {
  if (options.model.tome > 0) throw CLI::ValidationError("--tome", "token merging applies to inference only");
  models::VisionTransformer model = load(named, options).model;
  if (model.config().num_classes == 0)
    throw Error(options.model.model, "a model with a head, for a training step", "one without");
  model.checkpoint_blocks(options.checkpointing);
  const int threads = global.threads > 0 ? global.threads : available_threads();
  RowPrinter rows = measurement_printer(options);
  for (const std::string& precision : options.precisions) {
    for (const int64_t batch : options.batches) {
      bench_training(model, options, precision,
                     {.batch = batch,
                      .image_size = options.model.image_size,
                      .threads = threads,
                      .precision = training_precision(precision)},
                     rows);
    }
  }
  return 0;
}

// The random images of a measurement.
Tensor images_for(const infer::Session& session, const BenchCommandOptions& options, int64_t batch) {
  const auto& config = session.config();
  const auto [height, width] = options.model.image_size.value_or(config.img_size);
  return Tensor::randn({batch, config.in_chans, height, width}, 1);
}

void bench_inference(const infer::Session& session, const BenchCommandOptions& options, int64_t batch,
                     RowPrinter& rows) {
  const Tensor images = images_for(session, options, batch);
  const std::vector<double> times = time_calls([&] { session.run(images); }, options.seconds);
  const double flops_per_image = models::forward_flops(session.model(), images.narrow(0, 0, 1).shape());
  nlohmann::ordered_json row = row_of({.model = options.model.model,
                                       .task = "forward",
                                       .batch = batch,
                                       .precision = kernels::name_of(session.precision()),
                                       .arithmetic = kernels::arithmetic_of(session.precision()),
                                       .threads = session.threads(),
                                       .times = times});
  row["gflop_per_s"] = static_cast<double>(batch) * flops_per_image / times.front() / 1e6;
  rows.print(row, measured_on(options.model.model, session.threads()));
}

}  // namespace

int bench_image_model(const NamedModel& model, const BenchCommandOptions& options, const GlobalOptions& global) {
  if (options.train) return bench_training(model, options, global);
  RowPrinter rows = measurement_printer(options);
  ProfilePrinter profiles(options.model.model, options.format);
  for (const std::string& precision : options.precisions) {
    BenchModel loaded = load(model, options);
    const infer::Session session(std::move(loaded.model), {.threads = global.threads,
                                                           .precision = kernels::precision_from_name(precision),
                                                           .excluded_layers = loaded.excluded_layers,
                                                           .merged_per_block = options.model.tome});
    for (const int64_t batch : options.batches) {
      if (options.profile) {
        profiles.print(session, images_for(session, options, batch));
      } else {
        bench_inference(session, options, batch, rows);
      }
    }
  }
  return 0;
}

void add_bench(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<BenchCommandOptions>();
  CLI::App* command = program.add_subcommand("bench", "Benchmark inference or training of a model");
  command->footer(
      "Example: vitrail bench vit_tiny_patch16_224 --batch 1,8\n         vitrail bench MODEL --batch 1 --profile");
  command->add_option("ARCH_OR_MODEL", options->model.model, "Registered architecture (random weights) or model")
      ->required();
  options->model.add_source_to(*command);
  options->model.add_merging_to(*command);
  add_field_options(*command, [options](Fields& f) {
    f.integers({"batch", "Batch sizes, comma-separated"}, options->batches, {1, 4096});
  });
  const CLI::Option* batch = command->get_option("--batch");
  command
      ->add_option("--precision", options->precisions,
                   "Compute precisions, comma-separated: fp32, half, int8; with --train: fp32, half")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  add_field_options(*command, [options](Fields& f) {
    f.number({"seconds", "Duration of each measurement in seconds"}, options->seconds, kAboveZero);
    f.boolean({"profile",
               "Print for each step of the compiled program its time, its kernel and the share of the machine's bound "
               "that it reaches (with --train: the time of each phase and operation)"},
              options->profile);
    f.boolean({"train", "Benchmark a training step: forward, backward and optimiser"}, options->train);
    f.boolean({"checkpointing", "With --train: activation checkpointing of every block"}, options->checkpointing);
  });
  options->format.add_to(*command);
  command->callback([options, batch, &global, &run] {
    options->batches_given = !batch->empty();
    run = [options, &global] {
      const NamedModel model = open_named(options->model.model);
      return family_of(model).bench(model, *options, global);
    };
  });
}

}  // namespace vitrail::app
