// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/vision_transformer.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/nn/checkpointed.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

// table [1, H, patches, d] → the rows of each sample's patches [B, H, K, d].
Tensor rows_of_patches(const Tensor& table, const PatchIndices& kept) {
  const int64_t heads = table.size(1), patches = table.size(2), dim = table.size(3),
                batch = static_cast<int64_t>(kept.size());
  const Tensor rows = ops::contiguous(table.permute({0, 2, 1, 3})).view({1, patches, heads * dim});
  const Tensor gathered = ops::gather_tokens(rows.expand({batch, patches, heads * dim}), kept);
  return gathered.view({batch, gathered.size(1), heads, dim}).permute({0, 2, 1, 3});
}

void check_kept(const PatchIndices& kept, int64_t images, int64_t patches) {
  if (std::ssize(kept) != images)
    throw Error("kept patches", str("those of ", images, " images"), str("those of ", kept.size()));
  for (const std::vector<int64_t>& indices : kept) {
    if (indices.size() != kept.front().size())
      throw Error("kept patches", "the same number of each image", str(kept.front().size(), " and ", indices.size()));
    for (const int64_t patch : indices) {
      if (patch < 0 || patch >= patches)
        throw Error("kept patches", str("indices from 0 to ", patches - 1), str(patch));
    }
  }
}

// The number of prefix tokens that have a position embedding.
int64_t embedded_prefix_of(const VisionTransformerConfig& config) {
  if (config.no_embed_class) return 0;
  return prefix_of(config) - (config.no_embed_reg ? config.reg_tokens : 0);
}

}  // namespace

