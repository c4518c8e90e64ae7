// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/text/charsmap_internal.h"
#include "vitrail/text/tokenizer_json_internal.h"
#include "vitrail/text/unicode_internal.h"
#include "vitrail/text/unigram_file_internal.h"

namespace vitrail::text {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& where, const std::string& expected, const Json& got) {
  throw Error(where, expected, got.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80));
}

void read_pieces(const Json& model, const std::string& where, UnigramFile& file) {
  constexpr size_t kMaxPieceBytes = 1024;  // the time of encode() is proportional to it
  const Json& vocab = member(model, "vocab");
  if (!vocab.is_array() || vocab.empty()) refuse(where + ".vocab", "a list of pieces with their scores", vocab);
  for (const Json& item : vocab) {
    const bool pair = item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_number();
    if (!pair) refuse(where + ".vocab", "[piece, score]", item);
    file.pieces.emplace_back(item[0].get<std::string>(), item[1].get<double>());
    if (file.pieces.back().first.size() > kMaxPieceBytes || !std::isfinite(file.pieces.back().second))
      refuse(where + ".vocab", str("a piece of at most ", kMaxPieceBytes, " bytes with a finite score"), item);
  }
  if (const Json& unknown = member(model, "unk_id"); !unknown.is_null()) {
    const bool valid = unknown.is_number_unsigned() && unknown.get<uint64_t>() < file.pieces.size();
    if (!valid) refuse(where + ".unk_id", "the index of a piece", unknown);
    file.unknown_id = unknown.get<int64_t>();
  }
  file.byte_fallback = member(model, "byte_fallback") == Json(true);
}

std::string with_replaced(const std::string& text, const std::string& from, const std::string& to) {
  std::string result;
  size_t at = 0;
  for (size_t found = text.find(from); found != text.npos; found = text.find(from, at)) {
    result += text.substr(at, found - at) + to;
    at = found + from.size();
  }
  return result + text.substr(at);
}

// Each run of at least two spaces as `to`.
std::string with_replaced_runs(const std::string& text, const std::string& to) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_not_of(' ', at), text.size());
    if (end - at >= 2) result += to;
    if (end - at == 1) result += ' ';
    at = end;
    if (at < text.size()) result += text[at++];
  }
  return result;
}

std::string stripped(const std::string& text, bool left, bool right) {
  const std::u32string points = code_points(text);
  size_t begin = 0, end = points.size();
  while (left && begin < end && is_white_space(points[begin])) ++begin;
  while (right && end > begin && is_white_space(points[end - 1])) --end;
  return to_utf8(std::u32string_view(points).substr(begin, end - begin));
}

std::function<std::string(const std::string&)> replacement(const Json& step, const std::string& where) {
  constexpr size_t kMaxContent = 16;  // limits what a text can grow to
  const std::string to = text_or(member(step, "content"), "");
  if (to.size() > kMaxContent) refuse(where, str("at most ", kMaxContent, " bytes instead"), member(step, "content"));
  const Json& pattern = member(step, "pattern");
  if (const std::string from = text_or(member(pattern, "String"), ""); !from.empty())
    return [=](const std::string& text) { return with_replaced(text, from, to); };
  if (member(pattern, "Regex") == Json(" {2,}"))
    return [=](const std::string& text) { return with_replaced_runs(text, to); };
  refuse(where, "a text, or the pattern \" {2,}\"", pattern);
}

void read_normalizer(const Json& step, const std::string& where, UnigramFile& file) {
  if (step.is_null()) return;
  const std::string type = text_or(member(step, "type"), "");
  if (type == "Sequence") {
    for (const Json& inner : member(step, "normalizers")) {
      if (member(inner, "type") == Json("Sequence")) refuse(where, "one sequence", inner);
      read_normalizer(inner, where, file);
    }
  } else if (type == "Precompiled") {
    const std::string bytes = from_base64(text_or(member(step, "precompiled_charsmap"), ""), where);
    if (bytes.empty()) return;  // the tokenizer replaces nothing
    file.normalizers.emplace_back([map = std::make_shared<const Charsmap>(bytes, where + ".precompiled_charsmap")](
                                      const std::string& text) { return map->normalize(text); });
  } else if (type == "Lowercase") {
    file.normalizers.emplace_back([](const std::string& text) { return to_utf8(lower_each(code_points(text))); });
  } else if (type == "NFC") {
    file.normalizers.emplace_back([](const std::string& text) { return to_utf8(nfc(code_points(text))); });
  } else if (type == "Strip") {
    const bool left = member(step, "strip_left") == Json(true), right = member(step, "strip_right") == Json(true);
    file.normalizers.emplace_back([=](const std::string& text) { return stripped(text, left, right); });
  } else if (type == "Replace") {
    file.normalizers.emplace_back(replacement(step, where));
  } else {
    refuse(where, "Precompiled, Lowercase, NFC, Strip, Replace or a Sequence of them", member(step, "type"));
  }
}

