// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Vision Transformer (Dosovitskiy et al. 2021, "An image is worth 16x16 words") in all variants of
// VisionTransformerConfig.
#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/nn/attention_pool.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/nn/rotary_embedding.h"
#include "vitrail/nn/token_merging.h"

namespace vitrail::models {

// The indices of chosen patches of each sample of a batch, row-major in the grid: [B][K].
using PatchIndices = std::vector<std::vector<int64_t>>;

// Images [B, C, H, W] → logits [B, num_classes]; with global_pool "" of each token, [B, N, num_classes].  Parameter
// names are timm's: cls_token, dist_token, reg_token, pos_embed, patch_embed.*, rope.freqs, norm_pre.*, blocks.N.*,
// norm.*, attn_pool.*, fc_norm.*, pre_logits.fc.*, head.*, head_dist.*. The order of tokens is CLS, distillation,
// registers, patches. Traced besides the modules: embedded (tokens with positions), pooled, logits; and patch_drop,
// norm_pre, norm, fc_norm and head also where the model has none.
class VisionTransformer : public nn::Module {
 public:
  VisionTransformer(const VisionTransformerConfig& config, const ParamSource& params);

  Tensor forward(const Tensor& images) const;  // logits; without a head, the pooled features
  // All tokens after the final norm [B, prefix + N, D].  With token merging (below) there are fewer tokens, and
  // `shares`, if not null, receives the fraction of the image's patches that each token represents [B, tokens]; else it
  // becomes undefined.
  Tensor forward_features(const Tensor& images, Tensor* shares = nullptr) const;
  // Logits from forward_features' results.
  Tensor forward_head(const Tensor& tokens, const Tensor& shares = {}) const;

  // The logits of each head, for the training of distilled models (Touvron et al. 2021, DeiT, section 4).  `distilled`
  // is undefined for a model with one head.  Throws Error for a model without a head.
  struct Heads {
    Tensor classes, distilled;  // [B, num_classes]
    Tensor average() const;     // the model's logits in eval mode
  };
  Heads forward_heads(const Tensor& images) const;
  // The input of the head [B, D] ([B, 2D] for token_avg, [B, attn_pool_dim] for map if that is set, and all tokens
  // [B, N, D] for "").  Averages weight each token by its share.  With a distillation token, whose head is another: the
  // mean of both heads' inputs, as of timm's forward_head(pre_logits=True).
  Tensor pool(const Tensor& tokens, const Tensor& shares = {}) const;

  // The tokens after a block [B, tokens, D]; shares as in forward_features.
  struct IntermediateOptions {
    int64_t layer = -1;      // index of the block; negative indices count from the end
    bool final_norm = true;  // apply the final norm
    int64_t num_tokens = 0;  // compute only the first tokens, which must be prefix tokens; 0: all tokens
  };
  Tensor intermediate(const Tensor& images, const IntermediateOptions& options, Tensor* shares = nullptr) const;

  // The tokens after each of `layers` in one pass, in their order, [B, tokens, D] each; as timm's
  // forward_intermediates.
  std::vector<Tensor> intermediates(const Tensor& images, const std::vector<int64_t>& layers, bool final_norm) const;

  // The encoder on chosen patches, as in masked autoencoders (He et al. 2022, section 3): [B, prefix + K, D] after the
  // final norm, the patches in the order of `kept`.  Each patch has the position of its place in the image.  Patch
  // dropout and token merging do not apply.  Throws Error unless `kept` has the same number of patches for each image,
  // all inside the grid, and for a model with a relative position bias, which is for all patches.
  Tensor encode(const Tensor& images, const PatchIndices& kept) const;

  // The attention weights of every block, or of block `only` (negative indices count from the end), [B, H, N, N] each.
  std::vector<Tensor> attention_maps(const Tensor& images, std::optional<int64_t> only = std::nullopt) const;

  // The tokens after the final norm [B, prefix + N, D] of a model without one head, for each head of a block (negative
  // indices count from the end): mean ablation, nn::AttentionOptions::ablated_head.  Token merging does not apply.
  std::vector<Tensor> ablate_heads(const Tensor& images, int64_t layer) const;

