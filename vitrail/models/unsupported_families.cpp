// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/unsupported_families_internal.h"

#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"

namespace vitrail::models {
namespace {

constexpr const char* kSupported =
    "a plain Vision Transformer: ViT, DeiT, MAE, MSN, I-JEPA, DINOv2, DINOv3, CLIP, SigLIP, BEiT, data2vec, EVA, "
    "AIMv2, Perception Encoder";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Short prefixes are also the beginnings of other words ("samples"): at most a letter follows them ("xcit", "pvtv2").
// One with "_" in front may be anywhere.
bool is_named(const std::string& name, const std::string& prefix) {
  constexpr size_t kShort = 4;
  if (prefix.front() == '_') return name.find(prefix) != name.npos;
  if (!name.starts_with(prefix)) return false;
  const std::string tail = name.substr(prefix.size());
  return prefix.size() > kShort || tail.size() < 2 || !is_letter(tail[0]) || !is_letter(tail[1]);
}

}  // namespace

std::string describe_unsupported_family(const std::string& name) {
  static const nlohmann::json families = nlohmann::json::parse(unsupported_family_files().front().text);
  std::string longest, description;
  for (const nlohmann::json& family : families) {
    for (const std::string prefix : family.at("names")) {
      if (prefix.size() <= longest.size() || !is_named(name, prefix)) continue;
      longest = prefix;
      description = family.at("title").get<std::string>() + ", " + family.value("instead", "which is not supported");
    }
  }
  return description;
}

void refuse_unsupported_family(const std::string& name, const std::string& where) {
  const std::string family = describe_unsupported_family(name);
  if (!family.empty()) throw Error(where, kSupported, "\"" + name + "\": " + family);
}

}  // namespace vitrail::models
