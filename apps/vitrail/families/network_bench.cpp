// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/vitrail/bench/bench_times.h"
#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/families/network_family.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/image/encode.h"
#include "vitrail/tasks/run.h"

namespace vitrail::app {
namespace {

// Throws CLI::Error for options that such a model does not have.
void check_for_network(const BenchCommandOptions& options, const std::string& family) {
  refuse_model_options(options.model, family);
  const char* given = options.train           ? "--train"
                      : options.checkpointing ? "--checkpointing"
                      : options.profile       ? "--profile"
                                              : nullptr;
  if (given != nullptr) throw CLI::ValidationError(given, "does not apply to " + family);
  if (options.batches_given && options.batches != std::vector<int64_t>{1})
    throw CLI::ValidationError("--batch", family + " takes one image at a time: expected 1");
}

// Noise on a gradient, at the nominal size of the model's input.
image::Image image_for(const tasks::Network& network, image::ColorMode mode) {
  const Shape shape = infer::find_tensor(network.inputs, "images").shape();
  const int64_t channels = mode == image::ColorMode::grey ? 1 : 3;
  image::Image image = image::make_image(shape[3], shape[2], channels);
  const Tensor noise = Tensor::randn({shape[2], shape[3] * channels}, 1);
  for (int64_t i = 0; i < noise.numel(); ++i) {
    const int64_t row = i / noise.size(1);
    const float value = 64 + 128 * static_cast<float>(row) / static_cast<float>(shape[2]) + 20 * noise.data<float>()[i];
    image.pixels[static_cast<size_t>(i)] = static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F));
  }
  return image;
}

// A file that a task takes beside an image: a trimap of unknown alpha.
std::shared_ptr<const std::string> grey_file(int64_t width, int64_t height) {
  image::Image grey = image::make_image(width, height, 1);
  std::ranges::fill(grey.pixels, uint8_t{128});
  const std::vector<uint8_t> png = image::encode_png(grey);
  return std::make_shared<const std::string>(png.begin(), png.end());
}

class NetworkTasks {
 public:
  NetworkTasks(const NamedModel& named, const BenchCommandOptions& options, const GlobalOptions& global,
               kernels::Precision precision, RowPrinter& rows)
      : named_(named),
        options_(options),
        threads_(global.threads > 0 ? global.threads : available_threads()),
        precision_(precision),
        rows_(rows),
        model_(tasks::open_model(*named.files, {.model = {.threads = global.threads, .precision = precision}})),
        network_(network_of(*model_, named.name)) {
    check_for_network(options, model_->family());
  }

  // The forward pass alone, then each task of the model from the pixels to the result, with the task's defaults.
  void run() const {
    const image::Image photo = image_for(network_, model_->color_mode());
    const infer::NamedTensors inputs = network_.inputs_of(photo);
    print("forward", time_calls([&] { network_.session.run(inputs); }, options_.seconds));
    for (const tasks::Task& task : tasks::tasks()) {
      if (!task.fits(*model_)) continue;
      tasks::RequestOptions defaults;
      defaults.add(network_.options);
      tasks::Setting setting{.model = named_.name};
      tasks::FilesOfItem files;
      // Options of the network stand for a file that the task could have instead.
      if (!task.input_files.empty() && network_.options.empty()) {
        setting.input_files = {task.input_files.front().name};
        files[task.input_files.front().name] = grey_file(photo.width, photo.height);
      }
      const auto request = task.request(*model_, defaults, setting);
      print(task.name, time_calls(
                           [&] {
                             std::vector<tasks::Item> items{{.name = "image", .photo = photo, .input_files = files}};
                             tasks::run(*model_, *request, items);
                           },
                           options_.seconds));
    }
  }

 private:
  void print(const std::string& task, const std::vector<double>& times) const {
    rows_.print(row_of({.model = named_.name,
                        .task = task,
                        .precision = kernels::name_of(precision_),
                        .arithmetic = kernels::arithmetic_of(precision_),
                        .threads = threads_,
                        .times = times}),
                measured_on(named_.name, threads_));
    flush_output();
  }

  const NamedModel& named_;
  const BenchCommandOptions& options_;
  int threads_;
  kernels::Precision precision_;
  RowPrinter& rows_;
  std::unique_ptr<tasks::LoadedModel> model_;
  tasks::Network network_;
};

}  // namespace

int bench_network(const NamedModel& model, const BenchCommandOptions& options, const GlobalOptions& global) {
  RowPrinter rows(options.format, {{"task", "task"},
                                   {"precision", "precision"},
                                   {"median_ms", "median ms", 3},
                                   {"min_ms", "min ms", 3},
                                   {"images_per_second", "images/s", 1},
                                   {"peak_rss_mb", "peak MiB"},
                                   {"arithmetic", "arithmetic"}});
  for (const std::string& precision : options.precisions)
    NetworkTasks(model, options, global, kernels::precision_from_name(precision), rows).run();
  return 0;
}

}  // namespace vitrail::app
