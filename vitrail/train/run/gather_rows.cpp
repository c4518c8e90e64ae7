// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/gather_rows_internal.h"

#include <algorithm>

#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/operation.h"

namespace vitrail::train {

Tensor gather_rows(const Tensor& rows, int64_t views, const ProcessGroup& group) {
  const int64_t processes = group.size(), count = rows.size(0), columns = rows.size(1), rank = group.rank();
  if (processes == 1) return rows;
  Tensor all = Tensor::zeros({processes, count, columns});
  all.select(0, rank).copy_(rows.detach());
  group.communicator()->all_reduce_sum(all.data<float>(), all.numel());  // the others' parts here are 0
  const int64_t images = count / views;
  const auto in_views = [&](const Tensor& x) {
    return x.view({processes, views, images, columns}).permute({1, 0, 2, 3}).contiguous();
  };
  const Tensor gathered = in_views(all).view({views * processes * images, columns});
  const auto gradient = [=](const Tensor& grad) -> ops::Tensors {
    const Tensor own = grad.contiguous().view({views, processes, images, columns}).select(1, rank);
    const Tensor factor = Tensor::full({1}, static_cast<double>(processes), grad.dtype());
    return {ops::mul(own.contiguous().view({count, columns}), factor)};
  };
  return ops::apply({.name = "gather_rows",
                     .shape = gathered.shape(),
                     .kernel =
                         [gathered](std::span<const ops::View<const float>>, std::span<const ops::View<float>> out) {
                           std::copy_n(gathered.data<float>(), gathered.numel(), out[0].data);
                         },
                     .gradient = [gradient](const auto&, const auto&) { return ops::Backward(gradient); },
                     .plain_loop = true},
                    {rows});
}

}  // namespace vitrail::train
