// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every file format of named tensors looks like to the rest of the library.
#include <map>
#include <string>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// One tensor as the file's index describes it.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  // Empty, or the file's own name of an element type that the library has no use for ("F8_E4M3").  `dtype` means
  // nothing then, and asking for the tensor is an error; the file's other tensors can be read.
  std::string unsupported_dtype;
};

// An opened file.  Opening reads and checks the index; tensor() reads the data.  Immutable, so safe across threads.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  virtual Tensor tensor(size_t index) const = 0;  // of tensors()[index]

  const std::string& format() const { return format_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 protected:
  std::string format_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace vitrail::weights
