// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/session.h"

#include <array>

#include "vitrail/base/error.h"
#include "vitrail/infer/executor_internal.h"
#include "vitrail/kernels/rowwise/l2_normalize.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

// Allocates nothing: the request, which has the list of layers, outlives the variant.
Variant variant_of(const Request& request) {
  return {.number = static_cast<uint64_t>(static_cast<uint32_t>(request.layer)) << 32 |
                    static_cast<uint64_t>(request.output) << 16 | static_cast<uint64_t>(request.features.tokens) << 8 |
                    static_cast<uint64_t>(request.features.final_norm) << 1 | static_cast<uint64_t>(request.all_layers),
          .layers = request.features.layers};
}

Request request_of(const Variant& variant) {
  const uint64_t number = variant.number;
  return {.output = static_cast<Output>(number >> 16 & 0xff),
          .features = {.tokens = static_cast<Tokens>(number >> 8 & 0xff),
                       .layers = {variant.layers.begin(), variant.layers.end()},
                       .final_norm = (number >> 1 & 1) != 0},
          .layer = static_cast<int32_t>(number >> 32),
          .all_layers = (number & 1) != 0};
}

std::array<TensorSpec, 1> specs_of(const Shape& images) {
  if (images.rank() != 4) throw Error("session", "images [B, C, H, W]", images.to_string());
  return {TensorSpec{DType::f32, images}};
}

// The number of leading tokens that a request reads; 0: all.
int64_t num_tokens_read(const models::VisionTransformer& model, const Request& request) {
  const Tokens tokens = request.features.tokens;
  if (tokens == Tokens::cls && request.output == Output::features) return 1;
  const bool few = tokens == Tokens::cls || tokens == Tokens::pooled;
  return few ? model.num_head_tokens() : 0;
}

void check_class_token(const models::VisionTransformer& model, Tokens tokens) {
  if (tokens == Tokens::cls && !model.config().class_token) {
    throw Error("tokens", "patch, pooled or all (the model has no class token)", "cls");
  }
}

// The tokens of a block.  select_tokens() and the heads read some of them.
Tensor computed_tokens(const models::VisionTransformer& model, const Tensor& images, const Request& request,
                       Tensor& shares) {
  const FeatureOptions& features = request.features;
  check_class_token(model, features.tokens);
  return model.intermediate(images,
                            {.layer = features.layers.front(),
                             .final_norm = features.final_norm,
                             .num_tokens = num_tokens_read(model, request)},
                            &shares);
}

Tensor select_tokens(const models::VisionTransformer& model, const Tensor& tokens, const Tensor& shares,
                     Tokens selection, std::array<int64_t, 2> grid) {
  const int64_t prefix = model.num_prefix_tokens();
  switch (selection) {
    case Tokens::pooled:
      return model.pool(tokens, shares);
    case Tokens::cls:
      return ops::contiguous(tokens.select(1, 0));
    case Tokens::patch:
      return ops::contiguous(tokens.narrow(1, prefix, tokens.size(1) - prefix));
    case Tokens::grid:
      return ops::contiguous(tokens.narrow(1, prefix, tokens.size(1) - prefix))
          .view({tokens.size(0), grid[0], grid[1], tokens.size(2)});
    case Tokens::all:
      break;
  }
  return tokens;
}

// The selected tokens of several blocks, [B, layers, …].
Tensor features_of_layers(const models::VisionTransformer& model, const Tensor& images,
                          const FeatureOptions& features) {
  check_class_token(model, features.tokens);
  std::vector<Tensor> layers;
  for (const Tensor& tokens : model.intermediates(images, features.layers, features.final_norm)) {
    const std::array<int64_t, 2> grid = model.grid_of(images.size(2), images.size(3));
    layers.push_back(select_tokens(model, tokens, {}, features.tokens, grid).unsqueeze(1));
  }
  return ops::cat(layers, 1);
}

// True if the request needs one token per patch, which token merging does not keep.
bool needs_patch_tokens(const Request& request) {
  if (request.output == Output::logits) return false;
  const auto& [tokens, layers, final_norm, l2_normalize] = request.features;
  return request.output == Output::attention || layers.size() > 1 ||
         (tokens != Tokens::pooled && tokens != Tokens::cls);
}

// The head reads the normalised tokens of the last block.
void check_heads_layer(const models::VisionTransformer& model, const FeatureOptions& features) {
  const auto& layers = features.layers;
  const bool last = layers.size() == 1 && (layers[0] == -1 || layers[0] == model.config().depth - 1);
  if (last && features.final_norm) return;
  const std::string blocks = layers.size() == 1 ? str("block ", layers[0]) : str(layers.size(), " blocks");
  throw Error("session", "features of the last block with the final norm, as the head reads them",
              blocks + (features.final_norm ? "" : " without the norm"));
}

