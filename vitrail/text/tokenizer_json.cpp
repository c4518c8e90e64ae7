// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/error.h"
#include "vitrail/base/json_checks_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/text/tokenizer_json_internal.h"

namespace vitrail::text {

using Json = nlohmann::json;

Json read_json(const std::filesystem::path& file) {
  constexpr int kMaxDepth = 20;
  const std::string where = file.string();
  const std::string text = read_text_file(file, kMaxTokenizerBytes);
  if (json_depth(text) > kMaxDepth) throw Error(where, str("at most ", kMaxDepth, " levels of nesting"), "more");
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw Error(where, "JSON", json_fault(text, error));
  }
}

const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? kNull : *found;
}

std::string text_or(const Json& value, const std::string& by_default) {
  return value.is_string() ? value.get<std::string>() : by_default;
}

std::string model_type_of(const Json& tokenizer) {
  const Json& model = member(tokenizer, "model");
  return text_or(member(model, "type"), member(model, "merges").is_array() ? "BPE" : "another");
}

std::vector<AddedToken> added_tokens_of(const Json& json, const std::string& where) {
  std::vector<AddedToken> tokens;
  if (!json.is_array()) return tokens;
  for (const Json& token : json) {
    const Json &content = member(token, "content"), &id = member(token, "id"), &flag = member(token, "normalized");
    if (!content.is_string() || !id.is_number_integer()) throw Error(where, "content and id of each token", "another");
    const bool normalized = flag.is_boolean() && flag.get<bool>();
    const bool lstrip = !normalized && member(token, "lstrip") == Json(true);
    for (const char* option : {"single_word", "lstrip", "rstrip"}) {
      if (member(token, option) == Json(true) && !(lstrip && option == std::string_view("lstrip"))) {
        throw Error(where, str("tokens without \"", option, "\""), "\"" + content.get<std::string>() + "\"");
      }
    }
    tokens.push_back({content.get<std::string>(), id.get<int64_t>(), normalized, lstrip});
  }
  return tokens;
}

}  // namespace vitrail::text