void read_metaspace(const Json& step, const std::string& where, UnigramFile& file) {
  if (text_or(member(step, "replacement"), "") != "▁") refuse(where, "the replacement \"▁\"", step);
  const bool none = member(step, "add_prefix_space") == Json(false);  // the form before prepend_scheme
  const std::string scheme = text_or(member(step, "prepend_scheme"), none ? "never" : "always");
  if (scheme != "always" && scheme != "first" && scheme != "never") refuse(where, "always, first or never", step);
  file.prepend = scheme == "always"  ? PrependScheme::always
                 : scheme == "first" ? PrependScheme::first
                                     : PrependScheme::never;
  file.split_at_symbol = member(step, "split") != Json(false);
}

void read_pre_tokenizer(const Json& step, const std::string& where, UnigramFile& file) {
  Json steps = member(step, "type") == Json("Sequence") ? member(step, "pretokenizers") : Json::array({step});
  if (!steps.is_array() || steps.empty()) refuse(where, "a list", steps);
  if (member(steps.front(), "type") == Json("WhitespaceSplit")) {
    file.split_at_white_space = true;
    steps.erase(steps.begin());
  }
  if (steps.size() != 1 || member(steps.front(), "type") != Json("Metaspace"))
    refuse(where, "Metaspace, with WhitespaceSplit in front or without", step);
  read_metaspace(steps.front(), where, file);
}

// The id of {"SpecialToken": {"id": "</s>"}}.
int64_t special_id(const Json& item, const Json& post_processor, const std::string& where) {
  const std::string name = text_or(member(member(item, "SpecialToken"), "id"), "");
  const Json& ids = member(member(member(post_processor, "special_tokens"), name.c_str()), "ids");
  if (!ids.is_array() || ids.size() != 1 || !ids[0].is_number_unsigned()) refuse(where, "a token with one id", item);
  return ids[0].get<int64_t>();
}

// TemplateProcessing of one text: "$A </s>" or "<s> $A </s>".
void read_post_processor(const Json& json, const std::string& where, UnigramFile& file) {
  const Json& single = member(json, "single");
  const bool known = json.is_object() && json.value("type", Json()) == Json("TemplateProcessing") && single.is_array();
  if (!known) refuse(where, "TemplateProcessing", member(json, "type"));
  const bool bos = single.size() == 3;
  if (single.size() != (bos ? 3U : 2U) || !single[bos ? 1 : 0].contains("Sequence"))
    refuse(where + ".single", "a text and the end-of-text token, with a token in front or without", single);
  if (bos) file.bos = special_id(single.front(), json, where);
  file.eos = special_id(single.back(), json, where);
}

int64_t pad_id(const std::filesystem::path& folder, const UnigramFile& file) {
  const std::filesystem::path path = folder / "tokenizer_config.json";
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return file.eos;
  const Json config = read_json(path);
  const Json& token = member(config, "pad_token");
  const std::string name = text_or(token, text_or(member(token, "content"), ""));
  const auto added = std::ranges::find(file.added, name, &AddedToken::content);
  if (added != file.added.end()) return added->id;
  const auto piece = std::ranges::find(file.pieces, name, &std::pair<std::string, double>::first);
  return piece == file.pieces.end() ? file.eos : piece - file.pieces.begin();
}

}  // namespace

UnigramFile read_unigram_json(const Json& json, const std::filesystem::path& path) {
  const std::string where = path.string();
  UnigramFile file;
  read_pieces(member(json, "model"), where + ": model", file);
  file.added = added_tokens_of(member(json, "added_tokens"), where + ": added_tokens");
  read_normalizer(member(json, "normalizer"), where + ": normalizer", file);
  read_pre_tokenizer(member(json, "pre_tokenizer"), where + ": pre_tokenizer", file);
  read_post_processor(member(json, "post_processor"), where + ": post_processor", file);
  file.pad = pad_id(path.parent_path(), file);
  return file;
}

}  // namespace vitrail::text
