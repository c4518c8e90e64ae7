// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/pca.h"
#include "vitrail/c_api/handles_internal.h"

using namespace vitrail::c_api;
using vitrail::Tensor;

namespace vitrail::c_api {
namespace {

infer::Tokens tokens_of(vitrail_tokens tokens) {
  switch (tokens) {
    case VITRAIL_TOKENS_POOLED:
      return infer::Tokens::pooled;
    case VITRAIL_TOKENS_CLS:
      return infer::Tokens::cls;
    case VITRAIL_TOKENS_PATCH:
      return infer::Tokens::patch;
    case VITRAIL_TOKENS_GRID:
      return infer::Tokens::grid;
    case VITRAIL_TOKENS_ALL:
      return infer::Tokens::all;
  }
  throw Error("tokens", "a vitrail_tokens", str(static_cast<int>(tokens)));
}

infer::FeatureOptions feature_options(const vitrail_embed_options* given) {
  const vitrail_embed_options options = options_or(given, VITRAIL_EMBED_OPTIONS_INIT, "vitrail_embed_options");
  return {.tokens = tokens_of(options.tokens),
          .layers = {options.layer},
          .final_norm = options.skip_norm == 0,
          .l2_normalize = options.l2_normalize != 0};
}

AttentionMapOptions attention_options(const vitrail_attention_options* given) {
  const auto options = options_or(given, VITRAIL_ATTENTION_OPTIONS_INIT, "vitrail_attention_options");
  AttentionMapOptions result{.layer = options.layer, .rollout = options.rollout != 0};
  if (options.head != -1) result.head = options.head;
  return result;
}

// One handle per tensor; none is given away if a later one fails.
void give_tensors(const std::vector<Tensor>& tensors, vitrail_tensor** handles) {
  std::vector<std::unique_ptr<vitrail_tensor>> results;
  for (const Tensor& tensor : tensors) results.emplace_back(new_tensor(tensor));
  for (size_t i = 0; i < results.size(); ++i) handles[i] = results[i].release();
}

void give_maps(const std::vector<Tensor>& grids, vitrail_tensor** maps) {
  if (grids.empty()) throw Error("pca", "at least one image", "none");
  std::vector<Tensor> colors;
  for (const analysis::PcaMaps& map : analysis::pca_maps(grids)) colors.push_back(map.colors);
  give_tensors(colors, maps);
}

models::ClassGradientOptions gradient_options(int64_t target, std::vector<std::string> values) {
  models::ClassGradientOptions options{.target = {}, .values = std::move(values)};
  if (options.values.empty()) throw Error("values", "at least one name", "none");
  if (target != -1) options.target = target;
  return options;
}

Tensor grid_of(const vitrail_tensor* features) {
  const Tensor& values = required(features, "features").values;
  if (values.rank() == 4 && values.size(0) == 1) return values.select(0, 0);
  throw Error("features", "[1, rows, columns, D] of each image", values.shape().to_string());
}

}  // namespace
}  // namespace vitrail::c_api

extern "C" {

vitrail_status* vitrail_classify(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                                 int64_t top, vitrail_prediction* predictions, int64_t* written) {
  return guarded([&] {
    required(written, "written");
    if (top < 1) throw vitrail::Error("top", "at least 1", vitrail::str(top));
    const auto rows = required(model, "model").images().classify(views_of(images, count), top);
    vitrail_prediction* to = &required(predictions, "predictions");
    for (const auto& row : rows) {
      for (const vitrail::Prediction& prediction : row) {
        *to++ = {prediction.index, prediction.probability,
                 model->class_names[static_cast<size_t>(prediction.index)].c_str()};
      }
    }
    *written = std::ssize(rows.front());
  });
}

vitrail_status* vitrail_logits(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                               vitrail_tensor** logits) {
  return guarded([&] {
    vitrail::models::require_classifier(required(model, "model").images().config(), model->path);
    vitrail_tensor*& result = required(logits, "logits");
    result = new_tensor(model->images().logits(views_of(images, count)));
  });
}

vitrail_status* vitrail_embed(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                              const vitrail_embed_options* options, vitrail_tensor** features) {
  return guarded([&] {
    vitrail_tensor*& result = required(features, "features");
    result = new_tensor(required(model, "model").images().embed(views_of(images, count), feature_options(options)));
  });
}

vitrail_status* vitrail_attention(const vitrail_model* model, const vitrail_image* image,
                                  const vitrail_attention_options* options, vitrail_tensor** map) {
  return guarded([&] {
    vitrail_tensor*& result = required(map, "map");
    result = new_tensor(
        required(model, "model").images().attention(required(image, "image").view, attention_options(options)));
  });
}

vitrail_status* vitrail_gradients(const vitrail_model* model, const vitrail_image* image, int64_t target,
                                  const char* const* values, size_t num_values, vitrail_tensor** gradients) {
  return guarded([&] {
    required(gradients, "gradients");
    std::vector<Tensor> results =
        required(model, "model")
            .image_model()
            .class_gradients(required(image, "image").view,
                             gradient_options(target, strings_of(values, num_values, "values")));
    for (Tensor& result : results) result = result.select(0, 0);
    give_tensors(results, gradients);
  });
}

vitrail_status* vitrail_pca(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                            vitrail_tensor** maps) {
  return guarded([&] {
    required(maps, "maps");
    std::vector<Tensor> grids;
    for (const vitrail::image::ImageView& view : views_of(images, count)) {
      grids.push_back(required(model, "model").images().embed(view, {.tokens = vitrail::infer::Tokens::grid}));
    }
    give_maps(grids, maps);
  });
}

vitrail_status* vitrail_pca_maps(const vitrail_tensor* const* features, size_t count, vitrail_tensor** maps) {
  return guarded([&] {
    required(maps, "maps");
    if (count > 0) required(features, "features");
    std::vector<Tensor> grids;
    for (size_t i = 0; i < count; ++i) grids.push_back(grid_of(features[i]));
    give_maps(grids, maps);
  });
}

vitrail_status* vitrail_preprocess(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                                   vitrail_tensor** input) {
  return guarded([&] {
    vitrail_tensor*& result = required(input, "input");
    result = new_tensor(required(model, "model").images().preprocess(views_of(images, count)));
  });
}

vitrail_status* vitrail_forward(const vitrail_model* model, const float* input, const int64_t shape[4],
                                vitrail_tensor** output) {
  return guarded([&] {
    required(input, "input");
    const std::span<const int64_t> extents(&required(shape, "shape"), 4);
    const int64_t count = vitrail::checked_numel(extents, "shape");
    const Tensor images = Tensor::empty(vitrail::Shape(extents));
    std::copy_n(input, count, images.data<float>());
    vitrail_tensor*& result = required(output, "output");
    result = new_tensor(required(model, "model").images().session().logits(images));
  });
}

}  // extern "C"