VisionTransformer::VisionTransformer(const VisionTransformerConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(checked(config)),
      patch_embed_(patch_embed_config(config), params.child("patch_embed")),
      pos_drop_(config.pos_drop_rate, "pos_drop"),
      blocks_("blocks"),
      head_drop_(config.drop_rate, "head_drop"),
      patch_drop_rate_(config.patch_drop_rate) {
  const int64_t dim = config.embed_dim;
  const TokenInit token_init = token_init_of(config);
  if (config.class_token) cls_token_ = params.get("cls_token", {1, 1, dim}, token_init.tokens);
  if (config.dist_token) dist_token_ = params.get("dist_token", {1, 1, dim}, token_init.tokens);
  if (config.reg_tokens > 0) reg_token_ = params.get("reg_token", {1, config.reg_tokens, dim}, token_init.tokens);
  if (config.pos_embed == PositionEmbedding::learned) {
    const std::array<int64_t, 2> grid = own_grid(config);
    const int64_t patches = grid[0] * grid[1];
    pos_embed_ = params.get("pos_embed", {1, embedded_prefix_of(config) + patches, dim}, token_init.positions);
  }
  if (config.use_shared_rel_pos_bias) {
    rel_pos_bias_.emplace(nn::RelativePositionBiasConfig{own_grid(config), config.num_heads, config.rel_pos_interp},
                          params.child("rel_pos_bias"));
  }
  if (config.use_rot_pos_emb) rope_.emplace(rotary_config(config), params.child("rope"));
  if (config.pre_norm) norm_pre_.emplace(dim, config.norm_eps, params.child("norm_pre"), config.norm_layer);
  for (int64_t i = 0; i < config.depth; ++i)
    blocks_.emplace_back(block_config(config, i), params.child("blocks").child(i));
  const bool after_pool = config.fc_norm.value_or(config.global_pool == GlobalPool::avg);
  if (config.final_norm && !after_pool) norm_.emplace(dim, config.norm_eps, params.child("norm"), config.norm_layer);
  if (config.global_pool == GlobalPool::map)
    attn_pool_.emplace(attention_pool_config(config), params.child("attn_pool"));
  if (config.final_norm && after_pool)
    fc_norm_.emplace(pooled_width_of(config), config.norm_eps, params.child("fc_norm"), config.norm_layer);
  int64_t width = pooled_width_of(config);
  if (config.head_hidden > 0) {
    pre_logits_.emplace(width, config.head_hidden, true, params.child("pre_logits").child("fc"),
                        nn::init::linear(scheme_of(config), nn::init::Role::mlp, width, config.head_hidden));
    width = config.head_hidden;
  }
  if (config.num_classes > 0) {
    const auto head_init = nn::init::linear(scheme_of(config), nn::init::Role::head, width, config.num_classes);
    const bool bias = config.head_bias.value_or(!config.projection_head);
    head_.emplace(width, config.num_classes, bias, params.child("head"), head_init);
    if (config.dist_token) head_dist_.emplace(width, config.num_classes, true, params.child("head_dist"), head_init);
  }
}

int64_t VisionTransformer::num_prefix_tokens() const { return prefix_of(config_); }

int64_t VisionTransformer::num_head_tokens() const {
  if (config_.global_pool != GlobalPool::token) return 0;
  return config_.dist_token ? 2 : 1;
}

Tensor VisionTransformer::positions_for(std::array<int64_t, 2> grid) const {
  const int64_t prefix = embedded_prefix_of(config_), patches = grid[0] * grid[1];
  if (config_.pos_embed == PositionEmbedding::sinusoidal) {
    return nn::sinusoidal_positions(prefix + patches, config_.embed_dim);
  }
  if (config_.pos_embed == PositionEmbedding::sincos2d) return nn::sincos_positions_2d(grid, config_.embed_dim);
  return nn::resample_positions(pos_embed_, prefix, own_grid(config_), grid, config_.pos_interp);
}

// Adds positions and prepends CLS, distillation and register tokens: [B, N, D] → [B, prefix + N, D].  The prefix is
// concatenated on its own first: it depends only on parameters, so a compiled program has it as a constant.
Tensor VisionTransformer::with_positions(const Tensor& patches, std::array<int64_t, 2> grid) const {
  std::vector<Tensor> prefix;
  for (const Tensor& token : {cls_token_, dist_token_, reg_token_}) {
    if (token.defined()) prefix.push_back(token);
  }
  Tensor tokens = patches;
  if (config_.pos_embed != PositionEmbedding::none) {
    const int64_t embedded = embedded_prefix_of(config_), n = patches.size(1);
    const Tensor positions = positions_for(grid).to(patches.dtype());
    for (int64_t at = 0, i = 0; at < embedded; at += prefix[i++].size(1)) {
      prefix[i] = ops::add(prefix[i], positions.narrow(1, at, prefix[i].size(1)));
    }
    tokens = ops::add(patches, positions.narrow(1, embedded, n));
  }
  if (prefix.empty()) return tokens;
  const Tensor prefix_tokens = ops::cat(prefix, 1);
  return ops::cat({prefix_tokens.expand({patches.size(0), prefix_tokens.size(1), prefix_tokens.size(2)}), tokens}, 1);
}

VisionTransformer::Embedded VisionTransformer::embed(const Tensor& images, const PatchIndices* kept) const {
  const Tensor patches = patch_embed_.forward(images).to(images.dtype());  // the residual stream stays f32
  const std::array<int64_t, 2> grid = patch_embed_.grid_of(images.size(2), images.size(3));
  Embedded result{pos_drop_.forward(with_positions(patches, grid)), grid, {}, {}};
  Tensor& x = result.tokens;
  if (rope_) result.rotary = rope_->tables(grid, images.dtype());
  if (rel_pos_bias_ && !training()) result.bias = rel_pos_bias_->forward(grid);
  nn::trace(*this, "embedded", x);
  ops::annotate_tokens(x, {.class_token = config_.class_token, .head_tokens = num_head_tokens()});
  if (kept) {
    keep_patches(result, *kept);
  } else if (patch_drop_rate_ > 0 && training()) {
    keep_patches(result, draw_kept_patches(result));
  }
  nn::trace(*this, "patch_drop", x);
  x = forward_or_pass(norm_pre_, "norm_pre", x);
  return result;
}

nn::AttentionOptions VisionTransformer::Embedded::options_of(int64_t block) const {
  nn::AttentionOptions options{.bias = bias, .grid = grid};
  if (!rotary.empty()) options.rotary = rotary.size() == 1 ? rotary.front() : rotary[static_cast<size_t>(block)];
  return options;
}

// Patch dropout (Li et al. 2023, "Scaling language-image pre-training via masking"): a random subset of the patches,
// the same number in each sample, and in random order as timm.
PatchIndices VisionTransformer::draw_kept_patches(const Embedded& embedded) const {
  const int64_t batch = embedded.tokens.size(0), patches = embedded.tokens.size(1) - num_prefix_tokens();
  const auto count = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(patches) * (1 - patch_drop_rate_)));
  PatchIndices kept = nn::random_orders("patch_drop", batch, patches);
  for (std::vector<int64_t>& order : kept) order.resize(static_cast<size_t>(count));
  return kept;
}

