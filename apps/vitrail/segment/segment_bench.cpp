// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment/segment_family.h"

#include <optional>

#include "apps/vitrail/bench/bench_times.h"
#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/base/parallel.h"
#include "vitrail/image/image.h"
#include "vitrail/sam/automatic.h"

namespace vitrail::app {
namespace {

constexpr int64_t kDiscs = 8;  // per side of the image, a click on each

// The image has the size of the model's input: coloured discs, which a trained model segments, on a gradient.
image::Image image_of_discs(int64_t size) {
  image::Image image = image::make_image(size, size, 3);
  for (int64_t y = 0; y < size; ++y) {
    for (int64_t x = 0; x < size; ++x) {
      const int64_t column = x * kDiscs / size, row = y * kDiscs / size;
      const int64_t dx = 2 * (x * kDiscs - column * size) - size, dy = 2 * (y * kDiscs - row * size) - size;
      const bool inside = 2 * (dx * dx + dy * dy) < size * size;
      uint8_t* const pixel = image.row(y) + 3 * x;
      pixel[0] = static_cast<uint8_t>(inside ? 32 * column : 128 + 64 * x / size);
      pixel[1] = static_cast<uint8_t>(inside ? 32 * row : 128 + 64 * y / size);
      pixel[2] = static_cast<uint8_t>(inside ? 255 - 16 * (row + column) : 128);
    }
  }
  return image;
}

std::vector<sam::Prompt> clicks_on_discs(int64_t size) {
  std::vector<sam::Prompt> clicks;
  const double step = static_cast<double>(size) / kDiscs;
  for (int64_t i = 0; i < kDiscs * kDiscs; ++i) {
    const auto column = static_cast<double>(i % kDiscs), row = static_cast<double>(i / kDiscs);
    clicks.push_back({.points = {{(column + 0.5) * step, (row + 0.5) * step, 1}}});
  }
  return clicks;
}

class SegmentTasks {
 public:
  SegmentTasks(const NamedModel& model, double seconds, int threads, kernels::Precision precision, RowPrinter& rows)
      : model_(model),
        seconds_(seconds),
        threads_(threads),
        rows_(rows),
        precision_(precision),
        predictor_(segmentation_model(model), {.threads = threads, .precision = precision}, model.name),
        image_(image_of_discs(predictor_.image_size())) {}

  // In this order, the largest memory is that of the task and of those before it.
  void run() const {
    print("image_encoder", 0, time_calls([&] { predictor_.embed(image_); }, seconds_, {1, 3}));
    if (!predictor_.has_decoder()) return;
    const sam::ImageEmbedding embedding = predictor_.embed(image_);
    const std::vector<sam::Prompt> clicks = clicks_on_discs(predictor_.image_size());
    print("click", 1, time_calls([&] { predictor_.predict(embedding, clicks.front()); }, seconds_));
    print("clicks", clicks.size(), time_calls([&] { predictor_.predict(embedding, clicks); }, seconds_, {1, 3}));
    size_t masks = 0;
    const sam::AutomaticOptions grid;
    const auto everything = [&] { masks = sam::automatic_masks(predictor_, image_, grid).size(); };
    const auto points = static_cast<size_t>(grid.points_per_side * grid.points_per_side);
    print("everything", points, time_calls(everything, seconds_, {0, 1}), masks);
  }

 private:
  void print(const char* task, size_t prompts, const std::vector<double>& times,
             std::optional<size_t> masks = {}) const {
    const int threads = threads_ > 0 ? threads_ : available_threads();
    nlohmann::ordered_json object = row_of({.model = model_.name,
                                            .task = task,
                                            .precision = kernels::name_of(precision_),
                                            .arithmetic = kernels::arithmetic_of(precision_),
                                            .threads = threads,
                                            .times = times});
    object["prompts"] = prompts;
    if (masks) object["masks"] = *masks;
    rows_.print(object, measured_on(model_.name, threads));
    flush_output();
  }

  const NamedModel& model_;
  double seconds_;
  int threads_;
  RowPrinter& rows_;
  kernels::Precision precision_;
  sam::Predictor predictor_;
  image::Image image_;
};

// Throws CLI::Error for options that have no meaning for Segment Anything.
void check_for_segmentation(const BenchCommandOptions& options) {
  refuse_model_options(options.model, "Segment Anything");
  const char* given = options.train           ? "--train"
                      : options.checkpointing ? "--checkpointing"
                      : options.profile       ? "--profile"
                                              : nullptr;
  if (given != nullptr) throw CLI::ValidationError(given, "does not apply to Segment Anything");
  if (options.batches_given && options.batches != std::vector<int64_t>{1})
    throw CLI::ValidationError("--batch", "Segment Anything encodes one image at a time: expected 1");
}

}  // namespace

// Prints a row or an object for each precision and task: the image encoder, one click, 64 clicks, and everything in the
// image.
int bench_segmentation(const NamedModel& model, const BenchCommandOptions& options, const GlobalOptions& global) {
  check_for_segmentation(options);
  RowPrinter rows(options.format, {{"task", "task"},
                                   {"prompts", "prompts"},
                                   {"precision", "precision"},
                                   {"median_ms", "median ms", 3},
                                   {"min_ms", "min ms", 3},
                                   {"peak_rss_mb", "peak MiB"},
                                   {"arithmetic", "arithmetic"}});
  for (const std::string& precision : options.precisions) {
    SegmentTasks(model, options.seconds, global.threads, kernels::precision_from_name(precision), rows).run();
  }
  return 0;
}

}  // namespace vitrail::app
