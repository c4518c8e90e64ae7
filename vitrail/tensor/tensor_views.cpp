// SPDX-License-Identifier: Apache-2.0
// Views: tensors of other shapes and strides over the same storage.
#include "vitrail/base/error.h"
#include "vitrail/tensor/quantized_tensor.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail {
namespace {

int wrap_axis(int axis, int rank, const char* where) {
  const int wrapped = axis < 0 ? axis + rank : axis;
  if (wrapped < 0 || wrapped >= rank) throw Error(where, str("an axis of a rank-", rank, " tensor"), str(axis));
  return wrapped;
}

// Replaces an extent of -1 so that the shape has `numel` elements.
Shape resolve(const Shape& wanted, int64_t numel, const char* where) {
  Shape shape = wanted;
  int inferred = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) continue;
    if (inferred >= 0) throw Error(where, "at most one extent of -1", wanted.to_string());
    inferred = i;
    shape[i] = 1;
  }
  const int64_t known = checked_numel({shape.begin(), shape.end()}, where);
  if (inferred >= 0 && known > 0) shape[inferred] = numel / known;
  if ((inferred >= 0 && known == 0) || shape.numel() != numel) {
    throw Error(where, str("a shape of ", numel, " elements"), wanted.to_string());
  }
  return shape;
}

// Computes strides of the new shape over the same memory, as PyTorch's view does; false if there are none.
bool view_strides(const Tensor& tensor, const Shape& shape, Shape& strides) {
  strides = contiguous_strides(shape);
  if (tensor.numel() == 0 || tensor.is_contiguous()) return true;
  int axis = shape.rank() - 1;
  int64_t chunk = 1, base = tensor.strides().back();
  for (int i = tensor.rank() - 1; i >= 0; --i) {  // for each run of old axes that is contiguous in memory
    chunk *= tensor.shape()[i];
    const bool run_ends = i == 0 || (tensor.shape()[i - 1] != 1 && tensor.strides()[i - 1] != chunk * base);
    if (!run_ends) continue;
    int64_t covered = 1;
    while (axis >= 0 && (covered < chunk || shape[axis] == 1)) {
      strides[axis] = covered * base;
      covered *= shape[axis--];
    }
    if (covered != chunk) return false;
    if (i > 0) {
      base = tensor.strides()[i - 1];
      chunk = 1;
    }
  }
  return axis < 0;
}

}  // namespace

Tensor Tensor::detach() const {
  Tensor result(storage_, dtype_, shape_, strides_, offset_);
  result.quantized_ = quantized_;
  return result;
}

// A view other than a range of rows would lose the scales.
void Tensor::refuse_if_quantized(const char* what) const {
  if (quantized_) throw Error(what, "a plain tensor, or a range of rows of a quantised one", str("int8 ", shape_));
}

Tensor Tensor::derive(Tensor result) const {
  if (autograd_) autograd_->derived(*this, result);
  return result;
}

int64_t Tensor::size(int axis) const { return shape_[wrap_axis(axis, rank(), "size")]; }

Tensor Tensor::view(const Shape& shape) const {
  refuse_if_quantized("view");
  const Shape wanted = resolve(shape, numel(), "view");
  Shape strides;
  if (!view_strides(*this, wanted, strides)) {
    throw Error(str("view: a tensor of shape ", shape_, " and strides ", strides_, " cannot be seen as ", wanted,
                    " without a copy: use reshape"));
  }
  return derive(Tensor(storage_, dtype_, wanted, strides, offset_));
}

Tensor Tensor::permute(std::initializer_list<int> axes) const {
  refuse_if_quantized("permute");
  if (static_cast<int>(axes.size()) != rank()) throw Error("permute", str(rank(), " axes"), str(axes.size()));
  Shape shape = shape_, strides = strides_;
  unsigned seen = 0;
  int i = 0;
  for (const int axis : axes) {
    const int from = wrap_axis(axis, rank(), "permute");
    if (seen & (1u << from)) throw Error("permute", "each axis once", str("axis ", from, " twice"));
    seen |= 1u << from;
    shape[i] = shape_[from];
    strides[i++] = strides_[from];
  }
  return derive(Tensor(storage_, dtype_, shape, strides, offset_));
}

