// SPDX-License-Identifier: Apache-2.0
#pragma once
// What both formats of torch.save share: the named tensors of an unpickled checkpoint.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/weights/file_bytes.h"
#include "vitrail/weights/pytorch/pickle_internal.h"
#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

using NamedPickledTensors = std::vector<std::pair<std::string, std::shared_ptr<const PickledTensor>>>;

// The tensors of a checkpoint's dict, found as torch_file_internal.h says.  Throws Error naming `where` when there are
// none.
NamedPickledTensors find_tensors(const PickleValue& root, const std::string& where);

TensorInfo describe(const std::string& name, const PickledTensor& tensor);

// The tensor whose storage's bytes lie at [begin, begin + size) of `bytes`.  Throws Error naming bytes.where when they
// are fewer than the storage should have, or of a type that the library does not have.
Tensor make_tensor(const FileBytes& bytes, uint64_t begin, uint64_t size, const PickledTensor& tensor);

}  // namespace vitrail::weights
