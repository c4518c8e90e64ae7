// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/unsupported_families_internal.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/json_fields_internal.h"

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

std::string later_segment_anything(const weights::Checkpoint& checkpoint) {
  const std::vector<std::string> names = checkpoint.names();
  const auto any = [&](const auto& test) { return std::ranges::any_of(names, test); };
  if (!any([](const std::string& name) { return name.ends_with("obj_score_token.weight"); })) return "";
  const std::filesystem::path config = std::filesystem::path(checkpoint.path()).parent_path() / "config.json";
  if (is_present(config)) {
    const Json file = parse_json(read_regular_text_file(config), config.string());
    const std::string type = JsonFields(file, config.string()).text("model_type").value_or("");
    if (!describe_unsupported_family(type).empty()) return type;
  }
  return any([](const std::string& name) { return name.find("tracker") != name.npos; }) ? "sam3" : "sam2";
}

}  // namespace vitrail::models
