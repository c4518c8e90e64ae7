// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/pooling.h"

#include "vitrail/base/error.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

// b + relu(a − b)
Tensor larger(const Tensor& a, const Tensor& b) {
  static const Tensor minus = Tensor::from<float>({1}, {-1});
  const Tensor difference = ops::add(a, ops::mul(b, minus));
  return ops::add(ops::activation(difference, kernels::Activation::relu), b);
}

}  // namespace

Tensor max_pool_2x2(const Tensor& x) {
  if (x.rank() != 4 || x.size(1) < 2 || x.size(2) < 2)
    throw Error("max_pool_2x2", "a map [B, h, w, C] of at least 2×2 cells", x.shape().to_string());
  const int64_t rows = x.size(1) / 2, columns = x.size(2) / 2;
  const Tensor even = ops::contiguous(x.narrow(1, 0, 2 * rows).narrow(2, 0, 2 * columns));
  const Tensor cells = even.view({x.size(0), rows, 2, columns, 2, x.size(3)});
  const auto corner = [&](int64_t y, int64_t x_of) { return ops::contiguous(cells.select(4, x_of).select(2, y)); };
  return larger(larger(corner(0, 0), corner(0, 1)), larger(corner(1, 0), corner(1, 1)));
}

Tensor adaptive_avg_pool(const Tensor& x, int64_t size) {
  if (x.rank() != 4 || x.numel() == 0 || size < 1)
    throw Error("adaptive_avg_pool", "a map [B, h, w, C] and a size of at least 1", str(x.shape(), " and ", size));
  const auto cell = [size](const Tensor& from, int axis, int64_t i) {
    const int64_t n = from.size(axis), first = i * n / size, last = ((i + 1) * n + size - 1) / size;
    return ops::mean(ops::contiguous(from.narrow(axis, first, last - first)), axis);
  };
  std::vector<Tensor> rows;
  for (int64_t y = 0; y < size; ++y) {
    const Tensor row = cell(x, 1, y);  // [B, w, C]
    std::vector<Tensor> columns;
    for (int64_t column = 0; column < size; ++column) columns.push_back(cell(row, 1, column).unsqueeze(1));
    rows.push_back(ops::cat(columns, 1).unsqueeze(1));
  }
  return ops::cat(rows, 1);
}

}  // namespace vitrail::nn
