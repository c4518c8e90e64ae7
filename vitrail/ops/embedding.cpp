// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/embedding.h"

#include <algorithm>

#include "vitrail/ops/operation.h"

namespace vitrail::ops {
namespace {

// Calls fn(i-th id, its row of a table [rows, cols]).
template <class T, class Fn>
void for_ids(const View<const T>& ids, int64_t rows, const Fn& fn) {
  const auto* const id = reinterpret_cast<const int64_t*>(ids.data);
  for (int64_t i = 0; i < ids.tensor->numel(); ++i) {
    if (id[i] < 0 || id[i] >= rows) throw Error("embedding", str("ids from 0 to ", rows - 1), str(id[i]));
    fn(i, id[i]);
  }
}

}  // namespace

Tensor embedding(const Tensor& ids, const Tensor& weight) {
  if (is_floating(ids.dtype()) || weight.rank() != 2) {
    throw Error("embedding", "integer ids and a weight [V, C]",
                str("ids ", name_of(ids.dtype()), " and a weight ", weight.shape()));
  }
  Shape shape = ids.shape();
  shape.push_back(weight.size(1));
  const int64_t rows = weight.size(0), cols = weight.size(1);
  return apply(
      {.name = "embedding",
       .shape = shape,
       .kernel =
           [=](auto in, auto out) {
             for_ids(in[0], rows,
                     [&](int64_t i, int64_t id) { std::copy_n(in[1].data + id * cols, cols, out[0].data + i * cols); });
           },
       .gradient =
           [=](const auto& in, const auto&) {
             return backward_kernel(in, {in[0]}, [=](auto from, auto grads) {
               std::fill_n(grads[1].data, rows * cols, 0);
               for_ids(from[1], rows, [&](int64_t i, int64_t id) {
                 for (int64_t c = 0; c < cols; ++c) grads[1].data[id * cols + c] += from[0].data[i * cols + c];
               });
             });
           },
       .integer_inputs = 1,
       .bytes = 2.0 * sizeof(float) * static_cast<double>(shape.numel()),  // not all rows are read
       .plain_loop = true,
       .onnx =
           [](OnnxValues& onnx, const auto& in, const auto&) {
             return onnx.graph().node("Gather", {onnx.value_of(in[1]), onnx.value_of(in[0])}, {{"axis", int64_t{0}}});
           }},
      {ids, weight});
}

}  // namespace vitrail::ops
