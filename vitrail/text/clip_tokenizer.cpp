// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "vitrail/base/error.h"
#include "vitrail/text/clip_tokenizer_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

constexpr const char *kStart = "<|startoftext|>", *kEnd = "<|endoftext|>";

// The special tokens that a text may contain, and how the case of words is compared.
struct Words {
  std::array<std::u32string_view, 2> special;
  char32_t (*fold)(char32_t);

  bool begin(std::u32string_view text, std::u32string_view word) const {
    const auto same = [&](char32_t a, char32_t b) { return fold(a) == b; };
    return text.size() >= word.size() && std::ranges::equal(text.substr(0, word.size()), word, same);
  }
};

char32_t same_case(char32_t c) { return c; }
char32_t ignored_case(char32_t c) { return c == U'ſ' ? U's' : c >= U'A' && c <= U'Z' ? c + 32 : c; }

Words words_of(ClipForm form) {
  if (form == ClipForm::open_clip) return {{U"<start_of_text>", U"<end_of_text>"}, ignored_case};
  return {{U"<|startoftext|>", U"<|endoftext|>"}, same_case};
}

std::u32string single_spaces(std::u32string_view text) {
  std::u32string result;
  for (const char32_t c : text) {
    if (!is_white_space(c)) {
      result += c;
    } else if (result.empty() || result.back() != U' ') {
      result += U' ';
    }
  }
  return result;
}

std::string normalize(std::string_view text) { return to_utf8(lower_each(single_spaces(nfc(code_points(text))))); }

// The pattern has these as words, so that what follows them is another word.
size_t special_length(std::u32string_view text, const Words& words) {
  for (const std::u32string_view special : words.special) {
    if (words.begin(text, special)) return special.size();
  }
  return 0;
}

bool is_other(char32_t c) { return !is_white_space(c) && !is_letter(c) && !is_number(c); }

// The length of the word at the beginning of a text that does not begin with white space.
size_t word_length(std::u32string_view text, const Words& words) {
  static constexpr std::array<std::u32string_view, 7> kEndings{U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"};
  for (const std::u32string_view ending : kEndings) {
    if (words.begin(text, ending)) return ending.size();
  }
  if (is_number(text.front())) return 1;
  const auto same = is_letter(text.front()) ? is_letter : is_other;
  return static_cast<size_t>(std::ranges::find_if_not(text, same) - text.begin());
}

}  // namespace

ClipTokenizer::ClipTokenizer(BpeFile file, const std::string& where, ClipForm form)
    : bpe_(file.vocabulary, file.merges, where),
      form_(form),
      added_(file.added, false),
      added_normalized_(file.added, true, normalize) {
  const auto required = [&](const std::string& token) {
    const auto id = bpe_.id_of(token);
    if (!id) throw Error(where, "CLIP's token " + token, "a vocabulary without it");
    return *id;
  };
  // No token attends to what follows it, so that texts need no padding.
  special_ = {.bos = required(kStart), .eos = required(kEnd), .pad = required(kEnd), .pads_to_context = false};
  if (form == ClipForm::open_clip) special_.pad = 0;
  const int64_t unknown = file.unknown_token.empty() ? special_.eos : required(file.unknown_token);
  for (const std::string& symbol : byte_symbols()) {
    byte_ids_.push_back(bpe_.id_of(symbol).value_or(unknown));
    last_byte_ids_.push_back(bpe_.id_of(symbol + file.end_of_word_suffix).value_or(unknown));
  }
}

std::vector<int64_t> ClipTokenizer::encode_content(std::string_view text) const {
  std::vector<int64_t> ids;
  if (form_ == ClipForm::open_clip) {
    // U+0345 is no letter, but in another case it is: a pattern that ignores the case has no word for it.
    std::u32string words = code_points(text);
    std::ranges::replace(words, char32_t{0x345}, U' ');
    encode_words(words, ids);
    return ids;
  }
  for (const TextPart& part : added_.split(text)) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    const std::string normalized = normalize(part.text);
    for (const TextPart& inner : added_normalized_.split(normalized)) {
      inner.id ? ids.push_back(*inner.id) : encode_words(code_points(inner.text), ids);
    }
  }
  return ids;
}

void ClipTokenizer::encode_words(std::u32string_view text, std::vector<int64_t>& ids) const {
  const Words words = words_of(form_);
  while (!text.empty()) {
    if (is_white_space(text.front())) {
      text.remove_prefix(1);
      continue;
    }
    const size_t special = special_length(text, words);
    if (special > 0 && form_ == ClipForm::open_clip) {
      encode_special(text.substr(0, special), ids);
      text.remove_prefix(special);
      continue;
    }
    // transformers' special token in capitals is three words: "<|", the letters and "|>".
    for (size_t end = std::max(special, word_length(text, words)); end > 0;) {
      const size_t length = word_length(text.substr(0, end), words);
      encode_word(text.substr(0, length), ids);
      text.remove_prefix(length);
      end -= length;
    }
  }
}

// One in capitals is a word.
void ClipTokenizer::encode_special(std::u32string_view token, std::vector<int64_t>& ids) const {
  const auto [start, end] = words_of(form_).special;
  if (token == start) {
    ids.push_back(*special_.bos);
  } else if (token == end) {
    ids.push_back(special_.eos);
  } else {
    encode_word(token, ids);
  }
}

void ClipTokenizer::encode_word(std::u32string_view word, std::vector<int64_t>& ids) const {
  std::vector<int64_t> symbols;
  const std::string bytes = to_utf8(word);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    symbols.push_back(i + 1 < bytes.size() ? byte_ids_[byte] : last_byte_ids_[byte]);
  }
  const std::vector<int64_t> merged = bpe_.merge(symbols);
  ids.insert(ids.end(), merged.begin(), merged.end());
}

}  // namespace vitrail::text