// Keeps the prefix tokens and these patches.  Rotary tables keep the rows of the patches.
void VisionTransformer::keep_patches(Embedded& embedded, const PatchIndices& kept) const {
  check_kept(kept, embedded.tokens.size(0), embedded.tokens.size(1) - num_prefix_tokens());
  for (Tensor& table : embedded.rotary) table = rows_of_patches(table, kept);
  PatchIndices indices(kept.size());
  for (size_t b = 0; b < kept.size(); ++b) {
    for (int64_t i = 0; i < num_prefix_tokens(); ++i) indices[b].push_back(i);
    for (const int64_t patch : kept[b]) indices[b].push_back(num_prefix_tokens() + patch);
  }
  embedded.tokens = ops::gather_tokens(embedded.tokens, indices);
}

Tensor VisionTransformer::forward_features(const Tensor& images, Tensor* shares) const {
  return intermediate(images, {}, shares);
}

int64_t VisionTransformer::block_index(int64_t layer) const {
  const int64_t index = layer < 0 ? layer + config_.depth : layer;
  if (index < 0 || index >= config_.depth) {
    throw Error("layer", str("a block from 0 to ", config_.depth - 1, " (or negative, from the end)"), str(layer));
  }
  return index;
}

Tensor VisionTransformer::run_block(const nn::Block& block, const Tensor& x,
                                    const nn::AttentionOptions& options) const {
  // In training the bias that all blocks share is computed in each, so that gradient checkpointing computes it again
  // with its block and gives the same gradients bit for bit.
  auto forward = [this, &block, options](const Tensor& input) {
    nn::AttentionOptions own = options;
    if (rel_pos_bias_ && training()) own.bias = rel_pos_bias_->forward(own.grid);
    return block.feed_forward(block.attend(input, own));
  };
  return recomputes_blocks() ? nn::checkpointed(forward, x) : forward(x);
}

void VisionTransformer::require_patches_without_bias(const char* where) const {
  if (config_.use_rel_pos_bias || rel_pos_bias_)
    throw Error(where, "a model without a relative position bias, which is for all patches", "one");
}

void VisionTransformer::drop_patches_in_training(double rate) {
  if (rate > 0) require_patches_without_bias("patch dropout");
  patch_drop_rate_ = nn::checked_probability(rate, "patch dropout");
}

void VisionTransformer::merge_tokens(int64_t per_block) {
  if (per_block > 0 && attn_pool_) {
    throw Error("token merging", "a model whose global_pool is not map (attention pooling)", "map");
  }
  if (per_block > 0 && (config_.use_rel_pos_bias || rel_pos_bias_)) {
    throw Error("token merging", "a model without a relative position bias, which merged tokens do not have", "one");
  }
  if (per_block > 0 && rope_) {
    throw Error("token merging", "a model without rotary positions, which merged tokens do not have",
                "use_rot_pos_emb");
  }
  merged_per_block_ = per_block;
}

// Runs blocks 0 to `last`.  The last one computes only the first `num_tokens` tokens (0: all), because nothing reads
// the others.
Tensor VisionTransformer::run_blocks(const Tensor& images, int64_t last, int64_t num_tokens, Tensor* shares) const {
  nn::TokenMerging merging(merged_per_block_, num_prefix_tokens());
  const bool merges = merged_per_block_ > 0 && !training();
  const Embedded embedded = embed(images);
  Tensor x = embedded.tokens;
  for (int64_t i = 0; i <= last; ++i) {
    nn::AttentionOptions options = embedded.options_of(i);
    if (i == last) options.num_queries = num_tokens;
    x = merges ? merging.forward(blocks_[i], x, options.num_queries) : run_block(blocks_[i], x, options);
  }
  if (shares) *shares = merging.shares();
  return nn::traced(blocks_, x);
}

