// SPDX-License-Identifier: Apache-2.0
#pragma once
// A strided n-dimensional array that views a shared storage.
#include <memory>
#include <vector>

#include "vitrail/base/dtype.h"
#include "vitrail/tensor/shape.h"
#include "vitrail/tensor/storage.h"

namespace vitrail {

class Tensor;
struct QuantizedTensor;  // quantized_tensor.h

// Autograd's data of a tensor, opaque to this folder.
struct AutogradSlot {
  virtual ~AutogradSlot() = default;
  // Called by Tensor's methods: `result` is a view or a (converted) copy of `source`.  Autograd records it, so that
  // gradients flow through views and copies.
  virtual void derived(const Tensor& source, Tensor& result) const = 0;
};

// A handle: copying a Tensor copies no data.  A default-constructed Tensor is undefined: defined() is false.
// Views and copies are differentiable, except copy_ and to(Device).  Other differentiable operations are in
// vitrail/ops.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, DType dtype, const Shape& shape, const Shape& strides, int64_t offset);

  // Uninitialised.
  static Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
  template <class T>
  static Tensor from(const Shape& shape, const std::vector<T>& values);  // row-major; throws Error if sizes differ
  // An int8 weight as one tensor: dtype i8, with its scales and correction in quantized().  Conversions to a floating
  // type and copies into floating tensors dequantise it.  Its only views are ranges of rows.
  static Tensor from_quantized(QuantizedTensor weight);
  // Values of N(0, 1); a seed gives the same values on every machine.
  static Tensor randn(const Shape& shape, uint64_t seed, DType dtype = DType::f32);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }  // in elements
  int rank() const { return shape_.rank(); }
  int64_t size(int axis) const;  // a negative axis counts from the end
  int64_t numel() const { return shape_.numel(); }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_->device(); }
  bool is_meta() const { return device() == Device::meta; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  int64_t offset() const { return offset_; }  // in elements
  bool is_contiguous() const;

  // Pointer to the first element.  Throws Error unless T is the tensor's type and the tensor has data.
  template <class T>
  T* data() const;
  std::byte* raw() const;  // the same for any dtype; throws Error for a meta tensor
  template <class T>
  T item() const;  // the value of a one-element tensor, converted to T

  // Views share the storage.  Each throws Error for arguments that do not fit the shape.
  Tensor view(const Shape& shape) const;  // one extent may be -1; throws Error if strides do not allow it
  Tensor permute(std::initializer_list<int> axes) const;
  Tensor transpose(int a, int b) const;
  Tensor narrow(int axis, int64_t start, int64_t length) const;
  Tensor select(int axis, int64_t index) const;  // removes the axis
  Tensor unsqueeze(int axis) const;
  Tensor squeeze(int axis) const;
  Tensor flatten(int first = 0, int last = -1) const;  // a view if possible, else a copy, as reshape
  Tensor expand(const Shape& shape) const;             // axes of extent 1 get stride 0

  // These copy if necessary.
  Tensor reshape(const Shape& shape) const;
  Tensor contiguous() const;               // the tensor itself if it is contiguous
  Tensor clone() const;                    // a contiguous copy with a storage of its own
  Tensor to(DType dtype) const;            // the tensor itself if it has the dtype; converts as PyTorch
  Tensor to(Device device) const;          // cpu → meta drops the data; meta → cpu throws Error
  void copy_(const Tensor& source) const;  // overwrites the elements with source (broadcast, converted)

  const QuantizedTensor* quantized() const { return quantized_.get(); }  // null: a plain tensor

  const std::shared_ptr<AutogradSlot>& autograd() const { return autograd_; }
  void set_autograd(std::shared_ptr<AutogradSlot> slot) { autograd_ = std::move(slot); }
  Tensor detach() const;  // a view without autograd data

 private:
  Tensor derive(Tensor result) const;  // reports `result` to the autograd slot
  void refuse_if_quantized(const char* what) const;

  std::shared_ptr<Storage> storage_;
  Shape shape_, strides_;
  int64_t offset_ = 0;
  DType dtype_ = DType::f32;
  std::shared_ptr<AutogradSlot> autograd_;
  std::shared_ptr<const QuantizedTensor> quantized_;
};

}  // namespace vitrail
