// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <queue>

#include "vitrail/base/error.h"
#include "vitrail/text/bpe_internal.h"

namespace vitrail::text {
namespace {

constexpr int64_t kMaxId = INT32_MAX;

uint64_t pair_key(int64_t left, int64_t right) {
  return (static_cast<uint64_t>(left) << 32) | static_cast<uint64_t>(right);
}

// A symbol of the text in a doubly linked list, from which a merge removes the right one of two.
struct Symbol {
  int64_t id;
  size_t previous, next;
  bool removed = false;
};

// A possible merge of the symbol at `left` with its successor.
struct Candidate {
  int64_t rank;
  size_t left;
  int64_t id;  // what the two become
  bool operator>(const Candidate& other) const { return std::pair(rank, left) > std::pair(other.rank, other.left); }
};

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, const Merges& merges, const std::string& where) : vocabulary_(std::move(vocabulary)) {
  for (const auto& [token, id] : vocabulary_) {
    if (id < 0 || id > kMaxId) throw Error(where, str("ids from 0 to ", kMaxId), str(id, " for \"", token, "\""));
    size_ = std::max(size_, id + 1);
  }
  const auto required = [&](const std::string& token) {
    const auto id = id_of(token);
    if (!id) throw Error(where, "merges of tokens in the vocabulary", "\"" + token.substr(0, 80) + "\"");
    return *id;
  };
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    merges_.insert_or_assign(pair_key(required(left), required(right)),
                             Merge{static_cast<int64_t>(rank), required(left + right)});
  }
}

std::optional<int64_t> Bpe::id_of(const std::string& token) const {
  const auto found = vocabulary_.find(token);
  return found == vocabulary_.end() ? std::nullopt : std::optional(found->second);
}

const Bpe::Merge* Bpe::find(int64_t left, int64_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<int64_t> Bpe::merge(const std::vector<int64_t>& ids) const {
  const size_t end = ids.size();
  std::vector<Symbol> symbols;
  for (size_t i = 0; i < end; ++i) symbols.push_back({ids[i], i - 1, i + 1});  // i - 1 wraps for the first
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](size_t left) {
    if (left >= end || symbols[left].next >= end) return;
    if (const Merge* merge = find(symbols[left].id, symbols[symbols[left].next].id)) {
      candidates.push({merge->rank, left, merge->id});
    }
  };
  for (size_t i = 0; i < end; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = symbols[best.left];
    if (left.removed || left.next >= end) continue;
    Symbol& right = symbols[left.next];
    const Merge* const merge = find(left.id, right.id);  // an earlier merge may have changed the two
    if (!merge || merge->id != best.id) continue;
    left.id = best.id;
    left.next = right.next;
    right.removed = true;
    if (right.next < end) symbols[right.next].previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
  std::vector<int64_t> result;
  for (const Symbol& symbol : symbols) {
    if (!symbol.removed) result.push_back(symbol.id);
  }
  return result;
}

}  // namespace vitrail::text
