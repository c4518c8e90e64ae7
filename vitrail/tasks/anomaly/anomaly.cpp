// SPDX-License-Identifier: Apache-2.0
// How unlike good images an image is, and where.
#include <algorithm>

#include "vitrail/image/overlay.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/anomaly/anomaly_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

struct AnomalyOptions {
  std::optional<double> threshold, pixel_threshold;
  double opacity = 0.6;
};

void describe(Fields& fields, AnomalyOptions& options) {
  fields.number({"threshold", "Score from which an image is anomalous (default: the bank's)"}, options.threshold);
  fields.number({"pixel_threshold", "Distance from which a pixel is in the mask (default: the bank's)"},
                options.pixel_threshold);
  fields.number({"opacity", "Weight of the heat map over the image, 0 to 1"}, options.opacity, {0, 1});
}

class Anomaly : public Request {
 public:
  Anomaly(const AnomalyModel& model, RequestOptions& options, const Setting& setting)
      : detector_(model.detector()), render_(setting.render) {
    describe(options, options_);
    if (!options_.threshold) options_.threshold = detector_.bank().threshold;
    if (!options_.pixel_threshold) options_.pixel_threshold = detector_.bank().pixel_threshold;
  }

  bool keeps_photo() const override { return render_; }

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    item.value = static_cast<const AnomalyEncoding*>(encoding)->patches;
  }

  std::string json(const Item& item) const override {
    const anomaly::PatchDistances& patches = patches_of(item);
    const auto farthest = std::ranges::max_element(patches.distances);
    const auto patch = farthest - patches.distances.begin();
    const auto [rows, columns] = detector_.grid();
    nlohmann::ordered_json object{{"path", item.name}, {"score", patches.score}};
    if (options_.threshold) {
      object["threshold"] = *options_.threshold;
      object["anomalous"] = patches.score > *options_.threshold;
    }
    object["distance"] = *farthest;
    object["farthest"] = {(2 * (patch % columns) + 1) * item.width / (2 * columns),
                          (2 * (patch / columns) + 1) * item.height / (2 * rows)};
    return pipeline::json_line(object);
  }

  // The mask is there where a threshold is known.
  std::vector<Output> outputs() const override {
    std::vector<Output> outputs{{"map", {}}};
    if (options_.pixel_threshold) outputs.push_back({"mask", {}});
    return outputs;
  }

  Tensor array(const Item& item, size_t output) const override {
    Tensor map = detector_.map(patches_of(item), item.height, item.width);
    if (output == 0) return map;
    for (float& value : std::span(map.data<float>(), static_cast<size_t>(map.numel())))
      value = value > *options_.pixel_threshold ? 1 : 0;
    return map;
  }

  // Distances up to the threshold, which good images have too, do not reach the lightest colours.
  image::Image render(const Item& item) const override {
    const Tensor map = detector_.map(patches_of(item), item.height, item.width);
    const std::span values(map.data<float>(), static_cast<size_t>(map.numel()));
    const double high = std::max(2 * options_.pixel_threshold.value_or(0), double{*std::ranges::max_element(values)});
    return image::overlay(item.photo, {.values = values, .width = item.width, .height = item.height},
                          {.opacity = options_.opacity, .low = 0.F, .high = static_cast<float>(high)});
  }

 private:
  static const anomaly::PatchDistances& patches_of(const Item& item) {
    return std::any_cast<const anomaly::PatchDistances&>(item.value);
  }

  const anomaly::Detector& detector_;
  bool render_;
  AnomalyOptions options_;
};

}  // namespace

Task anomaly_task() {
  return {.name = "anomaly",
          .model = "a bank of anomaly detection (vitrail anomaly fit makes one)",
          .help = "Find what is unlike good images: score and heat map; fit makes the bank that -m takes",
          .describe = describe_defaults<AnomalyOptions, describe>,
          .can_render = true,
          .model_options = false,
          .fits = is_model<AnomalyModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<Anomaly>(as_model<AnomalyModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
