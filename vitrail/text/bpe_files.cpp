// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/gzip_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/utf8_internal.h"
#include "vitrail/text/bpe_files_internal.h"
#include "vitrail/text/tokenizer_json_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr const char* kEndOfWord = "</w>";

Vocabulary vocabulary_of(const Json& json, const std::string& where) {
  if (!json.is_object()) throw Error(where, "an object of tokens with their ids", json.type_name());
  Vocabulary vocabulary;
  for (const auto& [token, id] : json.items()) {
    if (!id.is_number_integer()) throw Error(where, "an integer id for each token", "\"" + token.substr(0, 80) + "\"");
    vocabulary[token] = id.get<int64_t>();
  }
  return vocabulary;
}

// "left right"
std::pair<std::string, std::string> merge_of(const std::string& line, const std::string& where) {
  const size_t space = line.find(' ');
  const bool two = space != line.npos && space > 0 && space + 1 < line.size() && line.find(' ', space + 1) == line.npos;
  if (!two) throw Error(where, "two tokens in each merge", "\"" + line.substr(0, 80) + "\"");
  return {line.substr(0, space), line.substr(space + 1)};
}

// Lines of text, without those of comments and without a last empty one.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !line.starts_with("#version")) lines.push_back(line);
  }
  return lines;
}

// A list of "left right" or of [left, right].
Merges merges_of(const Json& json, const std::string& where) {
  if (!json.is_array()) throw Error(where, "a list of merges", json.type_name());
  Merges merges;
  for (const Json& merge : json) {
    const bool pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (!pair && !merge.is_string()) throw Error(where, "\"left right\" or [left, right]", merge.type_name());
    merges.push_back(pair ? std::pair(merge[0].get<std::string>(), merge[1].get<std::string>())
                          : merge_of(merge.get<std::string>(), where));
  }
  return merges;
}

void add_to_vocabulary(BpeFile& file, const std::string& where) {
  for (const AddedToken& token : file.added) {
    const int64_t id = file.vocabulary.try_emplace(token.content, token.id).first->second;
    if (id == token.id) continue;
    throw Error(where, "one id for each token",
                str(id, " and ", token.id, " for \"", token.content.substr(0, 80), "\""));
  }
}

// CLIP's special tokens, for files that do not list them.
void add_special_tokens(BpeFile& file) {
  for (const char* token : {"<|startoftext|>", "<|endoftext|>"}) {
    const auto id = file.vocabulary.find(token);
    if (id != file.vocabulary.end() && std::ranges::find(file.added, token, &AddedToken::content) == file.added.end())
      file.added.push_back({token, id->second, false});
  }
}

Json read_if_present(const fs::path& file) { return is_present(file) ? read_json(file) : Json(); }

// "additional_special_tokens": texts, or objects with one.
bool is_special(const Json& config, const std::string& token) {
  const Json& list = member(config, "additional_special_tokens");
  return std::ranges::any_of(list, [&](const Json& item) { return item == token || member(item, "content") == token; });
}

// The added tokens beside a vocabulary as a list like that of tokenizer.json.  Those of added_tokens.json, which older
// programs wrote, are found in the normalised text unless they are special.
Json added_tokens_beside(const fs::path& folder) {
  const Json config = read_if_present(folder / "tokenizer_config.json");
  Json list = Json::array();
  for (const auto& [id, token] : member(config, "added_tokens_decoder").items()) {
    Json& added = list.emplace_back(token);
    if (added.is_object() && id.size() < 10 && id.find_first_not_of("0123456789") == id.npos)
      added["id"] = std::stol(id);
  }
  if (!list.empty()) return list;
  const Json map = read_if_present(folder / "special_tokens_map.json");
  const Json ids = read_if_present(folder / "added_tokens.json");
  for (const auto& [token, id] : ids.items()) {
    const bool special = is_special(config, token) || is_special(map, token);
    list.push_back({{"content", token}, {"id", id}, {"normalized", !special}});
  }
  return list;
}

}  // namespace

const std::vector<std::string>& byte_symbols() {
  static const std::vector<std::string> symbols = [] {
    std::vector<std::string> result;
    char32_t substitute = 256;  // for bytes that are no printable character
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      append_utf8(printable ? byte : substitute++, result.emplace_back());
    }
    return result;
  }();
  return symbols;
}

BpeFile read_tokenizer_json(const Json& json, const std::string& where) {
  const Json& model = member(json, "model");
  const std::string type = model_type_of(json);
  if (type != "BPE") throw Error(where + ": model", "type BPE or Unigram", "\"" + type + "\"");
  BpeFile file;
  file.vocabulary = vocabulary_of(member(model, "vocab"), where + ": model.vocab");
  file.merges = merges_of(member(model, "merges"), where + ": model.merges");
  file.added = added_tokens_of(member(json, "added_tokens"), where + ": added_tokens");
  file.end_of_word_suffix = text_or(member(model, "end_of_word_suffix"), "");
  file.byte_fallback = member(model, "byte_fallback") == Json(true);
  file.unknown_token = text_or(member(model, "unk_token"), "");
  add_to_vocabulary(file, where);
  return file;
}

BpeFile read_vocab_and_merges(const fs::path& vocab, const fs::path& merges) {
  BpeFile file{.vocabulary = vocabulary_of(read_json(vocab), vocab.string()), .end_of_word_suffix = kEndOfWord};
  for (const std::string& line : lines_of(read_text_file(merges, kMaxTokenizerBytes))) {
    file.merges.push_back(merge_of(line, merges.string()));
  }
  const std::string where = vocab.string() + ": the added tokens beside it";
  file.added = added_tokens_of(added_tokens_beside(vocab.parent_path()), where);
  add_to_vocabulary(file, where);
  add_special_tokens(file);
  return file;
}

BpeFile read_simple_vocab(const fs::path& path) {
  constexpr size_t kMerges = 49152 - 256 - 2;  // OpenAI's simple_tokenizer.py
  std::vector<std::byte> bytes = read_file(path, kMaxTokenizerBytes);
  if (is_gzip(bytes)) bytes = gunzip(bytes, kMaxTokenizerBytes, path.string());
  std::vector<std::string> lines = lines_of(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  if (!lines.empty() && lines.front().find("bpe_simple_vocab") != std::string::npos) lines.erase(lines.begin());
  lines.resize(std::min(lines.size(), kMerges));
  BpeFile file{.end_of_word_suffix = kEndOfWord};
  const auto add = [&](const std::string& token) {
    file.vocabulary.emplace(token, static_cast<int64_t>(file.vocabulary.size()));
  };
  // The order of ids: printable bytes, then the substitutes; the same at the end of a word; merges; special tokens.
  std::vector<std::string> symbols;
  for (const bool printable : {true, false}) {
    for (const std::string& symbol : byte_symbols()) {
      if ((code_points(symbol).front() < 256) == printable) symbols.push_back(symbol);
    }
  }
  for (const std::string& symbol : symbols) add(symbol);
  for (const std::string& symbol : symbols) add(symbol + kEndOfWord);
  for (const std::string& line : lines) {
    file.merges.push_back(merge_of(line, path.string()));
    add(file.merges.back().first + file.merges.back().second);
  }
  add("<|startoftext|>");
  add("<|endoftext|>");
  add_special_tokens(file);
  return file;
}

}  // namespace vitrail::text