  // Gradient checkpointing (autograd/checkpoint.h): training stores only the input of each block, and the backward pass
  // computes the block again.  The gradients are the same; it needs less memory and more time.
  void checkpoint_blocks(bool on) { checkpoint_blocks_ = on; }

  // Sets the rate of patch dropout in training, in [0, 1).  The initial rate is the configuration's, which this does
  // not change.
  // Throws Error for another rate, and for a model with a relative position bias, which is for all patches.
  void drop_patches_in_training(double rate);

  // Token merging in eval mode (nn/token_merging.h): every block merges `per_block` tokens into others, which saves
  // time and costs accuracy; 0: none.  Throws Error for a model with attention pooling, a relative position bias or
  // rotary positions, which do not know the patches that a token represents.
  void merge_tokens(int64_t per_block);
  int64_t merged_per_block() const { return merged_per_block_; }

  const VisionTransformerConfig& config() const { return config_; }
  int64_t num_prefix_tokens() const;
  // The number of leading tokens that the heads read: the class token and, if the model has one, the distillation
  // token. 0 if the head reads pooled patch tokens.
  int64_t num_head_tokens() const;
  std::array<int64_t, 2> grid_of(int64_t height, int64_t width) const { return patch_embed_.grid_of(height, width); }
  std::string type() const override { return "VisionTransformer"; }
  void visit(nn::Visitor& visitor) override;

 private:
  // The input of the blocks, the grid of its patches, the tables that rotate their queries and keys (none, one for all
  // blocks, or one each), and the bias of the scores that all blocks share, if there is one.
  struct Embedded {
    Tensor tokens;
    std::array<int64_t, 2> grid{};
    std::vector<Tensor> rotary;
    Tensor bias;
    nn::AttentionOptions options_of(int64_t block) const;
  };
  Embedded embed(const Tensor& images, const PatchIndices* kept = nullptr) const;  // null: all patches
  Tensor run_blocks(const Tensor& images, int64_t last, int64_t num_tokens, Tensor* shares) const;
  Tensor forward_or_pass(const std::optional<nn::LayerNorm>& layer, const char* name, const Tensor& x) const;
  Tensor head_input(const Tensor& images, Tensor* shares) const;
  int64_t block_index(int64_t layer) const;
  Tensor with_positions(const Tensor& patches, std::array<int64_t, 2> grid) const;
  Tensor positions_for(std::array<int64_t, 2> grid) const;
  PatchIndices draw_kept_patches(const Embedded& embedded) const;
  void keep_patches(Embedded& embedded, const PatchIndices& kept) const;
  void require_patches_without_bias(const char* where) const;
  Tensor run_block(const nn::Block& block, const Tensor& x, const nn::AttentionOptions& options) const;
  bool recomputes_blocks() const { return checkpoint_blocks_ && training(); }
  Tensor head_features(const Tensor& tokens, const Tensor& shares) const;
  Tensor patch_mean(const Tensor& tokens, const Tensor& shares) const;
  Heads heads_of(const Tensor& tokens, const Tensor& shares) const;

  VisionTransformerConfig config_;
  nn::PatchEmbed patch_embed_;
  Tensor cls_token_, dist_token_, reg_token_, pos_embed_;
  nn::Dropout pos_drop_;
  std::optional<nn::RelativePositionBias> rel_pos_bias_;
  std::optional<nn::RotaryEmbedding> rope_;
  std::optional<nn::LayerNorm> norm_pre_;
  nn::ModuleList<nn::Block> blocks_;
  std::optional<nn::LayerNorm> norm_;
  std::optional<nn::AttentionPoolLatent> attn_pool_;
  std::optional<nn::LayerNorm> fc_norm_;
  nn::Dropout head_drop_;
  std::optional<nn::Linear> pre_logits_, head_, head_dist_;
  bool checkpoint_blocks_ = false;
  double patch_drop_rate_;
  int64_t merged_per_block_ = 0;
};

}  // namespace vitrail::models
