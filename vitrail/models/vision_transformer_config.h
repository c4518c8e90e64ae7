// SPDX-License-Identifier: Apache-2.0
#pragma once
// The hyperparameters of a Vision Transformer.  Fields have the names of config.json's model_args, most of them timm's.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/positional_encoding.h"
#include "vitrail/nn/relative_position_bias.h"
#include "vitrail/nn/rotary_embedding.h"

namespace vitrail::models {

enum class GlobalPool { none, token, avg, token_avg, map };  // "", "token", "avg", "token_avg", "map" (attention)
enum class PositionEmbedding { none, learned, sinusoidal, sincos2d };  // "none", "learn", "sinusoidal", "sincos2d"
enum class PatchNorm { none, pre, post, both };  // LayerNorm before or after the patch projection (vit-pytorch)
// "mlp"; SwiGLU with DINOv2's hidden width ("swiglu"), or with mlp_ratio for both halves of fc1 ("swiglu_packed", as
// the argument of timm's SwiGLUPacked).
enum class MlpLayer { mlp, swiglu, swiglu_packed };
enum class AttentionType { plain, eva };  // "" or "rope"; "eva": biases of q and v, none of k
enum class GridIndexing { ij, xy };       // the order of the axes in rotary angles: y, x or x, y

struct VisionTransformerConfig {
  std::array<int64_t, 2> img_size{224, 224};  // height, width
  std::array<int64_t, 2> patch_size{16, 16};
  int64_t in_chans = 3;
  int64_t num_classes = 1000;  // 0: no head
  GlobalPool global_pool = GlobalPool::token;
  bool pool_include_prefix = false;              // map: pool the prefix tokens too, not only patches
  std::optional<int64_t> attn_pool_num_heads{};  // map; none: num_heads
  std::optional<double> attn_pool_mlp_ratio{};   // map; none: the width of the blocks' MLP; 0: neither norm nor MLP
  bool attn_pool_q_proj = true;                  // map; false: the latent is the query itself
  bool attn_pool_qkv_bias = true;                // map
  int64_t attn_pool_dim = 0;                     // map; width of the pooled features; 0: embed_dim
  bool attn_pool_input_norms = false;            // map; LayerNorm of the latent and of the tokens (CoCa)
  int64_t embed_dim = 768;
  int64_t depth = 12;
  int64_t num_heads = 12;
  std::optional<int64_t> head_dim{};  // none: embed_dim / num_heads
  double mlp_ratio = 4.0;
  std::optional<int64_t> mlp_hidden{};  // none: int(embed_dim · mlp_ratio)
  bool qkv_bias = true;
  std::optional<double> qk_scale{};  // none: head_dim^-0.5
  bool qk_norm = false;
  AttentionType attn_type = AttentionType::plain;
  bool proj_bias = true;  // the attention's output projection and the MLP have biases
  nn::NormLayer norm_layer = nn::NormLayer::layer_norm;
  bool scale_attn_inner = false;  // LayerNorm on the merged heads
  bool norm_first = true;
  bool use_post_norm = false;  // x + norm(f(x)) in the blocks
  double norm_eps = 1e-6;
  bool pre_norm = false;                // timm: LayerNorm before the blocks, and no bias in the patch embedding
  std::optional<bool> patch_bias{};     // bias of the patch embedding; unset: !pre_norm
  bool final_norm = true;               // a LayerNorm before pooling ("norm") or after it ("fc_norm")
  std::optional<bool> fc_norm{};        // LayerNorm after pooling; unset: if global_pool is avg (timm)
  std::optional<double> init_values{};  // initial LayerScale; unset: no LayerScale
  bool class_token = true;
  int64_t reg_tokens = 0;
  bool dist_token = false;
  PositionEmbedding pos_embed = PositionEmbedding::learned;
  nn::PositionResampling pos_interp{};
  bool no_embed_class = false;           // positions for patches only
  bool no_embed_reg = false;             // positions for CLS and patches, not for registers (DINOv2)
  bool use_rel_pos_bias = false;         // a relative position bias in every block
  bool use_shared_rel_pos_bias = false;  // one for all blocks
  nn::RelativePositionResampling rel_pos_interp = nn::RelativePositionResampling::geometric;
  bool use_rot_pos_emb = false;  // rotates q and k of the patches by the position: the fields rope_* and ref_feat_shape
  nn::RotaryType rope_type = nn::RotaryType::cat;
  double rope_temperature = 10000;
  double rope_grid_offset = 0;
  GridIndexing rope_grid_indexing = GridIndexing::ij;
  bool rope_rotate_half = false;                           // pairs (i, i + d/2), else (2i, 2i + 1)
  std::optional<std::array<int64_t, 2>> ref_feat_shape{};  // the grid of the training images
  std::vector<double> rope_periods{};                      // head_dim / 4; empty: from rope_temperature
  bool dynamic_img_size = false;
  bool allow_remainder = false;
  PatchNorm patch_norm = PatchNorm::none;
  kernels::Activation act_layer = kernels::Activation::gelu;
  MlpLayer mlp_layer = MlpLayer::mlp;
  bool swiglu_mlp = false;      // timm's Eva: SwiGLU with int(embed_dim · mlp_ratio) features after the gate
  int64_t swiglu_align_to = 0;  // rounds them up to a multiple
  bool scale_mlp = false;       // LayerNorm on the hidden features of the MLP
  int64_t head_hidden = 0;      // > 0: Linear + head_act before the head ("pre_logits.fc")
  std::string head_act = "tanh";
  bool projection_head = false;     // the head is a projection into the space of text embeddings (CLIP)
  std::optional<bool> head_bias{};  // unset: !projection_head
  double drop_rate = 0, pos_drop_rate = 0, patch_drop_rate = 0, attn_drop_rate = 0, proj_drop_rate = 0;
  double drop_path_rate = 0;
  // timm's "", "jax", "jax_nlhb", "moco"; "xavier" (jeonsworld/ViT-pytorch); "torch" (PyTorch's defaults).
  std::string weight_init = "";
};

}  // namespace vitrail::models
