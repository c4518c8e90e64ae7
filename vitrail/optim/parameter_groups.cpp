// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/parameter_groups.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"

namespace vitrail::optim {
namespace {

constexpr const char* kTokens[]{"pos_embed", "cls_token", "reg_token", "dist_token", "rope.freqs"};
constexpr const char* kEmbeddings[]{"cls_token",   "reg_token", "dist_token", "pos_embed",
                                    "patch_embed", "rope",      "norm_pre"};

// Matches iteratively: at a mismatch, the last star consumes one more character.
bool glob(const std::string& pattern, const std::string& name) {
  size_t p = 0, n = 0, star = std::string::npos, consumed = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      consumed = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++consumed;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

// The name in the Vision Transformer that is the image encoder of Segment Anything, or the backbone of a segmenter.
std::string in_encoder(const std::string& name) {
  for (const std::string_view prefix : {"image_encoder.", "backbone."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

// Returns N for a name "blocks.N.…", or −1 for any other name.
int64_t block_of(const std::string& name) {
  constexpr std::string_view kPrefix = "blocks.";
  if (!name.starts_with(kPrefix)) return -1;
  int64_t block = -1;
  const char* const digits = name.data() + kPrefix.size();
  const auto end = std::from_chars(digits, name.data() + name.size(), block);
  return end.ec == std::errc() && end.ptr != name.data() + name.size() && *end.ptr == '.' ? block : -1;
}

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return matches(p, name); });
}

double scale_of(const std::vector<RateScale>& scales, const std::string& name) {
  const auto found = std::ranges::find_if(scales, [&](const RateScale& s) { return matches(s.pattern, name); });
  return found == scales.end() ? 1 : found->factor;
}

void check(const std::vector<nn::NamedTensor>& parameters, const GroupOptions& options) {
  if (!(options.weight_decay >= 0)) throw Error("weight_decay", "at least 0", str(options.weight_decay));
  if (!(options.layer_decay > 0 && options.layer_decay <= 1)) {
    throw Error("layer_decay", "a factor in (0, 1]", str(options.layer_decay));
  }
  for (const auto* patterns : {&options.no_decay, &options.frozen}) {
    for (const std::string& pattern : *patterns) {
      const bool used = std::any_of(parameters.begin(), parameters.end(),
                                    [&](const nn::NamedTensor& p) { return matches(pattern, p.name); });
      if (!used) {
        throw Error(patterns == &options.frozen ? "frozen" : "no_decay", "patterns that each match a parameter's name",
                    "'" + pattern + "', which matches none");
      }
    }
  }
}

}  // namespace

bool matches(const std::string& pattern, const std::string& name) {
  constexpr std::string_view kRegex = "regex:";
  if (!pattern.starts_with(kRegex)) return glob(pattern, name);
  try {
    return std::regex_match(name, std::regex(pattern.substr(kRegex.size())));
  } catch (const std::regex_error& error) {
    throw Error("pattern", "a regular expression after 'regex:'", "'" + pattern + "' (" + error.what() + ")");
  }
}

bool excluded_from_decay(const std::string& name, const Shape& shape) {
  return shape.rank() <= 1 || name.ends_with(".bias") ||
         std::any_of(std::begin(kTokens), std::end(kTokens),
                     [&](const char* token) { return in_encoder(name) == token; });
}

int64_t layer_of(const std::string& parameter, int64_t depth) {
  const std::string name = in_encoder(parameter);
  for (const char* embedding : kEmbeddings) {
    if (name.starts_with(embedding)) return 0;
  }
  if (const int64_t block = block_of(name); block >= 0) return block + 1;
  return name.starts_with("norm") ? depth : depth + 1;
}

std::vector<Parameter> parameter_groups(const std::vector<nn::NamedTensor>& parameters, const GroupOptions& options) {
  check(parameters, options);
  int64_t depth = 0;
  for (const nn::NamedTensor& p : parameters) depth = std::max(depth, block_of(in_encoder(p.name)) + 1);
  std::vector<Parameter> result;
  for (const nn::NamedTensor& p : parameters) {
    if (matches_any(options.frozen, p.name)) continue;
    const bool no_decay = excluded_from_decay(p.name, p.tensor.shape()) || matches_any(options.no_decay, p.name);
    const auto layers_above = static_cast<double>(depth + 1 - layer_of(p.name, depth));
    result.push_back(
        {.name = p.name,
         .tensor = p.tensor,
         .weight_decay = no_decay ? 0 : options.weight_decay,
         .rate_scale = std::pow(options.layer_decay, layers_above) * scale_of(options.rate_scales, p.name)});
  }
  if (result.empty()) throw Error("frozen", "patterns that leave something to train", "none left");
  return result;
}

std::vector<Parameter> parameter_groups(nn::Module& module, const GroupOptions& options) {
  module.requires_grad(true);
  const std::vector<nn::NamedTensor> parameters = module.named_parameters();
  std::vector<Parameter> trained = parameter_groups(parameters, options);
  for (const nn::NamedTensor& p :
       parameters) {  // the copy p.tensor shares its autograd variable with the module's tensor
    if (matches_any(options.frozen, p.name)) autograd::variable_of(p.tensor)->requires_grad = false;
  }
  return trained;
}

}  // namespace vitrail::optim
