// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface that all checkpoint formats implement.
#include <map>
#include <string>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// A tensor's entry in the file's index.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  // The file's name of an element type that the library does not support ("F8_E4M3"), else empty.  If it is set,
  // `dtype` is meaningless and reading the tensor is an Error; other tensors of the file can be read.
  std::string unsupported_dtype;
};

// An open file.  Opening reads and validates the index; tensor() reads the data.  Immutable and thread-safe.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  virtual Tensor tensor(size_t index) const = 0;  // the data of tensors()[index]

  const std::string& format() const { return format_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Names whose value is no tensor but a Python object that is not read, with its class or function.
  const std::map<std::string, std::string>& objects() const { return objects_; }
  // Keys that lead to the state dicts of a PyTorch file with the names of a built-in family, in the order of use.
  const std::vector<std::string>& state_dicts() const { return state_dicts_; }

 protected:
  std::string format_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_, objects_;
  std::vector<std::string> state_dicts_;
};

}  // namespace vitrail::weights
