// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Python globals that a pickled checkpoint may contain.  Unknown ones give objects whose content is ignored.
#include <cstdint>
#include <string>
#include <string_view>

#include "vitrail/base/dtype.h"
#include "vitrail/weights/float8_internal.h"

namespace vitrail::weights {

// The element type of a torch storage or tensor.
struct ElementType {
  DType dtype = DType::u8;
  std::string unsupported;  // torch's name of a type that the library does not support; `dtype` is then meaningless
  uint64_t bytes = 1;       // size of an element
  Float8 float8 = Float8::none;  // stored with 8 bits, and read as f32
  bool untyped = false;          // an UntypedStorage: bytes, whose type the tensor determines
};

struct PickleGlobal {
  enum class Id : uint8_t {
    ordered_dict,       // collections.OrderedDict, dict
    default_dict,       // collections.defaultdict: its argument is a factory
    sequence,           // list, tuple, torch.Size: a tuple or list of the argument's items
    set,                // set, frozenset
    encode,             // _codecs.encode: protocol 2's form of bytes
    rebuild_tensor,     // torch._utils._rebuild_tensor, _rebuild_tensor_v2
    rebuild_tensor_v3,  // with a dtype, for untyped storages
    rebuild_parameter,  // returns its tensor argument
    rebuild_from_type,  // torch._tensor._rebuild_from_type_v2: calls the function in its arguments
    tensor_class,       // torch.Tensor, torch.nn.Parameter: only as an argument of rebuild_from_type
    storage_type,       // torch.FloatStorage, …: in persistent ids
    dtype,              // torch.float32, …
    opaque,             // any other class or function: calling it gives an object that is not interpreted
  };
  Id id = Id::opaque;
  ElementType type;               // for storage_type and dtype
  std::string_view module, name;  // views of the arguments of find_pickle_global()
};

// Throws Error naming `where` and the global if it is one that runs code (refused_globals_internal.h).
PickleGlobal find_pickle_global(std::string_view module, std::string_view name, const std::string& where);

}  // namespace vitrail::weights
