// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/tensor_advice_internal.h"

#include <gtest/gtest.h>

namespace vitrail::weights {
namespace {

using Lines = std::vector<std::string>;
using NamedShapes = std::vector<NamedShape>;

TEST(MissingTensors, AreListedWithTheNearestNameOfTheirShape) {
  const NamedShapes extra{{"head.1.weight", {5, 4}}, {"head.1.bias", {5}}, {"stem.weight", {5, 4}}};
  EXPECT_EQ(describe_missing({{"head.weight", {5, 4}}, {"head.bias", {6}}, {"pos_embed", {1, 2}}}, extra),
            (Lines{"head.weight [5, 4]; did you mean head.1.weight?", "head.bias [6]", "pos_embed [1, 2]"}));
}

TEST(MissingTensors, AreComparedWithFewNames) {
  const NamedShape near{"norm.weights", {8}};
  EXPECT_EQ(describe_missing(NamedShapes(40, {"norm.weight", {8}}), {near}).back(), "norm.weight [8]");
  EXPECT_EQ(describe_missing({{"norm.weight", {8}}}, {{std::string(100'000, 'x'), {8}}}), Lines{"norm.weight [8]"});
}

// A model of two blocks.
const std::set<std::string> kPlain{"patch_embed.proj.weight", "pos_embed",   "cls_token",  "blocks.0.norm1.weight",
                                   "blocks.1.norm1.weight",   "norm.weight", "head.weight"};

TEST(FieldAdvice, TheFieldIsNamedThatAddsTheParameters) {
  const std::pair<NamedShapes, const char*> cases[] = {
      {{{"blocks.0.ls1.gamma", {8}}, {"blocks.0.ls2.gamma", {8}}, {"blocks.1.ls1.gamma", {8}}},
       "blocks.0.ls1.gamma: \"init_values\": 1e-5"},
      {{{"attn_pool.latent", {1, 1, 8}}, {"attn_pool.q.weight", {8, 8}}}, "attn_pool.latent: \"global_pool\": \"map\""},
      {{{"fc_norm.weight", {8}}}, "fc_norm.weight: \"global_pool\": \"avg\""},
      {{{"dist_token", {1, 1, 8}}, {"head_dist.weight", {5, 8}}}, "dist_token: \"dist_token\": true"}};
  for (const auto& [extra, line] : cases) EXPECT_EQ(advise_fields(extra, kPlain), Lines{line});
}

TEST(FieldAdvice, ThereIsNoneForOtherTensorsAndOtherModels) {
  EXPECT_EQ(advise_fields({{"masked_embed", {8}}, {"xls1.gamma", {8}}}, kPlain), Lines{});
  EXPECT_EQ(advise_fields({{"norm.bias", {8}}, {"head.weight", {5, 8}}}, kPlain), Lines{}) << "the model has them";
  EXPECT_EQ(advise_fields({{"blocks.0.ls1.gamma", {8}}}, {"mask_decoder.norm.weight"}), Lines{});
}

TEST(MergingAdvice, IsForEachFormOfWeightsInParts) {
  const std::pair<Lines, const char*> cases[] = {
      {{"head.weight_mask", "head.weight_orig"},
       "head.weight_mask: pruned weights; before saving, call torch.nn.utils.prune.remove()"},
      {{"head.weight_g", "head.weight_v"},
       "head.weight_g: weight-normalised weights; before saving, call torch.nn.utils.remove_weight_norm()"},
      {{"head.weight_orig", "head.weight_u", "head.weight_v"},
       "head.weight_orig: spectrally normalised weights; before saving, call torch.nn.utils.remove_spectral_norm()"},
      {{"head.parametrizations.weight.original0", "head.parametrizations.weight.original1"},
       "head.parametrizations.weight.original0: parametrised weights; before saving, call "
       "torch.nn.utils.parametrize.remove_parametrizations()"},
      {{"head.base_layer.weight", "head.lora_A.default.weight"},
       "head.base_layer.weight: LoRA weights; before saving, call PEFT's merge_and_unload()"},
      {{"head.original_module.weight", "head.modules_to_save.default.weight"},
       "head.original_module.weight: LoRA weights; before saving, call PEFT's merge_and_unload()"},
      {{"blocks.0._flat_param"},
       "blocks.0._flat_param: FSDP's flat weights; save the state dict with StateDictType.FULL_STATE_DICT"},
      {{"head.scale", "head.zero_point"},
       "head.scale: PyTorch's quantised weights; save the model before its quantisation"}};
  for (const auto& [names, advice] : cases) EXPECT_EQ(advise_merging(names, true), Lines{advice});
  for (const char* name : {"head.weight_mask", "head.weight_v", "head.weight_orig"})
    EXPECT_EQ(advise_merging({name}, true), Lines{}) << "a part alone is a name like others";
}

TEST(MergingAdvice, WhatNoParameterNeedsIsNoneButUpdates) {
  EXPECT_EQ(advise_merging({"last.weight_g", "last.weight_v"}, false), Lines{});
  EXPECT_EQ(advise_merging({"qkv.lora_A", "qkv.lora_B"}, false).size(), 1u) << "loralib's, beside qkv.weight";
}

}  // namespace
}  // namespace vitrail::weights
