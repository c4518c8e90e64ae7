// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/random.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail {
namespace {

// convert_element(), with numbers beyond an integer type's range saturated and NaN as 0.  C++ and PyTorch leave these
// undefined.
template <class To, class From>
To converted(From value) {
  constexpr bool from_half = std::is_same_v<From, BFloat16> || std::is_same_v<From, Float16>;
  if constexpr (from_half && std::is_integral_v<To>) {
    return converted<To>(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    using Limits = std::numeric_limits<To>;
    constexpr From lowest = static_cast<From>(Limits::min());
    constexpr From beyond = static_cast<From>(Limits::max() / 2 + 1) * 2;  // 2^digits, which From represents
    if (std::isnan(value)) return 0;
    if (value <= lowest) return Limits::min();
    if (value >= beyond) return Limits::max();
  }
  return convert_element<To>(value);
}

// Calls fn(a, b) with the offsets of each element in two tensors of equal shape and different strides.
template <class Fn>
void for_each_offset(const Shape& shape, const Shape& a, const Shape& b, Fn fn) {
  if (shape.numel() == 0) return;
  Shape index = shape;
  for (int i = 0; i < shape.rank(); ++i) index[i] = 0;
  int64_t at_a = 0, at_b = 0;
  while (true) {
    fn(at_a, at_b);
    int axis = shape.rank() - 1;
    for (; axis >= 0; --axis) {
      at_a += a[axis];
      at_b += b[axis];
      if (++index[axis] < shape[axis]) break;
      at_a -= a[axis] * shape[axis];
      at_b -= b[axis] * shape[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

constexpr int64_t kConvertedPerTask = 1 << 16;  // elements: large compared with the overhead of a parallel loop

// Copies between tensors of equal shape and dtype whose last axes are contiguous.
void copy_rows(const Tensor& to, const Tensor& from) {
  const int64_t width = to.size(-1), bytes = static_cast<int64_t>(size_of(to.dtype()));
  Shape rows = to.shape();
  rows[to.rank() - 1] = 1;
  std::byte* const target = to.raw();
  const std::byte* const source = from.raw();
  for_each_offset(rows, to.strides(), from.strides(), [&](int64_t a, int64_t b) {
    std::memcpy(target + a * bytes, source + b * bytes, static_cast<size_t>(width * bytes));
  });
}

// The first axis other than the last along which `from` is contiguous, where `to` is along the last; −1: none.
int transposed_axis(const Tensor& to, const Tensor& from) {
  if (to.rank() < 2 || to.strides()[to.rank() - 1] != 1) return -1;
  for (int axis = 0; axis + 1 < to.rank(); ++axis) {
    if (from.strides()[axis] == 1 && to.size(axis) > 1) return axis;
  }
  return -1;
}

// A matrix whose rows are contiguous in `to`, and its columns in `from`.
template <class T>
struct Transposed {
  T* to;
  const T* from;
  int64_t rows, columns, to_row, from_column;  // sizes and strides

  // Tiles use every element of a cache line of both while it is in the cache.
  void copy() const {
    constexpr int64_t kTile = 16;
    parallel_for(0, ceil_div(rows, kTile), 1 + kConvertedPerTask / (kTile * columns), [&](int64_t first, int64_t end) {
      for (int64_t r = first * kTile; r < std::min(rows, end * kTile); r += kTile) {
        for (int64_t c = 0; c < columns; c += kTile)
          copy_tile(r, std::min(rows, r + kTile), c, std::min(columns, c + kTile));
      }
    });
  }
  void copy_tile(int64_t row, int64_t end_row, int64_t column, int64_t end_column) const {
    for (int64_t r = row; r < end_row; ++r) {
      for (int64_t c = column; c < end_column; ++c) to[r * to_row + c] = from[r + c * from_column];
    }
  }
};

// Copies between tensors of equal shape and dtype: `to` has stride 1 along the last axis, and `from` along `axis`.
template <class T>
void copy_transposed(const Tensor& to, const Tensor& from, int axis) {
  const int last = to.rank() - 1;
  Shape others = to.shape();
  others[axis] = others[last] = 1;
  T* const target = to.data<T>();
  const T* const source = from.data<T>();
  for_each_offset(others, to.strides(), from.strides(), [&](int64_t a, int64_t b) {
    Transposed<T>{target + a, source + b, to.size(axis), to.size(last), to.strides()[axis], from.strides()[last]}
        .copy();
  });
}

}  // namespace

Tensor::Tensor(std::shared_ptr<Storage> storage, DType dtype, const Shape& shape, const Shape& strides, int64_t offset)
    : storage_(std::move(storage)), shape_(shape), strides_(strides), offset_(offset), dtype_(dtype) {}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  const size_t bytes = static_cast<size_t>(checked_numel({shape.begin(), shape.end()}, "tensor")) * size_of(dtype);
  auto storage = device == Device::meta ? Storage::meta(bytes) : Storage::allocate(bytes);
  return Tensor(std::move(storage), dtype, shape, contiguous_strides(shape), 0);
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor tensor = empty(shape, dtype);
  if (tensor.numel() > 0) std::memset(tensor.raw(), 0, tensor.storage()->bytes());
  return tensor;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  Tensor tensor = empty(shape, dtype);
  dispatch_dtype(dtype, [&](auto tag) {
    using T = decltype(tag);
    T* data = tensor.data<T>();
    for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = converted<T>(value);
  });
  return tensor;
}

template <class T>
Tensor Tensor::from(const Shape& shape, const std::vector<T>& values) {
  if (static_cast<int64_t>(values.size()) != shape.numel()) {
    throw Error("tensor", str(shape.numel(), " values for shape ", shape), str(values.size()));
  }
  Tensor tensor = empty(shape, DTypeOf<T>::value);
  T* data = tensor.data<T>();
  for (size_t i = 0; i < values.size(); ++i) data[i] = values[i];
  return tensor;
}
template Tensor Tensor::from(const Shape&, const std::vector<double>&);
template Tensor Tensor::from(const Shape&, const std::vector<float>&);
template Tensor Tensor::from(const Shape&, const std::vector<int64_t>&);
template Tensor Tensor::from(const Shape&, const std::vector<int32_t>&);
template Tensor Tensor::from(const Shape&, const std::vector<uint8_t>&);
template Tensor Tensor::from(const Shape&, const std::vector<int8_t>&);
template Tensor Tensor::from(const Shape&, const std::vector<bool>&);

Tensor Tensor::randn(const Shape& shape, uint64_t seed, DType dtype) {
  Tensor tensor = empty(shape, DType::f64);
  RandomStream random(random_key("randn", seed));
  double* data = tensor.data<double>();
  for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = random.normal();
  return tensor.to(dtype);
}

Tensor Tensor::from_quantized(QuantizedTensor weight) {
  check(weight);
  Tensor tensor = weight.values;
  tensor.quantized_ = std::make_shared<const QuantizedTensor>(std::move(weight));
  return tensor;
}

bool Tensor::is_contiguous() const {
  int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != step) return false;
    step *= shape_[i];
  }
  return true;
}

std::byte* Tensor::raw() const {
  if (!defined()) throw Error("tensor", "a defined tensor", "an undefined one");
  if (is_meta()) throw Error("tensor", "data", str("a meta tensor of shape ", shape_));
  std::byte* const data = storage_->data();  // null without elements
  return data ? data + offset_ * static_cast<int64_t>(size_of(dtype_)) : nullptr;
}

template <class T>
T* Tensor::data() const {
  if (dtype_ != DTypeOf<T>::value) throw Error("tensor", name_of(DTypeOf<T>::value), name_of(dtype_));
  return reinterpret_cast<T*>(raw());
}
template <class T>
T Tensor::item() const {
  if (numel() != 1) throw Error("item", "a tensor of one element", "shape " + shape_.to_string());
  return dispatch_dtype(dtype_, [&](auto tag) { return converted<T>(*data<decltype(tag)>()); });
}
#define VITRAIL_INSTANTIATE(T)         \
  template T* Tensor::data<T>() const; \
  template T Tensor::item<T>() const;
VITRAIL_INSTANTIATE(double)
VITRAIL_INSTANTIATE(float)
VITRAIL_INSTANTIATE(BFloat16)
VITRAIL_INSTANTIATE(Float16)
VITRAIL_INSTANTIATE(int64_t)
VITRAIL_INSTANTIATE(int32_t)
VITRAIL_INSTANTIATE(int8_t)
VITRAIL_INSTANTIATE(uint8_t)
VITRAIL_INSTANTIATE(bool)
#undef VITRAIL_INSTANTIATE

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
  if (quantized_ && !is_meta()) {
    QuantizedTensor copy{quantized_->values.clone(), quantized_->scales.clone(), quantized_->correction};
    return from_quantized(std::move(copy));
  }
  Tensor result = empty(shape_, dtype_, device());
  if (!is_meta()) result.copy_(*this);
  return derive(result);
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  if (quantized_ && !is_meta()) return dequantize(*quantized_, dtype);
  Tensor result = empty(shape_, dtype, device());
  if (!is_meta()) result.copy_(*this);
  return derive(result);
}

Tensor Tensor::to(Device device) const {
  if (device == this->device()) return *this;
  if (device == Device::cpu) throw Error("to", "a tensor with data", "a meta tensor");
  return empty(shape_, dtype_, Device::meta);
}

void Tensor::copy_(const Tensor& source) const {
  refuse_if_quantized("copy_");
  if (source.quantized_) return copy_(dequantize(*source.quantized_));
  const Tensor from = source.detach().expand(shape_);
  if (numel() == 0) return;
  if (from.dtype_ == dtype_ && from.is_contiguous() && is_contiguous()) {
    std::memmove(raw(), from.raw(), static_cast<size_t>(numel()) * size_of(dtype_));
    return;
  }
  if (from.dtype_ == dtype_ && rank() > 0 && shape_[rank() - 1] > 1 && strides_[rank() - 1] == 1 &&
      from.strides_[rank() - 1] == 1) {
    copy_rows(*this, from);
    return;
  }
  if (const int axis = transposed_axis(*this, from); axis >= 0 && from.dtype_ == dtype_) {
    dispatch_dtype(dtype_, [&](auto tag) { copy_transposed<decltype(tag)>(*this, from, axis); });
    return;
  }
  dispatch_dtype(dtype_, [&](auto to_tag) {
    using To = decltype(to_tag);
    dispatch_dtype(from.dtype_, [&](auto from_tag) {
      using From = decltype(from_tag);
      To* const to_data = data<To>();
      const From* const from_data = from.data<From>();
      if (is_contiguous() && from.is_contiguous()) {
        parallel_for(0, numel(), kConvertedPerTask, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) to_data[i] = converted<To>(from_data[i]);
        });
        return;
      }
      for_each_offset(shape_, strides_, from.strides_,
                      [&](int64_t a, int64_t b) { to_data[a] = converted<To>(from_data[b]); });
    });
  });
}

}  // namespace vitrail
