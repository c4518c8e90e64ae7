// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/session.h"

#include <array>

#include "vitrail/base/error.h"
#include "vitrail/infer/executor_internal.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

// Allocates nothing: the request, which has the list of layers, outlives the variant.
Variant variant_of(const Request& request) {
  return {.number = static_cast<uint64_t>(static_cast<uint32_t>(request.layer)) << 32 |
                    static_cast<uint64_t>(request.output) << 16 | static_cast<uint64_t>(request.tokens) << 8 |
                    static_cast<uint64_t>(request.normalize) << 1 | static_cast<uint64_t>(request.all_layers),
          .layers = request.layers};
}

Request request_of(const Variant& variant) {
  const uint64_t number = variant.number;
  return {.output = static_cast<Output>(number >> 16 & 0xff),
          .tokens = static_cast<Tokens>(number >> 8 & 0xff),
          .layer = static_cast<int32_t>(number >> 32),
          .normalize = (number >> 1 & 1) != 0,
          .all_layers = (number & 1) != 0,
          .layers = {variant.layers.begin(), variant.layers.end()}};
}

std::array<TensorSpec, 1> specs_of(const Shape& images) {
  if (images.rank() != 4) throw Error("session", "images [B, C, H, W]", images.to_string());
  return {TensorSpec{DType::f32, images}};
}

// The number of leading tokens that a request reads; 0: all.
int64_t num_tokens_read(const models::VisionTransformer& model, const Request& request) {
  if (request.tokens == Tokens::cls && request.output == Output::features) return 1;
  const bool few = request.tokens == Tokens::cls || request.tokens == Tokens::pooled;
  return few ? model.num_head_tokens() : 0;
}

void check_class_token(const models::VisionTransformer& model, const Request& request) {
  if (request.tokens == Tokens::cls && !model.config().class_token) {
    throw Error("tokens", "patch, pooled or all (the model has no class token)", "cls");
  }
}

// The tokens of a block.  select_tokens() and the heads read some of them.
Tensor computed_tokens(const models::VisionTransformer& model, const Tensor& images, const Request& request,
                       Tensor& shares) {
  check_class_token(model, request);
  return model.intermediate(
      images, {.layer = request.layer, .normalize = request.normalize, .num_tokens = num_tokens_read(model, request)},
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
Tensor features_of_layers(const models::VisionTransformer& model, const Tensor& images, const Request& request) {
  check_class_token(model, request);
  std::vector<Tensor> layers;
  for (const Tensor& tokens : model.intermediates(images, request.layers, request.normalize)) {
    const std::array<int64_t, 2> grid = model.grid_of(images.size(2), images.size(3));
    layers.push_back(select_tokens(model, tokens, {}, request.tokens, grid).unsqueeze(1));
  }
  return ops::cat(layers, 1);
}

// True if the request needs one token per patch, which token merging does not keep.
bool needs_patch_tokens(const Request& request) {
  if (request.output == Output::logits) return false;
  return request.output == Output::attention || !request.layers.empty() || request.tokens == Tokens::patch ||
         request.tokens == Tokens::grid || request.tokens == Tokens::all;
}

// The head reads the normalised tokens of the last block.
void check_heads_layer(const models::VisionTransformer& model, const Request& request) {
  const bool last = request.layer == -1 || request.layer == model.config().depth - 1;
  if (last && request.normalize) return;
  throw Error("session", "features of the last block with the final norm, as the head reads them",
              str("block ", request.layer, request.normalize ? "" : " without the norm"));
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
      check_heads_layer(model_, request);
      break;
    case Output::features:
      if (!request.layers.empty()) return {features_of_layers(model_, images, request)};
      break;
  }
  Tensor shares;
  const Tensor tokens = computed_tokens(model_, images, request, shares);
  const Tensor features =
      select_tokens(model_, tokens, shares, request.tokens, model_.grid_of(images.size(2), images.size(3)));
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
  return executor_->run(*plan, {&input, 1});
}

void Session::run_into(const Tensor& images, const Request& request, const std::vector<Tensor>& results) const {
  const Tensor input = checked(images);
  const auto plan = executor_->plan(variant_of(request), specs_of(input.shape()));
  executor_->run_into(*plan, {&input, 1}, results);
}

void Session::profile(const Tensor& images, const std::function<void(size_t, double)>& after_step) const {
  const Tensor input = checked(images);
  const auto plan = executor_->plan(variant_of({}), specs_of(input.shape()));
  executor_->profile(*plan, {&input, 1}, after_step);
}

size_t Session::packed_bytes() const { return executor_->packed_bytes(); }
int Session::threads() const { return executor_->threads(); }

}  // namespace vitrail::infer
