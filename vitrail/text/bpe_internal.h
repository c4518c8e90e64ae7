// SPDX-License-Identifier: Apache-2.0
#pragma once
// Byte-pair encoding (Sennrich et al. 2016, "Neural machine translation of rare words with subword units").
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace vitrail::text {

using Vocabulary = std::unordered_map<std::string, int64_t>;      // token → id
using Merges = std::vector<std::pair<std::string, std::string>>;  // in the order of their ranks

// Immutable.
class Bpe {
 public:
  // Throws Error naming `where` for a merge of tokens that the vocabulary lacks, and for ids below 0 or above 2³¹.
  Bpe(Vocabulary vocabulary, const Merges& merges, const std::string& where);

  // Merges adjacent symbols until no merge applies: always the one of the lowest rank, and of equal ones the leftmost.
  // O(n log n).
  std::vector<int64_t> merge(const std::vector<int64_t>& symbols) const;

  std::optional<int64_t> id_of(const std::string& token) const;
  int64_t size() const { return size_; }  // one more than the largest id

 private:
  struct Merge {
    int64_t rank, id;
  };
  const Merge* find(int64_t left, int64_t right) const;

  Vocabulary vocabulary_;
  std::unordered_map<uint64_t, Merge> merges_;  // by both ids
  int64_t size_ = 0;
};

}  // namespace vitrail::text
