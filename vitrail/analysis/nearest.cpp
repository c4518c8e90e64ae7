// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/nearest.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::analysis {
namespace {

constexpr int64_t kRowsPerBlock = 256;     // 256 rows of 768 values are 0.8 MB, which the second-level cache holds
constexpr int64_t kQueriesPerPass = 1024;  // more queries read the rows again

// The total order of neighbours: results do not depend on the order in which rows are compared.
bool is_nearer(const Neighbor& a, const Neighbor& b) { return a.score != b.score ? a.score > b.score : a.row < b.row; }

int64_t num_blocks(const VectorRows& rows) { return ceil_div(rows.count(), kRowsPerBlock); }

// A block of rows in memory.
struct Block {
  int64_t first = 0, count = 0;
  std::vector<float> values;

  void read(const VectorRows& rows, int64_t index) {
    first = index * kRowsPerBlock;
    count = std::min(kRowsPerBlock, rows.count() - first);
    values.resize(static_cast<size_t>(count * rows.width()));
    rows.read(first, count, values.data());
  }
};

// scores [m, block.count]: the inner products of queries [m, width] with the rows of a block.
void score_block(const float* queries, int64_t m, int64_t width, const Block& block, std::vector<float>& scores) {
  scores.resize(static_cast<size_t>(m * block.count));
  kernels::gemm(false, true, m, block.count, width, queries, width, block.values.data(), width, false, scores.data(),
                block.count);
}

[[noreturn]] void refuse_row(int64_t row) { throw Error(str("row ", row), "finite values", "NaN or infinity"); }

// The k nearest rows of those that were added: a heap with the farthest in front.
class NearestHeap {
 public:
  explicit NearestHeap(int64_t k) : k_(static_cast<size_t>(k)) {}

  void add(const Neighbor& neighbor) {
    if (heap_.size() == k_ && !is_nearer(neighbor, heap_.front())) return;
    if (heap_.size() == k_) {
      std::ranges::pop_heap(heap_, is_nearer);
      heap_.pop_back();
    }
    heap_.push_back(neighbor);
    std::ranges::push_heap(heap_, is_nearer);
  }
  void add_scores(const float* scores, const Block& block) {
    for (int64_t i = 0; i < block.count; ++i) {
      if (!std::isfinite(scores[i])) refuse_row(block.first + i);
      if (heap_.size() < k_ || scores[i] >= heap_.front().score) add({block.first + i, scores[i]});
    }
  }
  void add_all(const NearestHeap& other) {
    for (const Neighbor& neighbor : other.heap_) add(neighbor);
  }
  std::vector<Neighbor> sorted() && {
    std::ranges::sort_heap(heap_, is_nearer);
    return std::move(heap_);
  }

 private:
  size_t k_;
  std::vector<Neighbor> heap_;
};

// The nearest rows of m queries, by the blocks in parallel.
std::vector<NearestHeap> search_blocks(const float* queries, int64_t m, const VectorRows& rows, int64_t k) {
  std::vector<NearestHeap> nearest(static_cast<size_t>(m), NearestHeap(k));
  std::mutex mutex;
  parallel_for_balanced(0, num_blocks(rows), 8, [&](int64_t first, int64_t last) {
    std::vector<NearestHeap> own(static_cast<size_t>(m), NearestHeap(k));
    std::vector<float> scores;
    Block block;
    for (int64_t b = first; b < last; ++b) {
      block.read(rows, b);
      score_block(queries, m, rows.width(), block, scores);
      for (int64_t q = 0; q < m; ++q) own[static_cast<size_t>(q)].add_scores(scores.data() + q * block.count, block);
    }
    const std::lock_guard lock(mutex);
    for (size_t q = 0; q < own.size(); ++q) nearest[q].add_all(own[q]);
  });
  return nearest;
}

}  // namespace

std::vector<std::vector<Neighbor>> nearest_rows(const Tensor& queries, const VectorRows& rows, int64_t k) {
  if (k < 1) throw Error("search", "k of at least 1", str(k));
  if (queries.rank() != 2 || queries.size(1) != rows.width())
    throw Error("search", str("queries [m, ", rows.width(), "]"), queries.shape().to_string());
  const Tensor values = queries.to(DType::f32).contiguous();
  for (int64_t i = 0; i < values.numel(); ++i) {
    if (!std::isfinite(values.data<float>()[i])) throw Error("search", "finite queries", "NaN or infinity");
  }
  std::vector<std::vector<Neighbor>> result;
  for (int64_t begin = 0; begin < values.size(0); begin += kQueriesPerPass) {
    const int64_t m = std::min(kQueriesPerPass, values.size(0) - begin);
    const float* const pass = values.data<float>() + begin * rows.width();
    for (NearestHeap& heap : search_blocks(pass, m, rows, std::min(k, rows.count())))
      result.push_back(std::move(heap).sorted());
  }
  return result;
}

void similar_pairs(const VectorRows& rows, float threshold, const OnPair& on_pair) {
  std::mutex mutex;
  const int64_t blocks = num_blocks(rows);
  parallel_for_balanced(0, blocks, 1, [&](int64_t first, int64_t last) {
    Block left, right;
    std::vector<float> scores;
    for (int64_t a = first; a < last; ++a) {
      left.read(rows, a);
      for (int64_t b = a; b < blocks; ++b) {
        right.read(rows, b);
        score_block(left.values.data(), left.count, rows.width(), right, scores);
        const std::lock_guard lock(mutex);
        for (int64_t i = 0; i < left.count; ++i) {
          const float* const row = scores.data() + i * right.count;
          if (a == b && !std::isfinite(row[i])) refuse_row(left.first + i);
          for (int64_t j = a == b ? i + 1 : 0; j < right.count; ++j) {
            if (row[j] >= threshold) on_pair(left.first + i, right.first + j, row[j]);
          }
        }
      }
    }
  });
}

}  // namespace vitrail::analysis
