// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"
#include "vitrail/text/gemma_tokenizer_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

std::string byte_token(int byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return str("<0x", kDigits[static_cast<size_t>(byte) / 16], kDigits[static_cast<size_t>(byte) % 16], ">");
}

std::string normalize_gemma(std::string_view text) {
  std::u32string result = lower_each(code_points(text));
  for (char32_t& c : result) c = c == U' ' ? U'▁' : c;
  return to_utf8(result);
}

}  // namespace

GemmaTokenizer::GemmaTokenizer(BpeFile file, const std::string& where)
    : bpe_(file.vocabulary, file.merges, where),
      added_(file.added, false),
      added_normalized_(file.added, true, normalize_gemma) {
  const auto required = [&](const std::string& token) {
    const auto id = bpe_.id_of(token);
    if (!id) throw Error(where, "Gemma's token " + token, "a vocabulary without it");
    return *id;
  };
  special_ = {.eos = required("<eos>"), .pad = required("<pad>")};
  for (int byte = 0; byte < 256; ++byte) byte_ids_.push_back(required(byte_token(byte)));
}

std::vector<int64_t> GemmaTokenizer::encode_content(std::string_view text) const {
  std::vector<int64_t> ids;
  for (const TextPart& part : added_.split(text)) {
    part.id ? ids.push_back(*part.id) : encode_text(part.text, ids);
  }
  return ids;
}

void GemmaTokenizer::encode_text(std::string_view text, std::vector<int64_t>& ids) const {
  const std::string normalized = normalize_gemma(text);
  for (const TextPart& part : added_normalized_.split(normalized)) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    const std::vector<int64_t> merged = bpe_.merge(symbols_of(part.text));
    ids.insert(ids.end(), merged.begin(), merged.end());
  }
}

std::vector<int64_t> GemmaTokenizer::symbols_of(std::string_view text) const {
  std::vector<int64_t> symbols;
  for (size_t at = 0; at < text.size();) {
    const std::string character(text.substr(at, utf8_length(text.substr(at))));
    at += character.size();
    if (const auto id = bpe_.id_of(character)) {
      symbols.push_back(*id);
    } else {
      for (const char byte : character) symbols.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    }
  }
  return symbols;
}

}  // namespace vitrail::text