Tensor Tensor::transpose(int a, int b) const {
  refuse_if_quantized("transpose");
  a = wrap_axis(a, rank(), "transpose");
  b = wrap_axis(b, rank(), "transpose");
  Tensor result(storage_, dtype_, shape_, strides_, offset_);
  std::swap(result.shape_[a], result.shape_[b]);
  std::swap(result.strides_[a], result.strides_[b]);
  return derive(result);
}

Tensor Tensor::narrow(int axis, int64_t start, int64_t length) const {
  axis = wrap_axis(axis, rank(), "narrow");
  if (start < 0 || length < 0 || start > shape_[axis] || length > shape_[axis] - start) {
    throw Error("narrow", str("a range inside ", shape_[axis]), str(start, " + ", length));
  }
  if (quantized_) {
    if (axis != 0) refuse_if_quantized("narrow");
    return from_quantized(rows_of(*quantized_, start, length));
  }
  Tensor result(storage_, dtype_, shape_, strides_, offset_ + start * strides_[axis]);
  result.shape_[axis] = length;
  return derive(result);
}

Tensor Tensor::select(int axis, int64_t index) const {
  axis = wrap_axis(axis, rank(), "select");
  return narrow(axis, index < 0 ? index + shape_[axis] : index, 1).squeeze(axis);
}

Tensor Tensor::unsqueeze(int axis) const {
  refuse_if_quantized("unsqueeze");
  axis = wrap_axis(axis, rank() + 1, "unsqueeze");
  Shape shape, strides;
  for (int i = 0; i <= rank(); ++i) {
    if (i == axis) {
      shape.push_back(1);
      strides.push_back(i < rank() ? shape_[i] * strides_[i] : 1);
    }
    if (i < rank()) {
      shape.push_back(shape_[i]);
      strides.push_back(strides_[i]);
    }
  }
  return derive(Tensor(storage_, dtype_, shape, strides, offset_));
}

Tensor Tensor::squeeze(int axis) const {
  refuse_if_quantized("squeeze");
  axis = wrap_axis(axis, rank(), "squeeze");
  if (shape_[axis] != 1) throw Error("squeeze", "an axis of extent 1", str(shape_[axis]));
  Shape shape, strides;
  for (int i = 0; i < rank(); ++i) {
    if (i == axis) continue;
    shape.push_back(shape_[i]);
    strides.push_back(strides_[i]);
  }
  return derive(Tensor(storage_, dtype_, shape, strides, offset_));
}

Tensor Tensor::flatten(int first, int last) const {
  first = wrap_axis(first, rank(), "flatten");
  last = wrap_axis(last, rank(), "flatten");
  if (first > last) throw Error("flatten", "the first axis before the last", str(first, " and ", last));
  Shape shape;
  int64_t joined = 1;
  for (int i = 0; i < rank(); ++i) {
    if (i < first || i > last) shape.push_back(shape_[i]);
    if (i >= first && i <= last) joined *= shape_[i];
    if (i == last) shape.push_back(joined);
  }
  return reshape(shape);
}

Tensor Tensor::expand(const Shape& shape) const {
  if (quantized_ && shape == shape_) return *this;
  refuse_if_quantized("expand");
  const int lead = shape.rank() - rank();
  if (lead < 0) throw Error("expand", str("at least ", rank(), " axes"), shape.to_string());
  Shape wanted = shape, strides = shape;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t from = i < lead ? 1 : shape_[i - lead];
    if (wanted[i] == -1) wanted[i] = from;
    if (wanted[i] < 0 || (from != 1 && from != wanted[i])) {
      throw Error("expand", str("a shape that ", shape_, " broadcasts to"), shape.to_string());
    }
    strides[i] = from == 1 && wanted[i] != 1 ? 0 : (i < lead ? 0 : strides_[i - lead]);
  }
  return derive(Tensor(storage_, dtype_, wanted, strides, offset_));
}

Tensor Tensor::reshape(const Shape& shape) const {
  refuse_if_quantized("reshape");
  const Shape wanted = resolve(shape, numel(), "reshape");
  Shape strides;
  if (view_strides(*this, wanted, strides)) return derive(Tensor(storage_, dtype_, wanted, strides, offset_));
  return contiguous().view(wanted);
}

}  // namespace vitrail
