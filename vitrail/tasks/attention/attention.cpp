// SPDX-License-Identifier: Apache-2.0
// Attention of an image as maps or as a figure.
#include "vitrail/base/error.h"
#include "vitrail/pipeline/attention_view.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/images/image_model.h"
#include "vitrail/tasks/images/tensor_json_internal.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

constexpr int64_t kMaxWeights = int64_t{1} << 28;  // attention weights of a request: 1 GiB

class Attention : public Request {
 public:
  Attention(const ImageModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), render_(setting.render) {
    pipeline::describe_attention(options, options_);
    method_ = pipeline::attribution_method(options_);
  }

  void check(int64_t images) const override {
    if (!options_.query.empty() && options_.query.size() != 2)
      throw Error("query", "X,Y in pixels", str(options_.query.size(), " values"));
    pipeline::check_attention(model_.images(), options_);
    if (method_) return;
    const auto& vit = model_.images().config().vit;
    const int64_t tokens = model_.image_tokens(), blocks = passes()[0].all_layers ? vit.depth : 1;
    check_result_size(images * blocks, vit.num_heads * tokens * tokens, kMaxWeights);
  }

  // The figure has predictions in its caption.  A method that attributes a logit runs its own passes.
  std::vector<infer::Request> passes() const override {
    if (method_) return {};
    std::vector<infer::Request> passes{pipeline::attention_request(model_.images(), options_)};
    if (render_ && model_.classifies()) passes.emplace_back();
    return passes;
  }
  bool keeps_photo() const override { return render_ || method_; }
  bool is_long() const override { return method_ != nullptr; }
  void compute(Item& item, const ImageEncoding* /*encoding*/, const ProgressCallback& progress) const override {
    const image::ImageView photo = item.photo;
    item.value = pipeline::attribute(*method_, model_.images(), model_.differentiable().model(),
                                     model_.images().preprocess({&photo, 1}), options_.attribution, progress);
  }

  std::string json(const Item& item) const override {
    const pipeline::AttentionMaps attention = pipeline::attention_maps(model_.images(), options_, attended(item));
    nlohmann::ordered_json maps = nlohmann::ordered_json::array();
    for (const auto& [label, map] : attention.maps) maps.push_back({{"label", label}, {"values", values_of(map)}});
    const Tensor& first = attention.maps.front().map;
    nlohmann::ordered_json object{{"path", item.name}};
    if (method_) {
      add_attribution(attribution_of(item), object);
    } else {
      object["attending"] = attention.attending;
    }
    object["shape"] = {first.size(0), first.size(1)};
    object["region"] = region_json(model_.images(), item);
    object["maps"] = maps;
    return pipeline::json_line(object);
  }

  image::Image render(const Item& item) const override {
    Tensor logits = item.results.size() > 1 ? item.results[1][0] : Tensor();
    if (method_) logits = attribution_of(item).logits;
    return pipeline::attention_figure(model_.images(), options_, item.photo, attended(item), logits);
  }

 private:
  static const pipeline::Attribution& attribution_of(const Item& item) {
    return std::any_cast<const pipeline::Attribution&>(item.value);
  }

  void add_attribution(const pipeline::Attribution& attribution, nlohmann::ordered_json& object) const {
    object["method"] = options_.method;
    object["class"] = attribution.target;
    object["label"] = model_.images().class_name(attribution.target);
    if (const auto& complete = attribution.completeness)
      object["completeness"] = {{"sum", complete->sum}, {"difference", complete->difference}};
  }

  pipeline::AttendedImage attended(const Item& item) const {
    pipeline::AttendedImage image{.name = item.name,
                                  .width = item.width,
                                  .height = item.height,
                                  .size = output_size(model_.images().transform(), item.width, item.height),
                                  .weights = {}};
    if (method_) {
      image.attribution = attribution_of(item);
      return image;
    }
    for (const Tensor& block : item.results[0]) image.weights.push_back(block.unsqueeze(0));
    return image;
  }

  const ImageModel& model_;
  bool render_;
  pipeline::AttentionOptions options_;
  const pipeline::AttributionMethod* method_ = nullptr;  // null: one of attention weights
};

}  // namespace

Task attention_task() { return image_task<Attention>("attention", true); }

}  // namespace vitrail::tasks