// What the program leaves to be done: the scaling of each vector to length 1.
void finish(const Request& request, const Tensor& features) {
  if (!request.features.l2_normalize || request.output == Output::attention) return;
  const int64_t width = features.size(-1);
  kernels::normalize_rows(features.data<float>(), width > 0 ? features.numel() / width : 0, width);
}

Tensor checked(const Tensor& images) {
  if (images.rank() == 4 && images.size(0) == 0) throw Error("session", "at least one image", "an empty batch");
  return images.to(DType::f32).contiguous();
}

// Precision of the patch embedding, of attention and of the keys and values of attention pooling.
kernels::Precision outer_precision(const SessionOptions& options) {
  return options.precision == kernels::Precision::int8 ? options.excluded_precision : options.precision;
}

// Weights with another precision than the session's: those outside the blocks, and excluded layers.
PackedWeights::Exceptions exceptions(const models::VisionTransformer& model, const SessionOptions& options) {
  PackedWeights::Exceptions result;
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    if (parameter.name.starts_with("blocks.")) continue;
    const bool many_rows = parameter.name.starts_with("patch_embed.") || parameter.name.starts_with("attn_pool.kv.");
    result[parameter.tensor.storage().get()] = many_rows ? outer_precision(options) : kernels::Precision::fp32;
  }
  if (options.precision != kernels::Precision::int8) return result;
  for (const std::string& layer : options.excluded_layers) {
    result[model.parameter(layer + ".weight").storage().get()] = options.excluded_precision;
  }
  return result;
}

}  // namespace

Session::Session(models::VisionTransformer model, const SessionOptions& options)
    : model_(std::move(model)), precision_(options.precision) {
  if (options.merged_per_block < 0) throw Error("session", "0 or more merged tokens", str(options.merged_per_block));
  model_.merge_tokens(options.merged_per_block);
  model_.eval();
  executor_ = std::make_unique<Executor>(
      [this](const Variant& variant, const std::vector<Tensor>& inputs) {
        return trace(inputs[0], request_of(variant));
      },
      PackedWeights(precision_, exceptions(model_, options)),
      ExecutorOptions{.threads = options.threads, .split_batch = true, .attention = outer_precision(options)});
}

Session::~Session() = default;

std::vector<Tensor> Session::trace(const Tensor& images, const Request& request) const {
  if (model_.merged_per_block() > 0 && needs_patch_tokens(request)) {
    throw Error("session", "a model without token merging (the request needs one token per patch)",
                str(model_.merged_per_block(), " merged tokens per block"));
  }
  switch (request.output) {
    case Output::logits:
      return {model_.forward(images)};
    case Output::attention: {
      if (request.all_layers) return model_.attention_maps(images);
      return {model_.attention_maps(images, request.layer).at(0)};
    }
    case Output::logits_and_features:
      check_heads_layer(model_, request.features);
      break;
    case Output::features:
      if (request.features.layers.size() != 1) return {features_of_layers(model_, images, request.features)};
      break;
  }
  Tensor shares;
  const Tensor tokens = computed_tokens(model_, images, request, shares);
  const Tensor features =
      select_tokens(model_, tokens, shares, request.features.tokens, model_.grid_of(images.size(2), images.size(3)));
  if (request.output == Output::features) return {features};
  return {model_.forward_head(tokens, shares), features};
}

std::shared_ptr<const Program> Session::program(const Shape& images, const Request& request) const {
  return executor_->program(variant_of(request), specs_of(images));
}

int64_t Session::images_per_pass(const Shape& images, const Request& request) const {
  return executor_->plan(variant_of(request), specs_of(images))->largest_part().count;
}

int Session::threads_at_work(const Shape& images) const { return images[0] >= threads() ? 1 : threads(); }

std::vector<Tensor> Session::run(const Tensor& images, const Request& request) const {
  const Tensor input = checked(images);
  const auto plan = executor_->plan(variant_of(request), specs_of(input.shape()));
  std::vector<Tensor> results = executor_->run(*plan, {&input, 1});
  finish(request, results.back());
  return results;
}

void Session::run_into(const Tensor& images, const Request& request, const std::vector<Tensor>& results) const {
  const Tensor input = checked(images);
  const auto plan = executor_->plan(variant_of(request), specs_of(input.shape()));
  executor_->run_into(*plan, {&input, 1}, results);
  finish(request, results.back());
}

void Session::profile(const Tensor& images, const std::function<void(size_t, double)>& after_step) const {
  const Tensor input = checked(images);
  const auto plan = executor_->plan(variant_of({}), specs_of(input.shape()));
  executor_->profile(*plan, {&input, 1}, after_step);
}

size_t Session::packed_bytes() const { return executor_->packed_bytes(); }
int Session::threads() const { return executor_->threads(); }

}  // namespace vitrail::infer
