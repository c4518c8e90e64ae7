// SPDX-License-Identifier: Apache-2.0
// The routes that give predictions and features: /v1/classify, /v1/embed, /v1/zeroshot.
#include <set>

#include "vitrail/pipeline/feature_fields.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/serve/image_job_internal.h"
#include "vitrail/serve/response_size_internal.h"
#include "vitrail/serve/routes_internal.h"
#include "vitrail/serve/text_task_internal.h"

namespace vitrail::serve {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMaxTop = 1 << 20;

// Embeddings and maps as JSON: {"path", "shape", NAME: [values in C order]}.
ordered_json tensor_json(const std::string& path, const std::string& name, const Tensor& tensor) {
  const Tensor values = tensor.contiguous();
  const Shape& shape = values.shape();
  const float* data = values.data<float>();
  return {{"path", path},
          {"shape", std::vector<int64_t>(shape.begin(), shape.end())},
          {name, std::vector<float>(data, data + values.numel())}};
}

int64_t values_of(const ServedModel& model, const infer::FeatureOptions& options) {
  const bool one = options.tokens == infer::Tokens::pooled || options.tokens == infer::Tokens::cls;
  const int64_t tokens = one ? 1 : model.image_tokens();
  return tokens * model.images().config().vit.embed_dim * static_cast<int64_t>(options.layers.size());
}

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

}  // namespace

void classify_route(const CallPointer& call) {
  RequestOptions& options = call->options();
  RequestImages input = take_images(call->request(), call->engine().options.limits, options);
  ImageJob job{.model = call->take_model(), .decode = {.apply_exif = options.flag("exif")}};
  int64_t top = 5;
  options.integer("top", top, 1, kMaxTop);
  options.require_all_taken();
  models::require_classifier(job.model->images().config(), job.model->name());
  job.finish = [model = job.model, top, single = input.single](std::vector<ImageOutcome>& outcomes) {
    return outcome_response(outcomes, single, [&](const ImageOutcome& outcome) {
      const Tensor& logits = outcome.results[0][0];
      const std::span row(logits.data<float>(), static_cast<size_t>(logits.numel()));
      return pipeline::prediction_json(outcome.name, models::activation_of(model->images().config()),
                                       model->images().predictions(row, top, outcome.name));
    });
  };
  start_images(call, std::move(input.images), std::move(job));
}

void embed_route(const CallPointer& call) {
  RequestOptions& options = call->options();
  RequestImages input = take_images(call->request(), call->engine().options.limits, options);
  ImageJob job{.model = call->take_model(), .decode = {.apply_exif = options.flag("exif")}};
  infer::FeatureOptions features;
  pipeline::describe_features(options, features);
  options.require_all_taken();
  const Model& model = job.model->images();
  check_layers(features.layers, model.config().vit.depth);
  check_response_size(static_cast<int64_t>(input.images.size()), values_of(*job.model, features));
  job.requests = {model.request_of(features)};
  job.finish = [single = input.single](std::vector<ImageOutcome>& outcomes) {
    return outcome_response(outcomes, single, [&](const ImageOutcome& outcome) {
      return tensor_json(outcome.name, "embedding", outcome.results[0][0]);
    });
  };
  start_images(call, std::move(input.images), std::move(job));
}

void zeroshot_route(const CallPointer& call) {
  RequestOptions& options = call->options();
  RequestImages input = take_images(call->request(), call->engine().options.limits, options);
  ImageJob job{.model = call->take_model(), .decode = {.apply_exif = options.flag("exif")}};
  std::vector<std::string> labels = options.texts("labels"), templates = options.texts("template");
  int64_t top = 5;
  options.integer("top", top, 1, kMaxTop);
  options.require_all_taken();
  if (!job.model->dual()) throw Error("model", "one with a text tower (CLIP, SigLIP)", job.model->name());
  if (labels.empty()) throw Error("labels", "names of the classes: \"cat,dog\"", "none");
  if (labels.size() == 1) labels = pipeline::split_labels(labels.front());
  if (templates.empty()) templates.emplace_back("{}");
  check_response_size(static_cast<int64_t>(labels.size()), static_cast<int64_t>(templates.size()) << 8);
  job.requests = {job.model->images().request_of({})};
  const size_t count = labels.size() * templates.size();
  auto task = [call, job, labels, templates, top, input = std::move(input)](const ProgressCallback& progress) mutable {
    const Tensor texts = job.model->dual()->embed_labels(labels, templates, progress);
    job.finish = [model = job.model, texts, labels, top, single = input.single](std::vector<ImageOutcome>& outcomes) {
      return outcome_response(outcomes, single, [&](const ImageOutcome& outcome) {
        const DualModel& dual = *model->dual();
        const Tensor logits = dual.logits(outcome.results[0][0].unsqueeze(0), texts);
        return pipeline::prediction_json(outcome.name, dual.independent_scores() ? "sigmoid" : "softmax",
                                         pipeline::best_labels(dual.probabilities(logits), labels, top));
      });
    };
    start_images(call, std::move(input.images), std::move(job));
  };
  run_text_task(call, count, std::move(task));
}

}  // namespace vitrail::serve
