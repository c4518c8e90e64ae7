// SPDX-License-Identifier: Apache-2.0
// Features of an image, of models without tokens of one size.
#include "vitrail/pipeline/feature_fields.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/images/hiera_model.h"
#include "vitrail/tasks/images/tensor_json_internal.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

class EmbedPooled : public Request {
 public:
  EmbedPooled(const HieraModel& model, RequestOptions& options, const Setting& /*setting*/) : model_(model) {
    pipeline::describe_features(options, features_);
  }

  void check(int64_t images) const override { check_result_size(images, model_.embedding_dim()); }
  std::vector<infer::Request> passes() const override {
    return {{.output = infer::Output::features, .features = features_}};
  }
  std::string json(const Item& item) const override {
    const Tensor& row = item.results[0][0];
    return pipeline::json_line({{"path", item.name}, {"shape", {row.numel()}}, {"embedding", values_of(row)}});
  }

 private:
  const HieraModel& model_;
  infer::FeatureOptions features_;
};

}  // namespace

Task embed_pooled_task() {
  return {.name = "embed",
          .model = "a Hiera",
          .fits = is_model<HieraModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<EmbedPooled>(as_model<HieraModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
