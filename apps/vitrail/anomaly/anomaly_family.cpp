// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/anomaly/anomaly_family.h"

#include <algorithm>
#include <cmath>

#include "apps/vitrail/eval/eval_output.h"
#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/analysis/roc.h"
#include "vitrail/anomaly/defect_set.h"
#include "vitrail/anomaly/detector.h"
#include "vitrail/base/error.h"
#include "vitrail/sam/components_internal.h"

namespace vitrail::app {
namespace {

// What commands for models say of a bank: the model that it names is one.
[[noreturn]] void refuse(const NamedModel& model, const char* command) {
  const anomaly::Bank bank = anomaly::read_bank(model.files->first);
  throw Error(model.name, "a model",
              "a bank of anomaly detection (vitrail " + std::string(command) + " takes its model, " + bank.model + ")");
}

// All pixels of a set, with the connected regions of defects.
struct Pixels {
  std::vector<float> scores;
  std::vector<int32_t> regions;  // 0: good
  int32_t count = 0;

  void add(const Tensor& map, const anomaly::TestImage& image) {
    const int64_t height = map.size(0), width = map.size(1);
    scores.insert(scores.end(), map.data<float>(), map.data<float>() + map.numel());
    if (image.mask.empty()) return regions.resize(scores.size());
    const image::Image mask = image::read_image(image.mask, {.mode = image::ColorMode::grey});
    if (mask.width != width || mask.height != height)
      throw Error(image.mask, str("a mask of ", width, " x ", height, " pixels, as its image"),
                  str(mask.width, " x ", mask.height));
    sam::BinaryMask defect = sam::make_mask(width, height);
    std::ranges::transform(mask.pixels, defect.pixels.begin(), [](uint8_t value) { return value != 0 ? 1 : 0; });
    const sam::Components found = sam::components_of(defect, 1);
    for (const int32_t label : found.labels) regions.push_back(label == 0 ? 0 : count + label);
    count += static_cast<int32_t>(found.sizes.size());
  }
};

nlohmann::ordered_json number(double value) {
  return std::isnan(value) ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}

}  // namespace

int evaluate_bank(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global) {
  refuse_classifier_options(options, "finds anomalies");
  refuse_label_map_options(options);
  refuse_split(options, "finds anomalies");
  refuse_model_options(options.model, "a bank of anomaly detection");
  const anomaly::DefectSet set = anomaly::open_defect_set(options.dataset);
  const anomaly::Detector detector(*model.files, session_options_of({}, global));
  const ImageSource source{
      .count = set.images.size(),
      .path = [&](size_t i) { return i < set.images.size() ? std::optional(set.images[i].path) : std::nullopt; },
      .read =
          [&](size_t i) {
            return image::read_image(set.images[i].path,
                                     {.mode = detector.model().color_mode(), .apply_exif = options.images.exif});
          }};
  const ImageRun run{.compute = [&](tasks::Item& item) { item.value = detector.run(item.photo); }};
  Pixels pixels;
  std::vector<float> scores;
  std::vector<uint8_t> defects;
  const size_t failures = run_images(source, run, 1, global, [&](Outcome& outcome) {
    if (!outcome.error.empty()) return;
    const auto& image = set.images[outcome.index];
    const auto& patches = std::any_cast<const anomaly::PatchDistances&>(outcome.item.value);
    scores.push_back(static_cast<float>(patches.score));
    defects.push_back(image.is_good() ? 0 : 1);
    if (set.has_masks) pixels.add(detector.map(patches, outcome.item.height, outcome.item.width), image);
  });
  nlohmann::ordered_json report{{"images", scores.size()},
                                {"defects", std::ranges::count(defects, 1)},
                                {"image_auroc", number(analysis::area_under_roc(scores, defects))}};
  if (set.has_masks) {
    report["pro"] = number(analysis::per_region_overlap(pixels.scores, pixels.regions, pixels.count));
    std::vector<uint8_t> positive(pixels.regions.size());
    std::ranges::transform(pixels.regions, positive.begin(), [](int32_t region) { return region > 0 ? 1 : 0; });
    report["pixel_auroc"] = number(analysis::area_under_roc(pixels.scores, positive));
  }
  if (failures > 0) report["unreadable"] = failures;
  print_report(report, options.format == "json");
  return failures == 0 ? 0 : 1;
}

std::unique_ptr<InspectedModel> inspect_bank(const NamedModel& model, const ModelOptions& /*options*/,
                                             const ValueOptions& /*values*/) {
  refuse(model, "inspect");
}

int bench_bank(const NamedModel& model, const BenchCommandOptions& /*options*/, const GlobalOptions& /*global*/) {
  refuse(model, "bench");
}

int convert_bank(const NamedModel& model, const ConvertCommandOptions& /*options*/, const GlobalOptions& /*global*/) {
  refuse(model, "convert");
}

}  // namespace vitrail::app
