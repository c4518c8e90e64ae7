// SPDX-License-Identifier: Apache-2.0
// Patch features as colours: one PCA over the images of a request.
#include "vitrail/analysis/pca.h"
#include "vitrail/pipeline/pca_view.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/images/image_model.h"
#include "vitrail/tasks/images/tensor_json_internal.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

class Pca : public Request {
 public:
  Pca(const ImageModel& model, RequestOptions& options, const Setting& setting)
      : model_(model.images()), render_(setting.render) {
    const int64_t depth = model_.config().vit.depth;
    options.integer("layer", options_.features.layers.front(), -depth, depth - 1);  // the range is the model's
    pipeline::describe_pca(options, options_);
    foreground_ = pipeline::foreground_of(options_);
    raw_ = options.flag("raw");
  }

  std::vector<infer::Request> passes() const override {
    return {{.output = infer::Output::features, .features = options_.features}};
  }
  bool keeps_photo() const override { return render_; }

  bool needs_all() const override { return true; }
  void finish(const std::vector<Item*>& items) const override {
    std::vector<Tensor> grids;
    for (const Item* item : items) grids.push_back(item->results[0][0]);
    if (grids.empty()) return;
    std::vector<analysis::PcaMaps> maps = analysis::pca_maps(grids, foreground_);
    for (size_t i = 0; i < items.size(); ++i) items[i]->value = std::move(maps[i]);
  }

  std::string json(const Item& item) const override {
    const auto& maps = std::any_cast<const analysis::PcaMaps&>(item.value);
    nlohmann::ordered_json object{{"path", item.name},
                                  {"shape", {maps.colors.size(0), maps.colors.size(1), 3}},
                                  {"region", region_json(model_, item)},
                                  {"colors", values_of(maps.colors)}};
    if (raw_) object["scores"] = values_of(maps.scores);  // null in the background
    return pipeline::json_line(object);
  }

  image::Image render(const Item& item) const override {
    return pipeline::pca_overlay(item.photo, std::any_cast<const analysis::PcaMaps&>(item.value), options_.opacity,
                                 model_.transform());
  }

 private:
  const Model& model_;
  bool render_, raw_ = false;
  pipeline::PcaOptions options_;
  analysis::Foreground foreground_;
};

}  // namespace

Task pca_task() { return image_task<Pca>("pca", true); }

}  // namespace vitrail::tasks