// The output of a layer that some models lack.  Without it the trace has its input, as of timm's Identity.
Tensor VisionTransformer::forward_or_pass(const std::optional<nn::LayerNorm>& layer, const char* name,
                                          const Tensor& x) const {
  if (layer) return layer->forward(x);
  nn::trace(*this, name, x);
  return x;
}

Tensor VisionTransformer::intermediate(const Tensor& images, const IntermediateOptions& options, Tensor* shares) const {
  const int64_t last = config_.depth == 0 ? -1 : block_index(options.layer);
  const Tensor x = run_blocks(images, last, nn::tracing() ? 0 : options.num_tokens, shares);
  return options.final_norm ? forward_or_pass(norm_, "norm", x) : x;
}

std::vector<Tensor> VisionTransformer::intermediates(const Tensor& images, const std::vector<int64_t>& layers,
                                                     bool final_norm) const {
  std::vector<int64_t> wanted;
  for (const int64_t layer : layers) wanted.push_back(block_index(layer));
  if (wanted.empty()) throw Error("layers", "at least one block", "none");
  std::vector<Tensor> results(wanted.size());
  const Embedded embedded = embed(images);
  Tensor x = embedded.tokens;
  for (int64_t i = 0; i <= *std::max_element(wanted.begin(), wanted.end()); ++i) {
    x = run_block(blocks_[i], x, embedded.options_of(i));
    for (size_t at = 0; at < wanted.size(); ++at) {
      if (wanted[at] == i) results[at] = final_norm ? forward_or_pass(norm_, "norm", x) : x;
    }
  }
  return results;
}

std::vector<Tensor> VisionTransformer::ablate_heads(const Tensor& images, int64_t layer) const {
  const int64_t index = block_index(layer);
  const Embedded embedded = embed(images);
  Tensor before = embedded.tokens;
  for (int64_t i = 0; i < index; ++i) before = run_block(blocks_[i], before, embedded.options_of(i));
  std::vector<Tensor> results;
  for (int64_t head = 0; head < config_.num_heads; ++head) {
    nn::AttentionOptions options = embedded.options_of(index);
    options.ablated_head = head;
    Tensor x = run_block(blocks_[index], before, options);
    for (int64_t i = index + 1; i < config_.depth; ++i) x = run_block(blocks_[i], x, embedded.options_of(i));
    results.push_back(forward_or_pass(norm_, "norm", x));
  }
  return results;
}

Tensor VisionTransformer::encode(const Tensor& images, const PatchIndices& kept) const {
  require_patches_without_bias("encode");
  const Embedded embedded = embed(images, &kept);
  Tensor x = embedded.tokens;
  for (int64_t i = 0; i < config_.depth; ++i) x = run_block(blocks_[i], x, embedded.options_of(i));
  return forward_or_pass(norm_, "norm", nn::traced(blocks_, x));
}

// The tokens that the heads read.  Without patch pooling these are few, so the last block computes little more than
// keys and values.
Tensor VisionTransformer::head_input(const Tensor& images, Tensor* shares) const {
  return intermediate(images, {.num_tokens = num_head_tokens()}, shares);
}

// The mean over all patches: merged tokens are weighted by their number of patches.
Tensor VisionTransformer::patch_mean(const Tensor& tokens, const Tensor& shares) const {
  const int64_t prefix = num_prefix_tokens(), count = tokens.size(1) - prefix;
  const Tensor patches = tokens.narrow(1, prefix, count);
  if (!shares.defined()) return ops::mean(patches, 1);
  const Tensor weighted = ops::mul(patches, shares.narrow(1, prefix, count).view({tokens.size(0), count, 1}));
  return ops::mul(ops::mean(weighted, 1), Tensor::full({1}, static_cast<double>(count), tokens.dtype()));
}

Tensor VisionTransformer::pool(const Tensor& tokens, const Tensor& shares) const {
  if (!config_.dist_token) return head_features(tokens, shares);
  return Heads{ops::contiguous(tokens.select(1, 0)), ops::contiguous(tokens.select(1, 1))}.average();
}

