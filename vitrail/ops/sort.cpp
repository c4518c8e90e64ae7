// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/sort.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vitrail/base/parallel.h"
#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

// A column of x [matrices, rows, cols].
struct SortedColumns {
  int64_t rows, cols, count;

  explicit SortedColumns(const Tensor& x) : rows(x.size(-2)), cols(x.size(-1)), count(rows ? x.numel() / rows : 0) {}
  int64_t start(int64_t column) const { return column / cols * rows * cols + column % cols; }
};

// The order of the rows that sorts a column.
template <class T>
void sort_column(const T* column, int64_t cols, std::vector<int64_t>& order) {
  for (size_t r = 0; r < order.size(); ++r) order[r] = static_cast<int64_t>(r);
  std::stable_sort(order.begin(), order.end(), [&](int64_t left, int64_t right) {
    const T a = column[left * cols], b = column[right * cols];
    return a < b || (std::isnan(b) && !std::isnan(a));
  });
}

// Calls visit(at, from): element `at` of the result is element `from` of x.
template <class T, class Visit>
void for_sorted(const T* x, const SortedColumns& columns, Visit visit) {
  parallel_for(0, columns.count, 1 + 1024 / (columns.rows + 1), [&](int64_t first, int64_t last) {
    std::vector<int64_t> order(static_cast<size_t>(columns.rows));
    for (int64_t c = first; c < last; ++c) {
      const int64_t start = columns.start(c);
      sort_column(x + start, columns.cols, order);
      for (int64_t r = 0; r < columns.rows; ++r) {
        visit(start + r * columns.cols, start + order[static_cast<size_t>(r)] * columns.cols);
      }
    }
  });
}

}  // namespace

Tensor sort_columns(const Tensor& x) {
  if (x.rank() < 2) throw Error("sort_columns", "x [..., B, S]", str(x.shape()));
  return apply({.name = "sort_columns",
                .shape = x.shape(),
                .kernel =
                    [](auto in, auto out) {
                      for_sorted(in[0].data, SortedColumns(*in[0].tensor),
                                 [&](int64_t at, int64_t from) { out[0].data[at] = in[0].data[from]; });
                    },
                .gradient =
                    [](const auto& in, const auto&) {
                      return backward_kernel(in, {in[0]}, [](auto from, auto grads) {
                        for_sorted(from[1].data, SortedColumns(*from[1].tensor),
                                   [&](int64_t at, int64_t source) { grads[0].data[source] = from[0].data[at]; });
                      });
                    },
                .profile = "sort",
                .plain_loop = true},
               {x});
}

}  // namespace vitrail::ops
