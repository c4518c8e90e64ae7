// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/rowwise/rotary.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::random_floats;

constexpr int64_t kBatch = 2, kTokens = 3, kHeads = 2, kPrefix = 1;

struct RotaryProblem {
  int64_t dim;
  std::vector<float> x, table;  // a row of the table per sample, head and patch

  explicit RotaryProblem(int64_t head_dim)
      : dim(head_dim),
        x(random_floats(kBatch * kTokens * 3 * kHeads * dim, 1)),
        table(random_floats(kBatch * kHeads * (kTokens - kPrefix) * dim, 2)) {}

  template <class T>
  RotaryArgsOf<T> args(const T* from, T* to, const T* rows, RotaryPairs pairs, bool inverse) const {
    return {.x = from,
            .y = to,
            .batch = kBatch,
            .tokens = kTokens,
            .heads = kHeads,
            .head_dim = dim,
            .prefix = kPrefix,
            .table = rows,
            .table_batch_stride = kHeads * (kTokens - kPrefix) * dim,
            .table_head_stride = (kTokens - kPrefix) * dim,
            .pairs = pairs,
            .inverse = inverse};
  }

  std::vector<double> expected(RotaryPairs pairs, bool inverse) const {
    const std::vector<double> from(x.begin(), x.end()), rows(table.begin(), table.end());
    std::vector<double> to(from.size());
    rotary(args<double>(from.data(), to.data(), rows.data(), pairs, inverse));
    return to;
  }
};

TEST(Rotary, MatchesTheDoubleReferenceOnEveryIsaAlsoInPlace) {
  testing::for_each_isa([](Isa) {
    for (const int64_t half : testing::kAwkwardLengths) {
      const RotaryProblem problem(2 * half);
      for (const RotaryPairs pairs : {RotaryPairs::halves, RotaryPairs::interleaved}) {
        for (const bool inverse : {false, true}) {
          const Buffer from(problem.x, 1), table(problem.table, 3);
          Buffer to(static_cast<int64_t>(problem.x.size()), 1), same(problem.x, 1);
          rotary(problem.args<float>(from.data(), to.data(), table.data(), pairs, inverse));
          rotary(problem.args<float>(same.data(), same.data(), table.data(), pairs, inverse));
          to.check();
          same.check();
          // Two products and a sum of values of order 1 to 20.
          testing::expect_close(to.values(), problem.expected(pairs, inverse),
                                [](int64_t) { return 40 * std::numeric_limits<float>::epsilon(); });
          EXPECT_EQ(to.values(), same.values());
        }
      }
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels
