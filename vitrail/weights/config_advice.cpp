// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/config_advice_internal.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

constexpr std::string_view kBlocks = "blocks.";
constexpr size_t kMaxBlockDigits = 4;

// A parameter, or all of a module ("norm."), with the field that adds it to the model.  axis: the axis whose size is
// the field's value; -1: `field` has the value.
struct FieldOfParameter {
  std::string_view name;
  const char* field;
  int axis = -1;
};

// "#" is the index of a block.  Of parameters with one field, the first in the file is named.
constexpr FieldOfParameter kFields[] = {
    {"blocks.#.ls1.", "\"init_values\": 1e-5"},
    {"blocks.#.ls2.", "\"init_values\": 1e-5"},
    {"blocks.#.attn.q_norm.", "\"qk_norm\": true"},
    {"blocks.#.attn.k_norm.", "\"qk_norm\": true"},
    {"blocks.#.attn.norm.", "\"scale_attn_inner\": true"},
    {"blocks.#.attn.q_bias", "\"attn_type\": \"eva\""},
    {"blocks.#.attn.v_bias", "\"attn_type\": \"eva\""},
    {"blocks.#.attn.qkv.bias", "\"qkv_bias\": true"},
    {"blocks.#.attn.proj.bias", "\"proj_bias\": true"},
    {"blocks.#.attn.relative_position_bias_table", "\"use_rel_pos_bias\": true"},
    {"blocks.#.mlp.fc1.bias", "\"proj_bias\": true"},
    {"blocks.#.mlp.fc2.bias", "\"proj_bias\": true"},
    {"blocks.#.mlp.norm.", "\"scale_mlp\": true"},
    {"rel_pos_bias.relative_position_bias_table", "\"use_shared_rel_pos_bias\": true"},
    {"patch_embed.proj.bias", "\"patch_bias\": true"},
    {"cls_token", "\"class_token\": true"},
    {"dist_token", "\"dist_token\": true"},
    {"head_dist.", "\"dist_token\": true"},
    {"reg_token", "\"reg_tokens\": ", 1},
    {"pos_embed", "\"pos_embed\": \"learn\""},
    {"norm_pre.", "\"pre_norm\": true"},
    {"attn_pool.", "\"global_pool\": \"map\""},
    {"pre_logits.fc.weight", "\"head_hidden\": ", 0},
    {"head.weight", "\"num_classes\": ", 0},
};

// Parameters that no field alone adds.
constexpr std::string_view kOtherParameters[] = {"blocks.#.norm1.",
                                                 "blocks.#.norm2.",
                                                 "blocks.#.attn.qkv.weight",
                                                 "blocks.#.attn.proj.weight",
                                                 "blocks.#.mlp.fc1.weight",
                                                 "blocks.#.mlp.fc2.weight",
                                                 "patch_embed.proj.weight",
                                                 "norm.",
                                                 "fc_norm.",
                                                 "head.bias",
                                                 "pre_logits.fc.bias"};

// The index of a block in "blocks.12.norm1.weight".
std::optional<int64_t> block_of(const std::string& name) {
  if (!name.starts_with(kBlocks)) return std::nullopt;
  const size_t end = name.find('.', kBlocks.size());
  if (end == std::string::npos || end == kBlocks.size() || end > kBlocks.size() + kMaxBlockDigits) return std::nullopt;
  const std::string digits = name.substr(kBlocks.size(), end - kBlocks.size());
  const bool number = std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; });
  return number ? std::optional<int64_t>(std::stoll(digits)) : std::nullopt;
}

// The name with "#" for the index of a block.
std::string pattern_of(const std::string& name) {
  if (!block_of(name)) return name;
  return std::string(kBlocks) + "#" + name.substr(name.find('.', kBlocks.size()));
}

// begin: a name, or a module's with a "." at its end.
bool is_named(const std::string& name, std::string_view begin) {
  const std::string pattern = pattern_of(name);
  return begin.ends_with('.') ? pattern.starts_with(begin) : pattern == begin;
}

const NamedShape* find_named(const std::vector<NamedShape>& tensors, std::string_view begin) {
  const auto found = std::ranges::find_if(tensors, [&](const NamedShape& t) { return is_named(t.name, begin); });
  return found == tensors.end() ? nullptr : &*found;
}

bool has_named(const std::set<std::string>& names, std::string_view begin) {
  return std::ranges::any_of(names, [&](const std::string& name) { return is_named(name, begin); });
}

int64_t depth_of(const std::set<std::string>& names) {
  int64_t depth = 0;
  for (const std::string& name : names) depth = std::max(depth, block_of(name).value_or(-1) + 1);
  return depth;
}

// The lines in the order of the fields, each field once.
class FieldAdvice {
 public:
  void add(const std::string& name, const std::string& field) {
    if (fields_.insert(field).second) lines_.push_back(str(name, ": ", field));
  }
  std::vector<std::string> lines() && { return std::move(lines_); }

 private:
  std::set<std::string> fields_;
  std::vector<std::string> lines_;
};

// The norm is before the pooling or behind it: a rule that renames one to the other gives other results.
void advise_norm(const std::vector<NamedShape>& missing, const std::vector<NamedShape>& extra,
                 const std::set<std::string>& expected, FieldAdvice& advice) {
  const NamedShape *norm = find_named(extra, "norm."), *fc_norm = find_named(extra, "fc_norm.");
  if (fc_norm && find_named(missing, "norm.")) advice.add(fc_norm->name, "\"global_pool\": \"avg\"");
  if (norm && find_named(missing, "fc_norm.")) {
    advice.add(norm->name, "\"global_pool\": \"token\", or \"fc_norm\": false for the mean of normalised tokens");
  }
  if (norm && !has_named(expected, "norm.") && !has_named(expected, "fc_norm.")) {
    advice.add(norm->name, "\"final_norm\": true");
  }
}

void advise_depth(const std::vector<NamedShape>& extra, int64_t depth, FieldAdvice& advice) {
  const NamedShape* last = nullptr;
  for (const NamedShape& tensor : extra) {
    const int64_t block = block_of(tensor.name).value_or(-1);
    if (block >= depth && is_parameter(tensor.name) && (!last || block > *block_of(last->name))) last = &tensor;
  }
  if (last) advice.add(last->name, str("\"depth\": ", *block_of(last->name) + 1));
}

}  // namespace

bool is_parameter(const std::string& name) {
  const auto fits = [&](std::string_view begin) { return is_named(name, begin); };
  return std::ranges::any_of(kFields, fits, &FieldOfParameter::name) || std::ranges::any_of(kOtherParameters, fits);
}

std::vector<std::string> advise_fields(const std::vector<NamedShape>& missing, const std::vector<NamedShape>& extra,
                                       const std::set<std::string>& expected) {
  if (!expected.contains("patch_embed.proj.weight")) return {};
  FieldAdvice advice;
  advise_depth(extra, depth_of(expected), advice);
  advise_norm(missing, extra, expected, advice);
  if (const NamedShape* const token = find_named(missing, "cls_token")) {
    const auto may_be_it = [&](const NamedShape& t) { return t.shape == token->shape; };  // under another name
    if (std::ranges::none_of(extra, may_be_it)) advice.add(token->name, "\"class_token\": false");
  }
  for (const FieldOfParameter& row : kFields) {
    const NamedShape* const tensor = find_named(extra, row.name);
    if (!tensor || has_named(expected, row.name) || row.axis >= tensor->shape.rank()) continue;
    advice.add(tensor->name, row.axis < 0 ? row.field : str(row.field, tensor->shape[row.axis]));
  }
  return std::move(advice).lines();
}

}  // namespace vitrail::weights
