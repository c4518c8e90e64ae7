#include "vitrail/tensor/tensor.h"

#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"

namespace vitrail {
namespace {

int wrap_axis(int axis, int rank, const char* where) {
  const int wrapped = axis < 0 ? axis + rank : axis;
  if (wrapped < 0 || wrapped >= rank) throw Error(where, str("an axis of a rank-", rank, " tensor"), str(axis));
  return wrapped;
}

// Resolves one extent of -1 so that the product is `numel`.
Shape resolve(const Shape& wanted, int64_t numel, const char* where) {
  Shape shape = wanted;
  int open = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) continue;
    if (open >= 0) throw Error(where, "at most one extent of -1", wanted.to_string());
    open = i;
    shape[i] = 1;
  }
  const int64_t known = checked_numel({shape.begin(), shape.end()}, where);
  if (open >= 0 && known > 0) shape[open] = numel / known;
  if ((open >= 0 && known == 0) || shape.numel() != numel) {
    throw Error(where, str("a shape of ", numel, " elements"), wanted.to_string());
  }
  return shape;
}

// Strides with which the same memory has the new shape, as PyTorch's view computes them; false when there are none.
bool view_strides(const Tensor& tensor, const Shape& shape, Shape& strides) {
  strides = contiguous_strides(shape);
  if (tensor.numel() == 0 || tensor.is_contiguous()) return true;
  int axis = shape.rank() - 1;
  int64_t chunk = 1, base = tensor.strides().back();
  for (int i = tensor.rank() - 1; i >= 0; --i) {  // walk runs of old axes that lie one after another in memory
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

// Calls fn(a, b) with the offsets of each element in two tensors of one shape.
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
    for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = convert_element<T>(value);
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

int64_t Tensor::size(int axis) const { return shape_[wrap_axis(axis, rank(), "size")]; }

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
  if (is_meta())
    throw Error("tensor", "data", str("a tensor of shape ", shape_, " on the meta device, which has none"));
  return storage_->data() + offset_ * static_cast<int64_t>(size_of(dtype_));
}

template <class T>
T* Tensor::data() const {
  if (dtype_ != DTypeOf<T>::value) throw Error("tensor", name_of(DTypeOf<T>::value), name_of(dtype_));
  return reinterpret_cast<T*>(raw());
}
template <class T>
T Tensor::item() const {
  if (numel() != 1) throw Error("item", "a tensor of one element", "shape " + shape_.to_string());
  return dispatch_dtype(dtype_, [&](auto tag) { return convert_element<T>(*data<decltype(tag)>()); });
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

Tensor Tensor::view(const Shape& shape) const {
  const Shape wanted = resolve(shape, numel(), "view");
  Shape strides;
  if (!view_strides(*this, wanted, strides)) {
    throw Error(str("view: a tensor of shape ", shape_, " and strides ", strides_, " cannot be seen as ", wanted,
                    " without a copy: use reshape"));
  }
  return Tensor(storage_, dtype_, wanted, strides, offset_);
}

Tensor Tensor::permute(std::initializer_list<int> axes) const {
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
  return Tensor(storage_, dtype_, shape, strides, offset_);
}

Tensor Tensor::transpose(int a, int b) const {
  a = wrap_axis(a, rank(), "transpose");
  b = wrap_axis(b, rank(), "transpose");
  Tensor result(storage_, dtype_, shape_, strides_, offset_);
  std::swap(result.shape_[a], result.shape_[b]);
  std::swap(result.strides_[a], result.strides_[b]);
  return result;
}

Tensor Tensor::narrow(int axis, int64_t start, int64_t length) const {
  axis = wrap_axis(axis, rank(), "narrow");
  if (start < 0 || length < 0 || start > shape_[axis] || length > shape_[axis] - start) {
    throw Error("narrow", str("a range inside ", shape_[axis]), str(start, " + ", length));
  }
  Tensor result(storage_, dtype_, shape_, strides_, offset_ + start * strides_[axis]);
  result.shape_[axis] = length;
  return result;
}

Tensor Tensor::select(int axis, int64_t index) const {
  axis = wrap_axis(axis, rank(), "select");
  return narrow(axis, index < 0 ? index + shape_[axis] : index, 1).squeeze(axis);
}

Tensor Tensor::unsqueeze(int axis) const {
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
  return Tensor(storage_, dtype_, shape, strides, offset_);
}

Tensor Tensor::squeeze(int axis) const {
  axis = wrap_axis(axis, rank(), "squeeze");
  if (shape_[axis] != 1) throw Error("squeeze", "an axis of extent 1", str(shape_[axis]));
  Shape shape, strides;
  for (int i = 0; i < rank(); ++i) {
    if (i == axis) continue;
    shape.push_back(shape_[i]);
    strides.push_back(strides_[i]);
  }
  return Tensor(storage_, dtype_, shape, strides, offset_);
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
  return Tensor(storage_, dtype_, wanted, strides, offset_);
}

Tensor Tensor::reshape(const Shape& shape) const {
  const Shape wanted = resolve(shape, numel(), "reshape");
  Shape strides;
  if (view_strides(*this, wanted, strides)) return Tensor(storage_, dtype_, wanted, strides, offset_);
  return contiguous().view(wanted);
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
  Tensor result = empty(shape_, dtype_, device());
  if (!is_meta()) result.copy_(*this);
  return result;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor result = empty(shape_, dtype, device());
  if (!is_meta()) result.copy_(*this);
  return result;
}

Tensor Tensor::to(Device device) const {
  if (device == this->device()) return *this;
  if (device == Device::cpu) throw Error("to", "a tensor with data", "one on the meta device");
  return empty(shape_, dtype_, Device::meta);
}

void Tensor::copy_(const Tensor& source) const {
  const Tensor from = source.expand(shape_);
  if (from.dtype_ == dtype_ && from.is_contiguous() && is_contiguous()) {
    if (numel() > 0) std::memmove(raw(), from.raw(), static_cast<size_t>(numel()) * size_of(dtype_));
    return;
  }
  dispatch_dtype(dtype_, [&](auto to_tag) {
    using To = decltype(to_tag);
    dispatch_dtype(from.dtype_, [&](auto from_tag) {
      using From = decltype(from_tag);
      To* to_data = data<To>();
      const From* from_data = from.data<From>();
      for_each_offset(shape_, strides_, from.strides_,
                      [&](int64_t a, int64_t b) { to_data[a] = convert_element<To>(from_data[b]); });
    });
  });
}

}  // namespace vitrail
