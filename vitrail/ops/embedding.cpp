// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/embedding.h"

#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/ops/dispatch_internal.h"

namespace vitrail::ops {
namespace {

void check_ids(const Tensor& ids, int64_t rows) {
  const int64_t* const values = ids.data<int64_t>();
  const int64_t* const outside =
      std::find_if(values, values + ids.numel(), [rows](int64_t id) { return id < 0 || id >= rows; });
  if (outside != values + ids.numel()) throw Error("embedding", str("ids from 0 to ", rows - 1), str(*outside));
}

template <class T>
void embedding_forward(const Tensor& ids, const Tensor& weight, const Tensor& result) {
  const int64_t cols = weight.size(1);
  for (int64_t i = 0; i < ids.numel(); ++i) {
    std::copy_n(weight.data<T>() + ids.data<int64_t>()[i] * cols, cols, result.data<T>() + i * cols);
  }
}

template <class T>
void embedding_backward(const Tensor& ids, const Tensor& grad, const Tensor& grad_weight) {
  const int64_t cols = grad_weight.size(1);
  for (int64_t i = 0; i < ids.numel(); ++i) {
    T* const row = grad_weight.data<T>() + ids.data<int64_t>()[i] * cols;
    for (int64_t c = 0; c < cols; ++c) row[c] += grad.data<T>()[i * cols + c];
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
  if (symbolic({&ids, &weight})) {
    const Tensor result = symbolic_result(shape, weight.dtype());
    record(OpKind::embedding, {ids, weight}, {result});
    return result;
  }
  const Tensor rows = ids.to(DType::i64).contiguous();
  check_ids(rows, weight.size(0));
  const DType dtype = compute_dtype(weight, "embedding");
  const Tensor table = prepared(weight, dtype), result = Tensor::empty(shape, dtype);
  dispatch_compute(dtype, [&](auto tag) { embedding_forward<decltype(tag)>(rows, table, result); });
  Tensor output = result.to(weight.dtype());
  if (autograd::recording({weight})) {
    autograd::record(output, "embedding", {weight}, [rows, dtype, shape = weight.shape()](const Tensor& grad) {
      const Tensor g = prepared(grad, dtype), grad_weight = Tensor::zeros(shape, dtype);
      dispatch_compute(dtype, [&](auto tag) { embedding_backward<decltype(tag)>(rows, g, grad_weight); });
      return std::vector<Tensor>{grad_weight};
    });
  }
  return output;
}

}  // namespace vitrail::ops
