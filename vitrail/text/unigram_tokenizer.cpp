// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/unigram_tokenizer_internal.h"

#include <algorithm>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

constexpr std::string_view kSymbol = "▁";
constexpr size_t kMaxNormalized = 1 << 26;
constexpr double kUnknownPenalty = 10;  // SentencePiece's, below the score of the rarest piece

// The best segmentation up to a byte: where its last piece begins.
struct Node {
  double score = 0;
  size_t begin = std::string_view::npos;
  bool known = false;  // the last piece is one of the vocabulary

  void offer(double other, size_t from, bool is_known) {
    if (begin != std::string_view::npos && other <= score) return;
    *this = {other, from, is_known};
  }
};

std::vector<std::string> split_at_white_space(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char32_t c : code_points(text)) {
    if (!is_white_space(c)) {
      append_utf8(c, words.back());
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Each "▁" begins a word.
void split_at_symbol(const std::string& text, std::vector<std::string>& words) {
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find(kSymbol, at + 1), text.size());
    words.push_back(text.substr(at, next - at));
    at = next;
  }
}

}  // namespace

UnigramTokenizer::UnigramTokenizer(UnigramFile file, const std::string& where)
    : file_(std::move(file)), added_(file_.added, false), added_normalized_(file_.added, true) {
  double min_score = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < file_.pieces.size(); ++id) {
    const auto& [piece, score] = file_.pieces[id];
    ids_.insert_or_assign(piece, static_cast<int64_t>(id));
    longest_ = std::max(longest_, piece.size());
    min_score = std::min(min_score, score);
  }
  unknown_score_ = min_score - kUnknownPenalty;
  size_ = static_cast<int64_t>(file_.pieces.size());
  for (const AddedToken& token : file_.added) {
    if (token.id < 0 || token.id > std::numeric_limits<int32_t>::max())
      throw Error(where, "ids from 0 to 2³¹ - 1", str(token.id));
    size_ = std::max(size_, token.id + 1);
  }
  for (const int64_t id : {file_.bos.value_or(0), file_.eos, file_.pad}) {
    if (id >= size_) throw Error(where, str("special tokens below ", size_), str(id));
  }
  for (int byte = 0; byte < 256 && file_.byte_fallback; ++byte) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const auto digit = [&](int value) { return kDigits[static_cast<size_t>(value)]; };
    const auto found = ids_.find(str("<0x", digit(byte / 16), digit(byte % 16), ">"));
    if (found == ids_.end()) throw Error(where, "a piece for each byte, as byte_fallback says", "none for some");
    byte_ids_.push_back(found->second);
  }
  if (!file_.unknown_id && byte_ids_.empty()) throw Error(where, "unk_id or byte_fallback", "neither");
  special_ = {.bos = file_.bos, .eos = file_.eos, .pad = file_.pad};
}

std::vector<int64_t> UnigramTokenizer::encode_content(std::string_view text) const {
  std::vector<int64_t> ids;
  for (const TextPart& part : added_.split(text)) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    std::string normalized(part.text);
    for (const auto& normalize : file_.normalizers) {
      normalized = normalize(normalized);
      if (normalized.size() > kMaxNormalized) throw Error("text", str("at most ", kMaxNormalized, " bytes"), "more");
    }
    const bool begins = part.text.data() == text.data();
    for (const TextPart& inner : added_normalized_.split(normalized)) {
      if (inner.id) {
        ids.push_back(*inner.id);
      } else {
        encode_part(inner.text, begins && inner.text.data() == normalized.data(), ids);
      }
    }
  }
  return ids;
}

void UnigramTokenizer::encode_part(std::string_view text, bool is_first, std::vector<int64_t>& ids) const {
  for (const std::string& word : words_of(std::string(text), is_first)) encode_word(word, ids);
}

std::vector<std::string> UnigramTokenizer::words_of(const std::string& normalized, bool is_first) const {
  std::vector<std::string> words;
  const std::vector<std::string> parts =
      file_.split_at_white_space ? split_at_white_space(normalized) : std::vector{normalized};
  for (const std::string& part : parts) {
    std::string word;
    for (const char c : part) c == ' ' ? word.append(kSymbol) : word.append(1, c);
    const bool prepends = file_.prepend == PrependScheme::always ||
                          (file_.prepend == PrependScheme::first && is_first && &part == &parts.front());
    if (prepends && !word.empty() && !word.starts_with(kSymbol)) word.insert(0, kSymbol);
    if (file_.split_at_symbol) {
      split_at_symbol(word, words);
    } else if (!word.empty()) {
      words.push_back(word);
    }
  }
  return words;
}

void UnigramTokenizer::encode_word(std::string_view word, std::vector<int64_t>& ids) const {
  std::vector<Node> nodes(word.size() + 1);
  for (size_t at = 0; at < word.size();) {
    const size_t character = utf8_length(word.substr(at));
    bool is_piece = false;
    for (size_t length = 1; length <= std::min(longest_, word.size() - at); ++length) {
      const auto piece = ids_.find(word.substr(at, length));
      if (piece == ids_.end()) continue;
      const double score = file_.pieces[static_cast<size_t>(piece->second)].second;
      nodes[at + length].offer(nodes[at].score + score, at, piece->second != file_.unknown_id);
      is_piece = is_piece || length == character;
    }
    if (!is_piece) nodes[at + character].offer(nodes[at].score + unknown_score_, at, false);
    at += character;
  }
  std::vector<std::pair<std::string_view, bool>> pieces;  // the last one first; adjacent unknown ones are joined
  for (size_t end = word.size(); end > 0; end = nodes[end].begin) {
    const Node& node = nodes[end];
    if (!node.known && !pieces.empty() && !pieces.back().second) {
      pieces.back().first = word.substr(node.begin, end - node.begin + pieces.back().first.size());
    } else {
      pieces.emplace_back(word.substr(node.begin, end - node.begin), node.known);
    }
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    const auto id = ids_.find(piece->first);
    id == ids_.end() ? add_unknown(piece->first, ids) : ids.push_back(id->second);
  }
}

void UnigramTokenizer::add_unknown(std::string_view text, std::vector<int64_t>& ids) const {
  if (byte_ids_.empty()) return ids.push_back(*file_.unknown_id);
  for (const char byte : text) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
}

}  // namespace vitrail::text
