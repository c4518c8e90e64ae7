// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state dict of an unpickled checkpoint, common to both formats of torch.save.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/weights/file_bytes.h"
#include "vitrail/weights/pytorch/pickle_internal.h"
#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

using NamedPickledTensors = std::vector<std::pair<std::string, std::shared_ptr<const PickledTensor>>>;

struct StateDict {
  NamedPickledTensors tensors;
  std::map<std::string, std::string> objects;  // keys whose value is no tensor but an object of this global
  std::vector<std::string> choices;            // TensorFile::state_dicts()
};

using TensorReader = std::function<Tensor(const PickledTensor&)>;

// The checkpoint's state dict, found as torch_file_internal.h describes; of several the one at index `choice`.  `read`
// gives the values of a tensor.  Throws Error naming `where` if there is none.
StateDict find_tensors(const PickleValue& root, const std::string& where, const TensorReader& read, size_t choice = 0);

// The parameters and buffers of a TorchScript archive, which has an object per module.  Throws Error if there are none.
StateDict find_script_tensors(const PickleValue& root, const std::string& where);

TensorInfo describe(const std::string& name, const PickledTensor& tensor);

// The tensor whose storage is [begin, begin + size) of `bytes`.  Throws Error naming bytes.where if the storage is too
// small or the element type is not supported.
Tensor make_tensor(const FileBytes& bytes, uint64_t begin, uint64_t size, const PickledTensor& tensor);

}  // namespace vitrail::weights
