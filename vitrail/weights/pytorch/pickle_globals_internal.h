// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Python names that a pickled checkpoint may mention.  Every other name is refused.
#include <cstdint>
#include <string>
#include <string_view>

#include "vitrail/base/dtype.h"

namespace vitrail::weights {

// The element type of a torch storage or tensor.
struct ElementType {
  DType dtype = DType::u8;
  std::string unsupported;  // torch's name of a type that the library does not have; `dtype` means nothing then
  uint64_t bytes = 1;       // of one element
  bool untyped = false;     // an UntypedStorage: bytes, to be read as the tensor says
};

struct PickleGlobal {
  enum class Id : uint8_t {
    ordered_dict,       // collections.OrderedDict, dict
    sequence,           // list, tuple, torch.Size: a tuple or list of what it is given
    set,                // set, frozenset
    encode,             // _codecs.encode, how protocol 2 writes bytes
    rebuild_tensor,     // torch._utils._rebuild_tensor, _rebuild_tensor_v2
    rebuild_tensor_v3,  // with a dtype, for untyped storages
    rebuild_parameter,  // the tensor it is given
    rebuild_from_type,  // torch._tensor._rebuild_from_type_v2: calls the function it is given
    tensor_class,       // torch.Tensor, torch.nn.Parameter: only an argument of the one before
    storage_type,       // torch.FloatStorage, …: in persistent ids
    dtype,              // torch.float32, …
    opaque,             // argparse.Namespace, torch.device: kept as an object without content
  };
  Id id = Id::opaque;
  ElementType type;  // of storage_type and dtype
};

// Throws Error naming `where` and the refused name.
PickleGlobal find_pickle_global(std::string_view module, std::string_view name, const std::string& where);

}  // namespace vitrail::weights