// What the head of the classes reads.
Tensor VisionTransformer::head_features(const Tensor& tokens, const Tensor& shares) const {
  Tensor x;
  switch (config_.global_pool) {
    case GlobalPool::token:
      x = tokens.select(1, 0);
      break;
    case GlobalPool::avg:
      x = patch_mean(tokens, shares);
      break;
    case GlobalPool::token_avg:
      x = ops::cat({tokens.select(1, 0), patch_mean(tokens, shares)}, 1);
      break;
    case GlobalPool::map: {
      const int64_t first = config_.pool_include_prefix ? 0 : num_prefix_tokens();
      x = attn_pool_->forward(ops::contiguous(tokens.narrow(1, first, tokens.size(1) - first)));
      break;
    }
    case GlobalPool::none:
      x = tokens;
      break;
  }
  x = ops::contiguous(x);
  nn::trace(*this, "pooled", x);
  return forward_or_pass(fc_norm_, "fc_norm", x);
}

Tensor VisionTransformer::Heads::average() const {
  if (!distilled.defined()) return classes;
  return ops::mul(ops::add(classes, distilled), Tensor::full({1}, 0.5, classes.dtype()));
}

VisionTransformer::Heads VisionTransformer::heads_of(const Tensor& tokens, const Tensor& shares) const {
  auto prepared = [&](const Tensor& features) {
    return head_drop_.forward(pre_logits_ ? ops::activation(pre_logits_->forward(features), head_activation(config_))
                                          : features);
  };
  const Tensor classes = prepared(head_features(tokens, shares));
  if (!head_dist_) return {head_->forward(classes), {}};
  const Tensor distilled = prepared(ops::contiguous(tokens.select(1, 1)));
  return {head_->forward(classes), head_dist_->forward(distilled)};
}

VisionTransformer::Heads VisionTransformer::forward_heads(const Tensor& images) const {
  if (!head_) throw Error("forward_heads", "a model with a head", "num_classes 0");
  Tensor shares;
  const Tensor tokens = head_input(images, &shares);
  return heads_of(tokens, shares);
}

Tensor VisionTransformer::forward_head(const Tensor& tokens, const Tensor& shares) const {
  if (!head_) {
    const Tensor pooled = pool(tokens, shares);
    const Tensor out = pre_logits_ ? ops::activation(pre_logits_->forward(pooled), head_activation(config_)) : pooled;
    for (const char* name : {"head_drop", "head"}) nn::trace(*this, name, out);
    return out;
  }
  const Tensor logits = heads_of(tokens, shares).average();
  nn::trace(*this, "logits", logits);
  return logits;
}

Tensor VisionTransformer::forward(const Tensor& images) const {
  Tensor shares;
  const Tensor tokens = head_input(images, &shares);
  return forward_head(tokens, shares);
}

std::vector<Tensor> VisionTransformer::attention_maps(const Tensor& images, std::optional<int64_t> only) const {
  const int64_t first = only ? block_index(*only) : 0, last = only ? first : config_.depth - 1;
  std::vector<Tensor> maps;
  const Embedded embedded = embed(images);
  Tensor x = embedded.tokens;
  for (int64_t i = 0; i <= last; ++i) {
    nn::AttentionOutput attention;
    nn::AttentionOptions options = embedded.options_of(i);
    options.need_weights = i >= first;
    x = blocks_[i].feed_forward(blocks_[i].attend(x, options, &attention));
    if (i >= first) maps.push_back(attention.weights);
  }
  return maps;
}

void VisionTransformer::visit(nn::Visitor& visitor) {
  visitor.parameter("cls_token", cls_token_);
  visitor.parameter("dist_token", dist_token_);
  visitor.parameter("reg_token", reg_token_);
  visitor.parameter("pos_embed", pos_embed_);
  visitor.child("patch_embed", static_cast<nn::Module&>(patch_embed_));
  visitor.child("pos_drop", static_cast<nn::Module&>(pos_drop_));
  if (rel_pos_bias_) visitor.child("rel_pos_bias", rel_pos_bias_);
  if (rope_) visitor.child("rope", rope_);
  visitor.child("norm_pre", norm_pre_);
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
  visitor.child("norm", norm_);
  if (attn_pool_) visitor.child("attn_pool", attn_pool_);
  visitor.child("fc_norm", fc_norm_);
  if (pre_logits_) visitor.child("pre_logits.fc", pre_logits_);
  visitor.child("head_drop", static_cast<nn::Module&>(head_drop_));
  visitor.child("head", head_);
  if (head_dist_) visitor.child("head_dist", head_dist_);
}

}  // namespace vitrail::models
