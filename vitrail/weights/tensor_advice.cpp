// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/tensor_advice_internal.h"

#include <algorithm>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"

namespace vitrail::weights {
namespace {

// Limits of the time that hostile files take.
constexpr size_t kMaxSearched = 20, kMaxCompared = 1000, kMaxShown = 200;

// The last words of a parameter's name, with the field of model_args that adds it.
struct FieldOfParameter {
  std::string_view words, field;
};
constexpr FieldOfParameter kFields[] = {{".ls1.", "\"init_values\": 1e-5"},
                                        {".attn.q_norm.", "\"qk_norm\": true"},
                                        {".attn.norm.", "\"scale_attn_inner\": true"},
                                        {".attn.q_bias", "\"attn_type\": \"eva\""},
                                        {".attn.qkv.bias", "\"qkv_bias\": true"},
                                        {".attn.relative_position_bias_table", "\"use_rel_pos_bias\": true"},
                                        {".mlp.norm.", "\"scale_mlp\": true"},
                                        {".cls_token", "\"class_token\": true"},
                                        {".dist_token", "\"dist_token\": true"},
                                        {".reg_token", "\"reg_tokens\": the token's second extent"},
                                        {".pos_embed", "\"pos_embed\": \"learn\""},
                                        {".norm_pre.", "\"pre_norm\": true"},
                                        {".fc_norm.", "\"global_pool\": \"avg\""},
                                        {".attn_pool.", "\"global_pool\": \"map\""},
                                        {".pre_logits.fc.", "\"head_hidden\": the weight's first extent"},
                                        {".head.weight", "\"num_classes\": the weight's first extent"}};

// How PyTorch and PEFT store a weight in another form than its own tensor: a tensor "X" + end is beside one "X" +
// other. Without `other`, `end` is anywhere in the name.
struct PartsOfWeights {
  std::string_view end, other, advice;
};
constexpr std::string_view kLora = "LoRA weights; before saving, call PEFT's merge_and_unload()";
constexpr std::string_view kSpectral =
    "spectrally normalised weights; before saving, call torch.nn.utils.remove_spectral_norm()";
constexpr PartsOfWeights kParts[] = {
    {".parametrizations.", "",
     "parametrised weights; before saving, call torch.nn.utils.parametrize.remove_parametrizations()"},
    {"lora_", "", kLora},
    {".base_layer.", "", kLora},
    {".original_module.", "", kLora},
    {".modules_to_save.", "", kLora},
    {"_flat_param", "", "FSDP's flat weights; save the state dict with StateDictType.FULL_STATE_DICT"},
    {".scale", ".zero_point", "PyTorch's quantised weights; save the model before its quantisation"},
    {"_orig", "_mask", "pruned weights; before saving, call torch.nn.utils.prune.remove()"},
    {"_orig", "_u", kSpectral},
    {"_v", "_u", kSpectral},
    {"_g", "_v", "weight-normalised weights; before saving, call torch.nn.utils.remove_weight_norm()"}};

using NameSet = std::set<std::string>;

bool is_pair_of(const std::string& name, const NameSet& names, std::string_view end, std::string_view other) {
  return name.ends_with(end) && names.contains(std::string(name, 0, name.size() - end.size()) + std::string(other));
}

// Empty for a weight itself.
std::string_view advice_for_part(const std::string& name, const NameSet& names) {
  const auto fits = [&](const PartsOfWeights& row) {
    if (row.other.empty()) return name.find(row.end) != name.npos;
    return is_pair_of(name, names, row.end, row.other) || is_pair_of(name, names, row.other, row.end);
  };
  const auto row = std::ranges::find_if(kParts, fits);
  return row == std::end(kParts) ? "" : row->advice;
}

}  // namespace

std::vector<std::string> describe_missing(const std::vector<NamedShape>& missing,
                                          const std::vector<NamedShape>& extra) {
  std::vector<std::string> lines;
  for (const NamedShape& tensor : missing) {
    std::vector<std::string> candidates;
    for (const NamedShape& other : extra) {
      if (other.shape == tensor.shape && other.name.size() <= kMaxShown && candidates.size() < kMaxCompared)
        candidates.push_back(other.name);
    }
    lines.push_back(
        str(tensor.name, " ", tensor.shape, lines.size() < kMaxSearched ? did_you_mean(tensor.name, candidates) : ""));
  }
  return lines;
}

std::vector<std::string> advise_fields(const std::vector<NamedShape>& extra, const NameSet& expected) {
  if (!expected.contains("patch_embed.proj.weight")) return {};
  std::vector<std::string> lines;
  for (const FieldOfParameter& row : kFields) {
    const auto has_words = [&](const std::string& name) { return ("." + name).find(row.words) != name.npos; };
    const auto tensor = std::ranges::find_if(extra, has_words, &NamedShape::name);
    if (tensor == extra.end() || std::ranges::any_of(expected, has_words)) continue;
    lines.push_back(str(tensor->name.substr(0, kMaxShown), ": ", row.field));
  }
  return lines;
}

std::string advise_gate(const NamedShape& fc2, const Shape& expected, const Shape& fc1) {
  const bool matrices = fc1.rank() == 2 && fc2.shape.rank() == 2 && expected.rank() == 2;
  if (!matrices || fc1[0] != 2 * fc2.shape[1] || expected[1] != fc1[0]) return "";
  return str(fc2.name.substr(0, kMaxShown), ": \"mlp_layer\": \"swiglu_packed\"");
}

std::vector<std::string> advise_merging(const std::vector<std::string>& names, bool is_any_missing) {
  const NameSet present(names.begin(), names.end());
  std::vector<std::string> lines;
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    const std::string_view advice = advice_for_part(name, present);
    if (advice.empty() || (!is_any_missing && advice != kLora) || !seen.insert(advice).second) continue;
    lines.push_back(str(name.substr(0, kMaxShown), ": ", advice));
  }
  return lines;
}

}  // namespace vitrail::weights
