// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/eval/depth_evaluation.h"

#include <algorithm>
#include <filesystem>

#include "apps/vitrail/eval/eval_output.h"
#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/analysis/depth_metrics.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"
#include "vitrail/data/datasets/input_paths.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/label_image.h"
#include "vitrail/tasks/depth/depth_model.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

struct MeasuredImage {
  std::string image;
  fs::path depth;
};

std::vector<MeasuredImage> open_depth_set(const fs::path& folder) {
  std::vector<MeasuredImage> set;
  const fs::path images = folder / "images";
  for (const std::string& image : data::list_images(images)) {
    const fs::path depth = folder / "depth" / fs::path(image).lexically_relative(images);
    const fs::path array = fs::path(depth).replace_extension(".npy"), grey = fs::path(depth).replace_extension(".png");
    std::error_code error;
    if (!fs::exists(array, error) && !fs::exists(grey, error))
      throw Error(image, "its depth, " + array.string() + " or " + grey.string(), "none");
    set.push_back({image, fs::exists(array, error) ? array : grey});
  }
  if (set.empty()) throw Error(images.string(), "images, and depth of each in the folder depth", "none");
  return set;
}

// Metres of each pixel, [height, width]; 0 where it is unknown.
std::vector<float> measured_depth(const fs::path& path, int64_t height, int64_t width) {
  std::vector<float> depth;
  std::vector<int64_t> shape;
  if (path.extension() == ".npy") {
    NpyArray array = read_npy(path);
    shape = array.shape;
    depth = array.dtype == DType::f64 ? std::vector<float>(array.f64.begin(), array.f64.end()) : std::move(array.f32);
  } else {
    const image::LabelImage grey = image::read_labels(path);
    shape = {grey.height, grey.width};
    const int32_t largest = grey.labels.empty() ? 0 : std::ranges::max(grey.labels);
    if (largest > 0 && largest < 256)  // 8 bits are no millimetres
      throw Error(path.string(), "16-bit grey in millimetres", str("values up to ", largest));
    for (const int32_t millimetres : grey.labels) depth.push_back(static_cast<float>(millimetres) / 1000);
  }
  if (shape != std::vector<int64_t>{height, width} || std::ssize(depth) != height * width) {
    throw Error(path.string(), str("floats [", height, ", ", width, "], the image's height and width"),
                Shape(std::span<const int64_t>(shape)).to_string());
  }
  return depth;
}

// Means over the images.
struct Sums {
  double abs_rel = 0, rmse = 0, delta1 = 0;
  int64_t images = 0, pixels = 0;

  void add(const analysis::DepthErrors& errors) {
    abs_rel += errors.abs_rel;
    rmse += errors.rmse;
    delta1 += errors.delta1;
    pixels += errors.pixels;
    ++images;
  }
};

}  // namespace

int evaluate_depth(const NamedModel& named, const EvalCommandOptions& options, const GlobalOptions& global) {
  refuse_classifier_options(options, "estimates depth");
  refuse_split(options, "estimates depth");
  refuse_label_map_options(options);
  refuse_model_options(options.model, "a depth estimator");
  const std::vector<MeasuredImage> set = open_depth_set(options.dataset);
  const auto loaded = tasks::open_model(*named.files, {.model = session_options_of({}, global)});
  const tasks::DepthModel& model = tasks::as_model<tasks::DepthModel>(*loaded);
  const bool metric = model.depth_config().metric;
  const ImageSource source{
      .count = set.size(),
      .path = [&](size_t i) { return i < set.size() ? std::optional(set[i].image) : std::nullopt; },
      .read =
          [&](size_t i) {
            return image::read_image(set[i].image, {.mode = model.color_mode(), .apply_exif = options.images.exif});
          }};
  const ImageRun run{.compute = [&](tasks::Item& item) {
    item.value = model.depth(*model.encode(item.photo), item.photo.height, item.photo.width);
  }};
  Sums sums;
  const size_t failures = run_images(source, run, 1, global, [&](Outcome& outcome) {
    if (!outcome.error.empty()) return;
    const fs::path& path = set[outcome.index].depth;
    const auto& map = std::any_cast<const Tensor&>(outcome.item.value);
    const std::vector<float> depth = measured_depth(path, map.size(0), map.size(1));
    const std::span<const float> predicted(map.data<float>(), depth.size());
    const analysis::DepthErrors errors = metric
                                             ? analysis::depth_errors(predicted, depth)
                                             : analysis::depth_errors(analysis::aligned_depth(predicted, depth), depth);
    if (errors.pixels == 0) throw Error(path.string(), "a pixel of known depth", "none");
    sums.add(errors);
  });
  if (sums.images == 0) throw Error(options.dataset, "images that can be read", "none");
  const auto images = static_cast<double>(sums.images);
  nlohmann::ordered_json report{{"images", sums.images},      {"pixels", sums.pixels},
                                {"aligned", !metric},         {"abs_rel", sums.abs_rel / images},
                                {"rmse", sums.rmse / images}, {"delta1", sums.delta1 / images}};
  if (failures > 0) report["unreadable"] = failures;
  print_report(report, options.format == "json");
  return failures == 0 ? 0 : 1;
}

}  // namespace vitrail::app
