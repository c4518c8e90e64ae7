// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/bench/bench_segment.h"

#include <optional>

#include "apps/vitrail/bench/bench_times.h"
#include "apps/vitrail/input/model_kind.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/base/parallel.h"
#include "vitrail/image/image.h"
#include "vitrail/kernels/isa/isa.h"
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
  SegmentTasks(const SegmentBench& options, kernels::Precision precision, RowPrinter& rows)
      : options_(options),
        rows_(rows),
        precision_(precision),
        predictor_(segmentation_model(options.model), {.threads = options.threads, .precision = precision},
                   options.model),
        image_(image_of_discs(predictor_.image_size())) {}

  // In this order, the largest memory is that of the task and of those before it.
  void run() const {
    print("image_encoder", 0, time_calls([&] { predictor_.embed(image_); }, options_.seconds, {1, 3}));
    if (!predictor_.has_decoder()) return;
    const sam::ImageEmbedding embedding = predictor_.embed(image_);
    const std::vector<sam::Prompt> clicks = clicks_on_discs(predictor_.image_size());
    print("click", 1, time_calls([&] { predictor_.predict(embedding, clicks.front()); }, options_.seconds));
    print("clicks", clicks.size(),
          time_calls([&] { predictor_.predict(embedding, clicks); }, options_.seconds, {1, 3}));
    size_t masks = 0;
    const sam::AutomaticOptions grid;
    const auto everything = [&] { masks = sam::automatic_masks(predictor_, image_, grid).size(); };
    const auto points = static_cast<size_t>(grid.points_per_side * grid.points_per_side);
    print("everything", points, time_calls(everything, options_.seconds, {0, 1}), masks);
  }

 private:
  void print(const char* task, size_t prompts, const std::vector<double>& times,
             std::optional<size_t> masks = {}) const {
    const int threads = options_.threads > 0 ? options_.threads : available_threads();
    nlohmann::ordered_json object{{"model", options_.model},
                                  {"task", task},
                                  {"batch", 1},
                                  {"prompts", prompts},
                                  {"precision", kernels::name_of(precision_)},
                                  {"arithmetic", kernels::arithmetic_of(precision_)},
                                  {"threads", threads},
                                  {"isa", kernels::name_of(kernels::active_isa())},
                                  {"runs", times.size()},
                                  {"min_ms", times.front()},
                                  {"median_ms", median_of(times)}};
    if (masks) object["masks"] = *masks;
    object["peak_rss_mb"] = peak_rss_mb();
    rows_.print(object, measured_on(options_.model, threads));
    flush_output();
  }

  const SegmentBench& options_;
  RowPrinter& rows_;
  kernels::Precision precision_;
  sam::Predictor predictor_;
  image::Image image_;
};

}  // namespace

void bench_segmentation(const SegmentBench& options) {
  RowPrinter rows(options.format, {{"task", "task"},
                                   {"prompts", "prompts"},
                                   {"precision", "precision"},
                                   {"median_ms", "median ms", 3},
                                   {"min_ms", "min ms", 3},
                                   {"peak_rss_mb", "peak MiB"},
                                   {"arithmetic", "arithmetic"}});
  for (const std::string& precision : options.precisions) {
    SegmentTasks(options, kernels::precision_from_name(precision), rows).run();
  }
}

}  // namespace vitrail::app
