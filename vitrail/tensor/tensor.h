// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensor: a strided view of a shared storage.
#include <memory>
#include <vector>

#include "vitrail/base/dtype.h"
#include "vitrail/tensor/shape.h"
#include "vitrail/tensor/storage.h"

namespace vitrail {

class Tensor;
struct QuantizedTensor;  // quantized_tensor.h

// What autograd hangs on a tensor; this folder does not look inside.
struct AutogradSlot {
  virtual ~AutogradSlot() = default;
  // Called for what a Tensor's own methods make of `source`: `result` is a view of its memory or a copy of it,
  // converted or not.  So no gradient gets lost between two operations.
  virtual void derived(const Tensor& source, Tensor& result) const = 0;
};

// A handle: copying a Tensor copies no data.  A default-constructed one is undefined (defined() is false).
// Views and copies pass gradients on (AutogradSlot::derived) but for copy_ and to(Device); the other differentiable
// operations are in vitrail/ops.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, DType dtype, const Shape& shape, const Shape& strides, int64_t offset);

  static Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);  // not cleared
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
  template <class T>
  static Tensor from(const Shape& shape, const std::vector<T>& values);  // row-major; sizes must agree
  // A weight in int8 as one tensor: dtype i8 and the values' memory, with scales and correction behind quantized().
  // to() with a floating type and copies into floating tensors dequantise it.  Its only views are ranges of rows.
  static Tensor from_quantized(QuantizedTensor weight);
  // Draws from N(0, 1) with the given seed; the same seed gives the same tensor on every machine.
  static Tensor randn(const Shape& shape, uint64_t seed, DType dtype = DType::f32);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }  // in elements
  int rank() const { return shape_.rank(); }
  int64_t size(int axis) const;  // negative axes count from the end
  int64_t numel() const { return shape_.numel(); }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_->device(); }
  bool is_meta() const { return device() == Device::meta; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  int64_t offset() const { return offset_; }  // in elements
  bool is_contiguous() const;

  // The first element.  T must be the tensor's dtype and the data must be there; otherwise an Error.
  template <class T>
  T* data() const;
  std::byte* raw() const;  // the first element's address, of whatever dtype; an Error on the meta device
  template <class T>
  T item() const;  // the value of a one-element tensor, converted to T

  // Views: no data is moved.
  Tensor view(const Shape& shape) const;  // one extent may be -1; an Error when the strides do not allow it
  Tensor permute(std::initializer_list<int> axes) const;
  Tensor transpose(int a, int b) const;
  Tensor narrow(int axis, int64_t start, int64_t length) const;
  Tensor select(int axis, int64_t index) const;  // drops the axis
  Tensor unsqueeze(int axis) const;
  Tensor squeeze(int axis) const;
  Tensor flatten(int first = 0, int last = -1) const;  // a view when it can be one, else a copy, as reshape
  Tensor expand(const Shape& shape) const;             // extents of 1 repeat with stride 0

  // Copies where it must.
  Tensor reshape(const Shape& shape) const;
  Tensor contiguous() const;               // itself when it already is
  Tensor clone() const;                    // always a new contiguous storage
  Tensor to(DType dtype) const;            // itself when it already is; PyTorch's conversions
  Tensor to(Device device) const;          // cpu → meta drops the data; meta → cpu is an Error
  void copy_(const Tensor& source) const;  // writes source (broadcast, converted) into this tensor's memory

  const QuantizedTensor* quantized() const { return quantized_.get(); }  // null: a plain tensor

  const std::shared_ptr<AutogradSlot>& autograd() const { return autograd_; }
  void set_autograd(std::shared_ptr<AutogradSlot> slot) { autograd_ = std::move(slot); }
  Tensor detach() const;  // the same memory, without a slot

 private:
  Tensor derive(Tensor result) const;  // tells the slot of `result`
  void refuse_if_quantized(const char* what) const;

  std::shared_ptr<Storage> storage_;
  Shape shape_, strides_;
  int64_t offset_ = 0;
  DType dtype_ = DType::f32;
  std::shared_ptr<AutogradSlot> autograd_;
  std::shared_ptr<const QuantizedTensor> quantized_;
};

}  // namespace vitrail
