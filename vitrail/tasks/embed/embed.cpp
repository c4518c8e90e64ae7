// SPDX-License-Identifier: Apache-2.0
// Features of an image.
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/pipeline/feature_fields.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/images/image_model.h"
#include "vitrail/tasks/images/tensor_json_internal.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

// Each block at most once, so that the results of a request are no larger than the model's.
void check_layers(const std::vector<int64_t>& layers, int64_t depth) {
  std::set<int64_t> blocks;
  for (const int64_t layer : layers) {
    if (layer < -depth || layer >= depth)
      throw Error("layer", str("a block index from ", -depth, " to ", depth - 1), str(layer));
    const int64_t block = layer < 0 ? layer + depth : layer;
    if (!blocks.insert(block).second) throw Error("layer", "each block once", str("block ", block, " twice"));
  }
}

class Embed : public Request {
 public:
  Embed(const ImageModel& model, RequestOptions& options, const Setting& /*setting*/) : model_(model) {
    pipeline::describe_features(options, features_);
  }

  void check(int64_t images) const override {
    const auto& vit = model_.images().config().vit;
    check_layers(features_.layers, vit.depth);
    const bool one = features_.tokens == infer::Tokens::pooled || features_.tokens == infer::Tokens::cls;
    const int64_t tokens = one ? 1 : model_.image_tokens();
    check_result_size(images, tokens * vit.embed_dim * std::ssize(features_.layers));
  }

  std::vector<infer::Request> passes() const override { return {model_.images().request_of(features_)}; }

  std::string json(const Item& item) const override {
    const Tensor& row = item.results[0][0];
    nlohmann::ordered_json object{{"path", item.name},
                                  {"shape", std::vector<int64_t>(row.shape().begin(), row.shape().end())}};
    if (features_.tokens == infer::Tokens::grid) object["region"] = region_json(model_.images(), item);
    object["embedding"] = values_of(row);
    return pipeline::json_line(object);
  }

 private:
  const ImageModel& model_;
  infer::FeatureOptions features_;
};

}  // namespace

Task embed_task() { return image_task<Embed>("embed"); }

}  // namespace vitrail::tasks
